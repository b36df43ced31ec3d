import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AlterField": "choices alone; no statement runs"}

    dependencies = [
        ("webhooks", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="created_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="disabled_by",
            field=models.CharField(
                blank=True,
                choices=[
                    ("staff", "staff"),
                    ("gone", "the receiver, which answered 410"),
                    ("failing", "failing for days"),
                    ("sponsor", "its sponsor, who has deleted it"),
                    ("left", "the end of its maker's membership"),
                ],
                default="",
                editable=False,
                max_length=8,
            ),
        ),
    ]
