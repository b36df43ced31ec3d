"""Begin with a ceiling for the credits that the service gives in a UTC day without money or an earning behind them."""

from django.db import migrations

CEILING = 1_000_000


class Migration(migrations.Migration):
    dependencies = [("credits", "0002_initial")]

    operations = [
        migrations.RunSQL(
            [("INSERT INTO credits_unbackedceiling (credits) VALUES (%s)", [CEILING])], migrations.RunSQL.noop
        )
    ]
