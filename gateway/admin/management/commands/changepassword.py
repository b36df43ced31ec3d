"""`manage.py changepassword` is refused: a password of staff is reset by two people."""

from gateway.admin.management.refused import RefusedCommand


class Command(RefusedCommand):
    help = (
        "Refused here: staff change their own password in the admin, and reset others' with a second person."
    )
    instead = "Change your own password at /admin/password_change/; another one's is reset in the admin, by two people."
