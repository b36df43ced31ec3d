from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("users", "0007_invitation"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="is_member",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        AddConstraintNotValid(
            model_name="user",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("is_member", False),
                    models.Q(("is_staff", False), ("is_superuser", False), ("profile_address", None)),
                    _connector="OR",
                ),
                name="users_user_member_alone",
            ),
        ),
    ]
