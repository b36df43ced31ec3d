import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relay", "0002_relayer_has_code"),
        ("sponsors", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="quote",
            name="sponsor_version",
            field=models.ForeignKey(
                db_index=False,
                help_text="The version of a sponsor's policy that pays.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="sponsors.policyversion",
            ),
        ),
    ]
