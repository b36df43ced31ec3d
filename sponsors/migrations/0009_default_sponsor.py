from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AddConstraint": "there are few sponsors, and the old code sets no default"}

    dependencies = [
        ("sponsors", "0008_verifiers"),
    ]

    operations = [
        migrations.AddField(
            model_name="sponsor",
            name="is_default",
            field=models.BooleanField(
                db_default=False,
                help_text="Calls of users without credits are offered to it, if no other sponsor pays.",
            ),
        ),
        migrations.AddConstraint(
            model_name="sponsor",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_default", True)),
                fields=("is_default",),
                name="sponsors_sponsor_one_default",
            ),
        ),
    ]
