import django.contrib.postgres.fields
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {
        "RemoveConstraint": "the new one takes its place in the same transaction",
        "AddConstraint": "terms are few, and the column is new, so that the scan finds nothing wrong",
    }

    dependencies = [
        ("sponsors", "0010_welcome_policies"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="policyversion",
            name="sponsors_policyversion_first",
        ),
        migrations.AddField(
            model_name="policyversion",
            name="first_chain_ids",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                blank=True,
                db_default=models.Value(
                    [],
                    output_field=django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                default=list,
                help_text="For first credits: the ids of chains besides home on which they may be spent.",
                size=None,
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("first_chain_ids", []), ("first_credits__isnull", True), ("first_days__isnull", True)
                    ),
                    models.Q(
                        ("first_credits__gte", 1),
                        ("first_credits__isnull", False),
                        ("first_days__gte", 1),
                        ("first_days__isnull", False),
                        ("first_days__lte", 365),
                        ("purpose__in", ("profiles", "welcome")),
                    ),
                    _connector="OR",
                ),
                name="sponsors_policyversion_first",
            ),
        ),
    ]
