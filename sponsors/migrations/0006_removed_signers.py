import django.db.models.deletion
from django.db import migrations, models

_REASON = (
    "the table has some rows for each sponsor; the old code reads removed signers as active until it ends"
)


class Migration(migrations.Migration):
    reviewed = {"AlterField": _REASON, "RemoveConstraint": _REASON, "AddConstraint": _REASON}

    dependencies = [
        ("sponsors", "0005_alarm"),
    ]

    operations = [
        migrations.AlterField(
            model_name="vouchersigner",
            name="sponsor",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="signers",
                to="sponsors.sponsor",
            ),
        ),
        migrations.AddField(
            model_name="vouchersigner",
            name="removed_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.RemoveConstraint(
            model_name="vouchersigner",
            name="sponsors_vouchersigner_once",
        ),
        migrations.AddConstraint(
            model_name="vouchersigner",
            constraint=models.UniqueConstraint(
                condition=models.Q(("removed_at__isnull", True)),
                fields=("sponsor", "address"),
                name="sponsors_vouchersigner_active",
            ),
        ),
    ]
