"""Card payments: customers, subscriptions, payouts of collected months."""
