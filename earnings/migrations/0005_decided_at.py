from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("earnings", "0004_indexes_of_findings")]

    operations = [
        migrations.AddField(
            model_name="postback",
            name="decided_at",
            field=models.DateTimeField(help_text="When its state last changed by a decision.", null=True),
        ),
        AddIndexConcurrently(
            model_name="postback",
            index=models.Index(
                condition=models.Q(("user__isnull", False)),
                fields=["decided_at"],
                name="earnings_postback_decided",
            ),
        ),
    ]
