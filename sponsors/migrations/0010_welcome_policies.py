import django.core.validators
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {
        "RemoveConstraint": "the new one takes its place in the same transaction",
        "AddConstraint": "terms are few, and the new constraints allow all that the old ones did",
        "AlterField": "choices and help alone; no statement runs",
    }
    dependencies = [
        ("sponsors", "0009_first_credits"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="policyversion",
            name="sponsors_policyversion_purpose",
        ),
        migrations.RemoveConstraint(
            model_name="policyversion",
            name="sponsors_policyversion_origin",
        ),
        migrations.RemoveConstraint(
            model_name="policyversion",
            name="sponsors_policyversion_first",
        ),
        migrations.AlterField(
            model_name="policyversion",
            name="origin_calls",
            field=models.BigIntegerField(
                blank=True,
                help_text="For new profiles: the maximum for one origin in a UTC day. For those of other sponsors, each of these is one.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AlterField(
            model_name="policyversion",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("calls", "Calls of profiles"),
                    ("profiles", "New profiles that the sponsor's server requests"),
                    (
                        "welcome",
                        "The default sponsor: new profiles that other sponsors request and do not pay for",
                    ),
                ],
                db_default="calls",
                default="calls",
                max_length=8,
                verbose_name="pays for",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("purpose__in", ("profiles", "welcome")), _negated=True),
                    models.Q(
                        ("profiles__in", ("all", "vouched", "verified")),
                        ("share_percent", 100),
                        ("targets", []),
                    ),
                    _connector="OR",
                ),
                name="sponsors_policyversion_purpose",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("origin_calls__isnull", True),
                    models.Q(("origin_calls__gte", 1), ("purpose__in", ("profiles", "welcome"))),
                    _connector="OR",
                ),
                name="sponsors_policyversion_origin",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("purpose", "welcome"), _negated=True),
                    models.Q(
                        ("origin_calls__isnull", False),
                        ("window_calls__isnull", False),
                        ("window_credits__isnull", False),
                        ("window_seconds", 86400),
                        ("window_seconds__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="sponsors_policyversion_welcome",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("first_credits__isnull", True), ("first_days__isnull", True)),
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
