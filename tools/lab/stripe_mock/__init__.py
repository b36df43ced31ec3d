"""Every request of the Stripe adapter, sent to the Stripe double and to Stripe's own stripe-mock."""
