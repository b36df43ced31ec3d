from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credits", "0008_permissions_to_export"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="postback",
            index=models.Index(
                condition=models.Q(("request_id", ""), _negated=True),
                fields=["request_id"],
                name="credits_postback_request",
            ),
        ),
    ]
