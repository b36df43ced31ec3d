from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("relay", "0006_permissions_to_export"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(
                condition=models.Q(("request_id", ""), _negated=True),
                fields=["request_id"],
                name="relaytransaction_of_request",
            ),
        ),
    ]
