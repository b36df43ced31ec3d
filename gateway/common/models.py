"""The rows that all packages share."""

from django.db import models


class Lease(models.Model):
    """
    Work that one process at a time may do: who does it, and until when, by the database's clock.

    The number is of this holder alone, also after the row was deleted: every other one, before or after, has another.
    """

    fence = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=255, unique=True)
    owner = models.CharField(max_length=255)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}, held by {self.owner}"
