"""Card payments: customers, subscriptions, purchases, and payouts of collected money in credits."""
