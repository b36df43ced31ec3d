import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# The audit log records who made each key.
_MAKERS = """
UPDATE sponsors_apikey AS key SET created_by_id = log.user_id
FROM django_admin_log AS log JOIN django_content_type AS kind ON kind.id = log.content_type_id
WHERE kind.app_label = 'sponsors' AND kind.model = 'apikey' AND log.object_id = key.id::text
  AND log.change_message LIKE '%%"action": "make a key"%%' AND key.created_by_id IS NULL
"""


class Migration(migrations.Migration):
    reviewed = {"RunSQL": "a few rows, in a column that no statement of version 1.0 reads or writes"}

    dependencies = [
        ("sponsors", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="created_by",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(_MAKERS, migrations.RunSQL.noop),
    ]
