from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("payments", "0006_permissions_to_export"),
    ]

    operations = [
        migrations.AlterField(
            model_name="subscription",
            name="stripe_item_id",
            field=models.CharField(db_index=True, max_length=255),
        ),
    ]
