"""What other apps may connect to."""

from django.dispatch import Signal

# Sent with `user` inside the transaction that makes a profile's user; a receiver's rows commit with it.
user_created = Signal()
