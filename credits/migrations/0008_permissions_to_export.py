from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("credits", "0007_entries_by_time"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="creditentry",
            options={
                "permissions": [("export_creditentry", "Can take the list of entries away")],
                "verbose_name_plural": "credit entries",
            },
        ),
    ]
