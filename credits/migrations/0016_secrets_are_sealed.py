"""Seal the secrets that were stored as they are."""

from django.conf import settings
from django.db import migrations

from gateway.common.crypto import seal, unseal

_COLUMNS = ("current_secret", "previous_secret")
_PURPOSE = "credits.ad-network-secret"


def _change(apps, convert):
    for network in apps.get_model("credits", "AdNetwork").objects.all():
        for column in _COLUMNS:
            stored = getattr(network, column)
            if stored:
                setattr(
                    network, column, convert(stored, keys=settings.AD_NETWORK_SECRET_KEYS, purpose=_PURPOSE)
                )
        network.save(update_fields=_COLUMNS)


class Migration(migrations.Migration):
    dependencies = [
        ("credits", "0015_ad_units_of_our_own"),
    ]

    operations = [
        migrations.RunPython(
            lambda apps, editor: _change(apps, seal), lambda apps, editor: _change(apps, unseal)
        ),
    ]
