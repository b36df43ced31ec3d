"""The keys of the external issuer, as last fetched."""

from django.db import models


class IssuerKeySet(models.Model):
    """
    A JSON Web Key Set that a request reads without ever waiting for the network.

    A failed fetch leaves the last good set in place.
    """

    url = models.URLField(max_length=500, unique=True)
    keys = models.JSONField()
    fetched_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.url
