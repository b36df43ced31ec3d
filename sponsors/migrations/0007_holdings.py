from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.core.validators import MinValueValidator
from django.db import migrations, models

import gateway.common.fields

_COUNTERPART = models.Q(
    models.Q(("counterpart__isnull", False), ("least_balance__gte", 1), ("profiles", "holding")),
    models.Q(
        ("counterpart__isnull", False),
        ("least_balance__isnull", True),
        ("profiles__in", ("followed", "follower")),
    ),
    models.Q(
        models.Q(("profiles__in", ["holding", "followed", "follower"]), _negated=True),
        ("counterpart__isnull", True),
        ("least_balance__isnull", True),
    ),
    _connector="OR",
)


class Migration(migrations.Migration):
    reviewed = {"AlterField": "only the choices change, which the database does not have, so nothing is run"}

    dependencies = [
        ("sponsors", "0006_removed_signers"),
    ]

    operations = [
        migrations.AlterField(
            model_name="policyversion",
            name="profiles",
            field=models.CharField(
                choices=[
                    ("all", "Every profile"),
                    ("listed", "Listed profiles"),
                    ("new", "Profiles that signed in here first after a date"),
                    ("vouched", "Profiles with a voucher of the sponsor"),
                    ("holding", "Profiles that hold a token"),
                    ("followed", "Profiles that a given profile follows"),
                    ("follower", "Profiles that follow a given profile"),
                ],
                default="all",
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="policyversion",
            name="counterpart",
            field=gateway.common.fields.AddressField(
                blank=True,
                help_text="The token that profiles hold, or the other profile of a follow.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="policyversion",
            name="least_balance",
            field=gateway.common.fields.Uint256Field(
                blank=True,
                help_text="For profiles that hold a token: the lowest balance, in the token's smallest unit.",
                null=True,
                validators=[MinValueValidator(1)],
            ),
        ),
        AddConstraintNotValid(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=_COUNTERPART, name="sponsors_policyversion_counterpart"
            ),
        ),
        ValidateConstraint(model_name="policyversion", name="sponsors_policyversion_counterpart"),
    ]
