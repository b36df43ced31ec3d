"""Which contract code the service pays gas for."""

from relay.models import TrustedImplementation


def trust(*, kind: str, address: str, name: str) -> bool:
    """Trust the implementation at `address`; False where it was known. A deactivated one stays deactivated."""
    _, created = TrustedImplementation.objects.get_or_create(
        kind=kind, address=address, defaults={"name": name}
    )
    return created
