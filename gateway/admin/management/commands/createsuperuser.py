"""`manage.py createsuperuser` is refused: creating staff needs two people."""

from gateway.admin.management.refused import RefusedCommand


class Command(RefusedCommand):
    help = "Refused: `create_staff` creates the first three members of staff, who create the others in the admin."
    instead = "Create the first three members of staff with create_staff; they request and approve others in the admin."
