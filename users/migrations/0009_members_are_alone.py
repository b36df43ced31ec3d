from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("users", "0008_members_without_a_profile"),
    ]

    operations = [
        ValidateConstraint(model_name="user", name="users_user_member_alone"),
    ]
