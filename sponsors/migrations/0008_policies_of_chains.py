from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("sponsors", "0007_origins"),
    ]

    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="chain_id",
            field=models.BigIntegerField(
                blank=True,
                help_text="The id of the chain whose calls it pays for; empty for the home chain. Targets, tokens and followed profiles are contracts of this chain.",
                null=True,
                verbose_name="chain",
            ),
        ),
        migrations.AddField(
            model_name="refusedrequest",
            name="chain_id",
            field=models.BigIntegerField(
                help_text="Empty for requests before there were several.", null=True, verbose_name="chain"
            ),
        ),
    ]
