import django.contrib.postgres.fields
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("credits", "0002_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="AccountSalt",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="salt",
                        serialize=False,
                        to="credits.creditaccount",
                    ),
                ),
                ("salt", models.BinaryField()),
            ],
            options={
                "db_table": "credits_accountsalt",
            },
        ),
        migrations.CreateModel(
            name="ErasedEntry",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="erased",
                        serialize=False,
                        to="credits.creditentry",
                    ),
                ),
                ("profile_hash", models.CharField(max_length=64)),
                ("reason_hash", models.CharField(max_length=64)),
            ],
            options={
                "db_table": "credits_erasedentry",
            },
        ),
        migrations.CreateModel(
            name="LedgerRoot",
            fields=[
                (
                    "number",
                    models.BigIntegerField(
                        help_text="Counts the roots from 1, without gaps.", primary_key=True, serialize=False
                    ),
                ),
                ("closed_at", models.DateTimeField()),
                (
                    "last_entry_id",
                    models.BigIntegerField(help_text="The root covers new entries up to this id."),
                ),
                ("entry_count", models.IntegerField(help_text="Number of entries that the root covers.")),
                (
                    "tree",
                    models.CharField(help_text="RFC 6962 hash of the tree over its entries.", max_length=64),
                ),
                (
                    "previous",
                    models.CharField(blank=True, help_text="Hash of the previous root.", max_length=64),
                ),
                ("key_id", models.CharField(help_text="Thumbprint of the key that signed.", max_length=64)),
                (
                    "signature",
                    models.CharField(help_text="ES256 of the root, r and s in hex.", max_length=128),
                ),
            ],
            options={
                "db_table": "credits_root",
            },
        ),
        migrations.CreateModel(
            name="RootTree",
            fields=[
                (
                    "root",
                    models.OneToOneField(
                        db_column="number",
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="hashes",
                        serialize=False,
                        to="proofs.ledgerroot",
                    ),
                ),
                ("seed", models.BinaryField(help_text="Random; each entry's salt is derived from it.")),
                (
                    "entry_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(),
                        help_text="In the order of the leaves.",
                        size=None,
                    ),
                ),
                (
                    "nodes",
                    models.BinaryField(
                        help_text="32 bytes each: the leaves, then level after level up to the root."
                    ),
                ),
            ],
            options={
                "db_table": "credits_roottree",
            },
        ),
        migrations.AddIndex(
            model_name="ledgerroot",
            index=models.Index(fields=["last_entry_id", "number"], name="credits_root_of_entry"),
        ),
        migrations.AddConstraint(
            model_name="ledgerroot",
            constraint=models.CheckConstraint(
                condition=models.Q(("number__gte", 1)), name="credits_root_number_starts_at_1"
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerroot",
            constraint=models.CheckConstraint(
                condition=models.Q(("entry_count__gte", 0)), name="credits_root_count_not_negative"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ledgerroot",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="98b20bc4f535d1f0b3851840f6dc69c18c5f8876",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_411df",
                    table="credits_root",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ledgerroot",
            trigger=pgtrigger.compiler.Trigger(
                name="never_emptied",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (left(current_database()::text, 5) <> 'test_')",
                    func="RAISE EXCEPTION 'the list of roots is append-only: % cannot be truncated', TG_TABLE_NAME;",
                    hash="dd981b45b29a26a5e99bd3ff9c840e1aafaf4d27",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_27fb3",
                    table="credits_root",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="roottree",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="8051e0e37ccf7aaee2e4a0b898cbe8083b3ce408",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_af825",
                    table="credits_roottree",
                    when="BEFORE",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="roottree",
            trigger=pgtrigger.compiler.Trigger(
                name="never_emptied",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (left(current_database()::text, 5) <> 'test_')",
                    func="RAISE EXCEPTION 'the list of trees is append-only: % cannot be truncated', TG_TABLE_NAME;",
                    hash="af3c9523d84689255ffda6c493bec0aff652e2b7",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_never_emptied_3d298",
                    table="credits_roottree",
                    when="BEFORE",
                ),
            ),
        ),
    ]
