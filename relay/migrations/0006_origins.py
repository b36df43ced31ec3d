from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AddIndex": "the table is new in this release and has few rows"}
    dependencies = [
        ("credits", "0005_paid_only"),
        ("relay", "0005_profile_creations"),
        ("sponsors", "0007_origins"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="profilecreation",
            name="origin",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddIndex(
            model_name="profilecreation",
            index=models.Index(
                condition=models.Q(("origin", ""), _negated=True),
                fields=["sponsor", "origin", "created_at"],
                name="profilecreation_of_origin",
            ),
        ),
    ]
