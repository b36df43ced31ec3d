import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    reviewed = {"AddConstraint": "a sponsor has a few members"}

    dependencies = [
        ("sponsors", "0010_transfers"),
        ("users", "0008_members_without_a_profile"),
    ]

    operations = [
        migrations.CreateModel(
            name="MemberSession",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token_hash", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.AddField(
            model_name="member",
            name="email",
            field=models.EmailField(help_text="Of a member without a profile.", max_length=254, null=True),
        ),
        migrations.AddConstraint(
            model_name="member",
            constraint=models.UniqueConstraint(fields=("sponsor", "email"), name="sponsors_member_email"),
        ),
        migrations.AddField(
            model_name="membersession",
            name="member",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="sessions", to="sponsors.member"
            ),
        ),
    ]
