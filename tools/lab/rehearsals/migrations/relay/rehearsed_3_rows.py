"""A change of every row, some at a time, so that no call waits for long. A repeat changes only what is left."""

from django.db import migrations
from django.db.models import F

_ROWS = 100


def change(apps, schema_editor):
    rows = apps.get_model("relay", "RelayTransaction").objects.filter(rehearsed=False)
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:_ROWS]):
        rows.filter(pk__in=ids).update(rehearsed=True, rehearsed_at=F("created_at"))


class Migration(migrations.Migration):
    atomic = False
    reviewed = {"RunPython": "a few rows at a time, each in a transaction of its own"}
    dependencies = [("relay", "rehearsed_2_index")]

    operations = [migrations.RunPython(change, migrations.RunPython.noop)]
