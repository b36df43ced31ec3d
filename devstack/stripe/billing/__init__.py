"""What Stripe decides by itself: charging, invoicing, renewing, retrying, ending."""
