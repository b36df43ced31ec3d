"""The resources that know nothing of subscriptions and invoices: their behaviour and their routes."""
