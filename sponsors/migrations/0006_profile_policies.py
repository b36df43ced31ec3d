import django.core.validators
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {
        "RemoveConstraint": "two constraints are replaced by wider ones in the same transaction",
        "AddConstraint": "terms are few, and what the older constraints allowed fulfils the new ones",
    }

    dependencies = [
        ("sponsors", "0005_refused_requests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="policyversion",
            name="sponsors_policyversion_window_whole",
        ),
        migrations.RemoveConstraint(
            model_name="policyversion",
            name="sponsors_policyversion_limits_positive",
        ),
        migrations.AddField(
            model_name="policyversion",
            name="campaign_calls",
            field=models.BigIntegerField(
                blank=True,
                help_text="Maximum calls or new profiles in total.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AddField(
            model_name="policyversion",
            name="purpose",
            field=models.CharField(
                choices=[
                    ("calls", "Calls of profiles"),
                    ("profiles", "New profiles that the sponsor's server requests"),
                ],
                db_default="calls",
                default="calls",
                max_length=8,
                verbose_name="pays for",
            ),
        ),
        migrations.AddField(
            model_name="policyversion",
            name="window_calls",
            field=models.BigIntegerField(
                blank=True,
                help_text="Maximum calls or new profiles in each window.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1)],
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("window_calls__isnull", True),
                        ("window_credits__isnull", True),
                        ("window_seconds__isnull", True),
                    ),
                    models.Q(("window_credits__isnull", False), ("window_seconds__gte", 60)),
                    models.Q(("window_calls__isnull", False), ("window_seconds__gte", 60)),
                    _connector="OR",
                ),
                name="sponsors_policyversion_window_whole",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("call_credits__gte", 1),
                    ("campaign_calls__gte", 1),
                    ("campaign_credits__gte", 1),
                    ("user_calls__gte", 1),
                    ("user_credits__gte", 1),
                    ("user_day_credits__gte", 1),
                    ("window_calls__gte", 1),
                    ("window_credits__gte", 1),
                ),
                name="sponsors_policyversion_limits_positive",
            ),
        ),
        migrations.AddConstraint(
            model_name="policyversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("purpose", "profiles"), _negated=True),
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
    ]
