import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {
        "AddConstraint": "sponsors are few, and the columns are new, so that the scan finds nothing wrong"
    }

    dependencies = [
        ("sponsors", "0003_terms_stay"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BudgetUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope", models.CharField(choices=[("day", "Day"), ("month", "Month")], max_length=5)),
                ("begins", models.DateTimeField()),
                ("credits", models.BigIntegerField()),
            ],
            options={
                "verbose_name_plural": "budget use",
            },
        ),
        migrations.AddField(
            model_name="policyversion",
            name="created_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="sponsor",
            name="day_credits",
            field=models.BigIntegerField(
                editable=False, help_text="The budget of a UTC day, of all policies together.", null=True
            ),
        ),
        migrations.AddField(
            model_name="sponsor",
            name="month_credits",
            field=models.BigIntegerField(
                editable=False, help_text="The budget of a UTC month, of all policies together.", null=True
            ),
        ),
        migrations.AddField(
            model_name="sponsor",
            name="opened_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                help_text="The person who opened it without staff.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="opened_sponsors",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="vouchersigner",
            name="created_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="sponsor",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("day_credits__isnull", True), ("month_credits__isnull", True)),
                    models.Q(
                        ("day_credits__gte", 1),
                        ("day_credits__isnull", False),
                        ("month_credits__gte", 1),
                        ("month_credits__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="sponsors_sponsor_budget",
            ),
        ),
        migrations.AddField(
            model_name="budgetuse",
            name="sponsor",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="budget_use",
                to="sponsors.sponsor",
            ),
        ),
        migrations.AddConstraint(
            model_name="budgetuse",
            constraint=models.UniqueConstraint(
                fields=("sponsor", "scope", "begins"), name="sponsors_budgetuse_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="budgetuse",
            constraint=models.CheckConstraint(
                condition=models.Q(("credits__gte", 0)), name="sponsors_budgetuse_not_negative"
            ),
        ),
    ]
