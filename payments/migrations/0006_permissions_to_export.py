"""Who may take the list of payouts away is a permission of its own."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0005_permissions_of_staff"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="payout",
            options={"permissions": [("export_payout", "Can take the list of payouts away")]},
        ),
    ]
