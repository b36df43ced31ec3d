"""Finance may be done with an event that cannot be applied."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0007_items_are_found"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="stripeevent",
            options={
                "permissions": [
                    ("process_stripeevent", "Can have an event processed again"),
                    ("dismiss_stripeevent", "Can dismiss an event that cannot be applied"),
                ]
            },
        ),
        migrations.AlterField(
            model_name="stripeevent",
            name="outcome",
            field=models.CharField(
                blank=True,
                choices=[
                    ("applied", "Applied"),
                    ("not-ours", "Not Ours"),
                    ("nothing", "nothing to do"),
                    ("dismissed", "Dismissed"),
                ],
                default="",
                max_length=9,
            ),
        ),
    ]
