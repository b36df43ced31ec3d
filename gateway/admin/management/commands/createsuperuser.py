"""`manage.py createsuperuser` is refused: staff are made by two people."""

from gateway.admin.management.refused import RefusedCommand


class Command(RefusedCommand):
    help = (
        "Refused here: `create_staff` makes the first two members of staff, and they the others in the admin."
    )
    instead = "Make the first two members of staff by create_staff; they ask for and approve the others in the admin."
