import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("payments", "0007_purchases"),
        ("sponsors", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="purchase",
            name="sponsor",
            field=models.ForeignKey(
                db_index=False,
                help_text="Gets the credits; where empty, the payer does.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="purchases",
                to="sponsors.sponsor",
            ),
        ),
        AddIndexConcurrently(
            model_name="purchase",
            index=models.Index(
                condition=models.Q(("sponsor__isnull", False)),
                fields=["sponsor"],
                name="purchase_of_sponsor",
            ),
        ),
    ]
