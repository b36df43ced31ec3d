import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    reviewed = {
        "AlterField": "only the old index is dropped, at once; the new one begins with the same column"
    }

    dependencies = [
        ("sponsors", "0003_members_keys_and_refusals"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="sponsoredcall",
            index=models.Index(fields=["version", "accepted_at"], name="sponsors_sponsoredcall_by_time"),
        ),
        migrations.AlterField(
            model_name="sponsoredcall",
            name="version",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="calls",
                to="sponsors.policyversion",
            ),
        ),
    ]
