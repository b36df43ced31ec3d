"""`manage.py changepassword` is refused: resetting a staff password needs two people."""

from gateway.admin.management.refused import RefusedCommand


class Command(RefusedCommand):
    help = "Refused: staff change their own password in the admin; resetting another needs approval."
    instead = (
        "Change your own password at /admin/password_change/. Request the reset of another in the admin."
    )
