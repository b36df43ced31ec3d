"""
Take over the tables of the roots from `credits`, as they are.

A trigger keeps its table protected while it gets another name. The new name and comment are those by which pgtrigger
knows the trigger of a model of this app. Permissions refer to content types, so that every group keeps its own.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
import pgtrigger.compiler
from django.db import migrations, models

_APPEND_ONLY = "RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;"
_NEVER_EMPTIED = "RAISE EXCEPTION 'the list of {} is append-only: % cannot be truncated', TG_TABLE_NAME;"


def _append_only(table, pgid, hash_):
    sql = pgtrigger.compiler.UpsertTriggerSql(
        func=_APPEND_ONLY, hash=hash_, operation="UPDATE OR DELETE", pgid=pgid, table=table, when="BEFORE"
    )
    return pgtrigger.compiler.Trigger(name="append_only", sql=sql)


def _never_emptied(table, noun, pgid, hash_):
    sql = pgtrigger.compiler.UpsertTriggerSql(
        condition="WHEN (left(current_database()::text, 5) <> 'test_')",
        func=_NEVER_EMPTIED.format(noun),
        hash=hash_,
        level="STATEMENT",
        operation="TRUNCATE",
        pgid=pgid,
        table=table,
        when="BEFORE",
    )
    return pgtrigger.compiler.Trigger(name="never_emptied", sql=sql)


def _rename(table, old, old_hash, new, new_hash):
    return migrations.RunSQL(_renaming(table, old, new, new_hash), _renaming(table, new, old, old_hash))


def _renaming(table, old, new, new_hash):
    return f"""
        ALTER TRIGGER {old} ON {table} RENAME TO {new};
        ALTER FUNCTION {old} RENAME TO {new};
        COMMENT ON TRIGGER {new} ON {table} IS '{new_hash}';
    """


_MOVE_CONTENT_TYPES = """
UPDATE django_content_type SET app_label = %s
WHERE app_label = %s AND model IN ('ledgerroot', 'roottree', 'accountsalt', 'erasedentry')
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("credits", "0002_move_roots_to_proofs"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="LedgerRoot",
                    fields=[
                        (
                            "number",
                            models.BigIntegerField(
                                help_text="Counts the roots from 1, without gaps.",
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("closed_at", models.DateTimeField()),
                        (
                            "last_entry_id",
                            models.BigIntegerField(help_text="The root covers new entries up to this id."),
                        ),
                        (
                            "entry_count",
                            models.IntegerField(help_text="Number of entries that the root covers."),
                        ),
                        (
                            "tree",
                            models.CharField(
                                help_text="RFC 6962 hash of the tree over its entries.", max_length=64
                            ),
                        ),
                        (
                            "previous",
                            models.CharField(
                                blank=True, help_text="Hash of the previous root.", max_length=64
                            ),
                        ),
                        (
                            "key_id",
                            models.CharField(help_text="Thumbprint of the key that signed.", max_length=64),
                        ),
                        (
                            "signature",
                            models.CharField(help_text="ES256 of the root, r and s in hex.", max_length=128),
                        ),
                    ],
                    options={
                        "db_table": "credits_root",
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("number__gte", 1)), name="credits_root_number_starts_at_1"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("entry_count__gte", 0)),
                                name="credits_root_count_not_negative",
                            ),
                        ],
                        "indexes": [
                            models.Index(fields=["last_entry_id", "number"], name="credits_root_of_entry")
                        ],
                        "triggers": [
                            _append_only(
                                "credits_root",
                                "pgtrigger_append_only_411df",
                                "98b20bc4f535d1f0b3851840f6dc69c18c5f8876",
                            ),
                            _never_emptied(
                                "credits_root",
                                "roots",
                                "pgtrigger_never_emptied_27fb3",
                                "dd981b45b29a26a5e99bd3ff9c840e1aafaf4d27",
                            ),
                        ],
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
                        (
                            "seed",
                            models.BinaryField(help_text="Random; each entry's salt is derived from it."),
                        ),
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
                        "triggers": [
                            _append_only(
                                "credits_roottree",
                                "pgtrigger_append_only_af825",
                                "8051e0e37ccf7aaee2e4a0b898cbe8083b3ce408",
                            ),
                            _never_emptied(
                                "credits_roottree",
                                "trees",
                                "pgtrigger_never_emptied_3d298",
                                "af3c9523d84689255ffda6c493bec0aff652e2b7",
                            ),
                        ],
                    },
                ),
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
                    options={"db_table": "credits_accountsalt"},
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
                    options={"db_table": "credits_erasedentry"},
                ),
            ]
        ),
        _rename(
            "credits_root",
            "pgtrigger_append_only_c4b6f",
            "16ee1270fbc0268cd876364fd450ec2fd2f6abb2",
            "pgtrigger_append_only_411df",
            "98b20bc4f535d1f0b3851840f6dc69c18c5f8876",
        ),
        _rename(
            "credits_root",
            "pgtrigger_never_emptied_f3ba3",
            "f254b58cd89da5d72e309bf7c616eca7cf8473db",
            "pgtrigger_never_emptied_27fb3",
            "dd981b45b29a26a5e99bd3ff9c840e1aafaf4d27",
        ),
        _rename(
            "credits_roottree",
            "pgtrigger_append_only_7bcfe",
            "5619a37db5231153a86781c6b140e5284fbc014b",
            "pgtrigger_append_only_af825",
            "8051e0e37ccf7aaee2e4a0b898cbe8083b3ce408",
        ),
        _rename(
            "credits_roottree",
            "pgtrigger_never_emptied_83409",
            "873787e9280888675bef7a472b7b2ffadda46dc5",
            "pgtrigger_never_emptied_3d298",
            "af3c9523d84689255ffda6c493bec0aff652e2b7",
        ),
        migrations.RunSQL(
            [(_MOVE_CONTENT_TYPES, ["proofs", "credits"])], [(_MOVE_CONTENT_TYPES, ["credits", "proofs"])]
        ),
    ]
