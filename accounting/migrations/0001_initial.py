import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("gateway_admin", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="CoinRate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("currency", models.CharField(max_length=3)),
                (
                    "price",
                    models.DecimalField(
                        decimal_places=8,
                        help_text="Price of one coin, in the currency's major unit.",
                        max_digits=20,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "permissions": [("import_coinrate", "Can import rates of the coin")],
                "constraints": [
                    models.UniqueConstraint(fields=("day", "currency"), name="coinrate_one_per_day"),
                    models.CheckConstraint(condition=models.Q(("price__gt", 0)), name="coinrate_positive"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Month",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "begins_on",
                    models.DateField(help_text="Its first day.", unique=True, verbose_name="month"),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("preparing", "Is being prepared"),
                            ("open", "Can be prepared again"),
                            ("closed", "Closed"),
                        ],
                        default="preparing",
                        max_length=10,
                    ),
                ),
                (
                    "rule_version",
                    models.PositiveSmallIntegerField(default=0, help_text="The version of the rule of lots."),
                ),
                (
                    "figures_until",
                    models.DateTimeField(
                        help_text="The figures contain everything before this time.", null=True
                    ),
                ),
                ("prepared_at", models.DateTimeField(null=True)),
                ("problems", models.JSONField(default=list)),
                ("closing", models.JSONField(default=dict)),
                ("digest", models.CharField(blank=True, default="", max_length=64)),
                ("closed_at", models.DateTimeField(null=True)),
                (
                    "approval",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="gateway_admin.approvalrequest",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("prepare_month", "Can prepare a month"),
                    ("close_month", "Can ask to close a month"),
                    ("decide_month", "Can decide other people's requests to close a month"),
                    ("export_month", "Can export months"),
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthSheet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=40)),
                ("place", models.PositiveSmallIntegerField()),
                ("part", models.PositiveIntegerField(default=0)),
                ("columns", models.JSONField()),
                ("rows", models.JSONField()),
                (
                    "month",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sheets",
                        to="accounting.month",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="month",
            constraint=models.CheckConstraint(
                condition=models.Q(("begins_on__day", 1)), name="month_begins_on_the_first"
            ),
        ),
        migrations.AddConstraint(
            model_name="month",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("approval__isnull", False),
                        ("closed_at__isnull", False),
                        ("problems", []),
                        ("status", "closed"),
                    ),
                    models.Q(
                        models.Q(("status", "closed"), _negated=True), ("approval", None), ("closed_at", None)
                    ),
                    _connector="OR",
                ),
                name="month_closed_by_approval",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="month",
            trigger=pgtrigger.compiler.Trigger(
                name="closed_for_good",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (OLD.\"status\" = 'closed')",
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="0e1833cf97c169caec25bae28bd0635e8526956f",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_closed_for_good_09c8b",
                    table="accounting_month",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddConstraint(
            model_name="monthsheet",
            constraint=models.UniqueConstraint(fields=("month", "place", "part"), name="monthsheet_part"),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="monthsheet",
            trigger=pgtrigger.compiler.Trigger(
                name="of_an_open_month",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="\nIF EXISTS (SELECT FROM accounting_month WHERE id IN (OLD.month_id, NEW.month_id) AND status = 'closed') THEN\n    RAISE EXCEPTION 'the month is closed';\nEND IF;\nIF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\nRETURN NEW;\n",
                    hash="3cfcc7ecc01eb1b28afc642c4adceddc4bd7294f",
                    operation="INSERT OR UPDATE OR DELETE",
                    pgid="pgtrigger_of_an_open_month_6c221",
                    table="accounting_monthsheet",
                    when="BEFORE",
                ),
            ),
        ),
    ]
