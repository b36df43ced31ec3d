import django.db.models.deletion
from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {
        "AddField": "the unique index of an empty column, on a table with a row for each refund by staff; no version 1.0 writes it",
        "AlterField": "drops a NOT NULL; the previous version always writes a value",
    }
    dependencies = [
        ("credits", "0004_causes_are_compared"),
        ("gateway_admin", "0001_initial"),
        ("payments", "0004_what_stripe_waits_for"),
    ]

    operations = [
        migrations.AddField(
            model_name="refund",
            name="hold",
            field=models.OneToOneField(
                help_text="The credits of a purchase that its payer undid, held until they are taken back.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="credits.credithold",
            ),
        ),
        migrations.AlterField(
            model_name="refund",
            name="approval",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="gateway_admin.approvalrequest",
            ),
        ),
        AddConstraintNotValid(
            model_name="refund",
            constraint=models.CheckConstraint(
                condition=models.Q(("approval__isnull", False), ("hold", None))
                | models.Q(("approval", None), ("hold__isnull", False)),
                name="refund_by_staff_or_payer",
            ),
        ),
        ValidateConstraint(model_name="refund", name="refund_by_staff_or_payer"),
    ]
