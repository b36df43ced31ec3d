import django.utils.timezone
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

import gateway.common.fields

_ADD = "ALTER TABLE relay_relaytransaction ADD COLUMN credit_wei numeric(78, 0) NOT NULL DEFAULT {}"
_OF_CHAIN = "UPDATE relay_relaytransaction SET credit_wei = %s WHERE chain_id = %s"
_NO_DEFAULT = "ALTER TABLE relay_relaytransaction ALTER COLUMN credit_wei DROP DEFAULT"


def begin(apps, schema_editor):
    """Begin with the prices of the settings, at which all calls so far were charged."""
    prices = apps.get_model("relay", "CreditPrice").objects
    of_chains = {settings.CHAIN_ID: settings.CREDIT_WEI}
    of_chains |= {chain.id: chain.credit_wei for chain in settings.CHAINS.values()}
    for chain_id, credit_wei in of_chains.items():
        prices.create(chain_id=chain_id, credit_wei=credit_wei, is_first=True)


def price_calls(apps, schema_editor):
    """Give every call the price of its chain. A default that is constant is stored once, for all rows of the table."""
    schema_editor.execute(_ADD.format(int(settings.CREDIT_WEI)))
    schema_editor.execute(_NO_DEFAULT)
    for chain in settings.CHAINS.values():
        schema_editor.execute(_OF_CHAIN, [chain.credit_wei, chain.id])


def unprice_calls(apps, schema_editor):
    schema_editor.execute("ALTER TABLE relay_relaytransaction DROP COLUMN credit_wei")


class Migration(migrations.Migration):
    reviewed = {
        "RunPython": "the column has a constant default, so no row is rewritten; a trigger fills it for the old code"
    }

    dependencies = [("relay", "0003_extra_fees")]

    operations = [
        migrations.CreateModel(
            name="CreditPrice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField(verbose_name="chain")),
                (
                    "credit_wei",
                    gateway.common.fields.Uint256Field(
                        help_text="The wei of the chain's coin that one credit pays for.",
                        verbose_name="wei of a credit",
                    ),
                ),
                ("valid_from", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("is_first", models.BooleanField(default=False, editable=False)),
            ],
            options={
                "permissions": [
                    ("decide_creditprice", "Can decide other people's requests about prices of a credit")
                ],
            },
        ),
        migrations.AddField(
            model_name="quote",
            name="credit_wei",
            field=gateway.common.fields.Uint256Field(
                help_text="The wei of a credit that the quote and its call use.", null=True
            ),
        ),
        migrations.AddConstraint(
            model_name="creditprice",
            constraint=models.UniqueConstraint(
                fields=("chain_id", "valid_from"), name="creditprice_one_per_moment"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditprice",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_first", True)), fields=("chain_id",), name="creditprice_first"
            ),
        ),
        migrations.AddConstraint(
            model_name="creditprice",
            constraint=models.CheckConstraint(
                condition=models.Q(("credit_wei__gt", 0)), name="creditprice_positive"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="creditprice",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="0397d49c0807f97d1c10acd53f4462a3b38c766b",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_4f465",
                    table="relay_creditprice",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.RunPython(begin, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddField(
                    model_name="relaytransaction",
                    name="credit_wei",
                    field=gateway.common.fields.Uint256Field(default=0),
                    preserve_default=False,
                ),
            ],
            database_operations=[migrations.RunPython(price_calls, unprice_calls)],
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="relaytransaction",
            trigger=pgtrigger.compiler.Trigger(
                name="first_price",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (NEW.credit_wei IS NULL)",
                    func="\nSELECT credit_wei INTO NEW.credit_wei FROM relay_creditprice WHERE chain_id = NEW.chain_id AND is_first;\nRETURN NEW;\n",
                    hash="fa46f4cc2dba33f611bf425fbb8e9dbdb4187ef7",
                    operation="INSERT",
                    pgid="pgtrigger_first_price_fffd5",
                    table="relay_relaytransaction",
                    when="BEFORE",
                ),
            ),
        ),
    ]
