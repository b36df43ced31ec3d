"""Months of payments: people, a clerk at Stripe's dashboard and banks act at random while time passes."""
