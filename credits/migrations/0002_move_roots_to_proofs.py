from django.db import migrations


class Migration(migrations.Migration):
    """The tables stay: the first migration of `proofs` takes them over."""

    dependencies = [("credits", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel("RootTree"),
                migrations.DeleteModel("LedgerRoot"),
                migrations.DeleteModel("AccountSalt"),
                migrations.DeleteModel("ErasedEntry"),
            ]
        )
    ]
