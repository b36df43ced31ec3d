"""The groups of staff. What each may do is in `backoffice.roles`, and is brought in line after every migration."""

from typing import Any

from django.db import migrations

_ROLES = ("support", "finance", "operations")


def make_groups(apps: Any, _: Any) -> None:
    for name in _ROLES:
        apps.get_model("auth", "Group").objects.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("users", "0004_audit_log_of_decisions"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="signinsession",
            options={"permissions": [("revoke_signinsession", "Can end a session")]},
        ),
        migrations.RunPython(make_groups, migrations.RunPython.noop),
    ]
