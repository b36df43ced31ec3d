"""Trust the implementations that LUKSO documents for its networks."""

from django.db import migrations

KNOWN = [
    ("profile", "UniversalProfileInit 0.12.1", "0x52c90985AF970D4E0DC26Cb5D052505278aF32A9"),
    ("profile", "UniversalProfileInit 0.14.0", "0x3024D38EA2434BA6635003Dc1BDC0daB5882ED4F"),
    ("key-manager", "LSP6KeyManagerInit 0.12.1", "0xa75684d7D048704a2DB851D05Ba0c3cbe226264C"),
    ("key-manager", "LSP6KeyManagerInit 0.14.0", "0x2Fe3AeD98684E7351aD2D408A43cE09a738BF8a4"),
]


def trust(apps, schema_editor):
    implementations = apps.get_model("users", "TrustedImplementation").objects
    for kind, name, address in KNOWN:
        implementations.get_or_create(kind=kind, address=address, defaults={"name": name})


class Migration(migrations.Migration):
    dependencies = [("users", "0001_initial")]

    operations = [migrations.RunPython(trust, migrations.RunPython.noop)]
