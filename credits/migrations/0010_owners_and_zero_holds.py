import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    """A sponsor may own an account, and a hold may be 0 where a sponsor pays."""

    reviewed = {
        "AlterField": "it drops NOT NULL, which reads no row",
        "RemoveConstraint": "a wider one follows in the same transaction",
    }

    dependencies = [
        ("credits", "0009_indexes_of_debts"),
        ("sponsors", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="credithold", name="credits_hold_amount_positive"),
        AddConstraintNotValid(
            model_name="credithold",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount__gte", 0)), name="credits_hold_amount_not_negative"
            ),
        ),
        migrations.AlterField(
            model_name="creditaccount",
            name="user",
            field=models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="credit_account",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        # Its unique index is created in the next migration, without a lock.
        migrations.AddField(
            model_name="creditaccount",
            name="sponsor",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="credit_account",
                to="sponsors.sponsor",
            ),
        ),
        AddConstraintNotValid(
            model_name="creditaccount",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("sponsor__isnull", True), ("user__isnull", False)),
                    models.Q(("sponsor__isnull", False), ("user__isnull", True)),
                    _connector="OR",
                ),
                name="credits_account_one_owner",
            ),
        ),
    ]
