"""Staff search people by how an address begins or ends, in any casing."""

from django.db import migrations

_INDEXES = {
    "users_user_address_begin": "lower(profile_address) text_pattern_ops",
    "users_user_address_end": "reverse(lower(profile_address)) text_pattern_ops",
}


class Migration(migrations.Migration):
    dependencies = [
        ("users", "0005_roles"),
    ]

    operations = [
        migrations.RunSQL(f"CREATE INDEX {name} ON users_user ({columns})", f"DROP INDEX {name}")
        for name, columns in _INDEXES.items()
    ]
