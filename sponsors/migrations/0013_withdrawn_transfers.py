from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "a longer varchar changes the catalogue alone, under a lock for an instant"}

    dependencies = [
        ("sponsors", "0012_clearer_texts"),
    ]

    operations = [
        migrations.AlterField(
            model_name="transfer",
            name="status",
            field=models.CharField(
                choices=[
                    ("waiting", "Waits for approval"),
                    ("moved", "Moved"),
                    ("refused", "Refused"),
                    ("withdrawn", "Withdrawn by the person"),
                ],
                max_length=9,
            ),
        ),
        migrations.AlterField(
            model_name="transfer",
            name="ended_at",
            field=models.DateTimeField(
                help_text="When the credits moved, or the transfer ended otherwise.", null=True
            ),
        ),
    ]
