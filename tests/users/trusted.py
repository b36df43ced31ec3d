"""Code that is trusted from the beginning of a test."""

from users.models import TrustedImplementation

_Kind = TrustedImplementation.Kind


def trust_code(*, profile: str, key_manager: str) -> None:
    """Trust the implementations at these addresses, as two members of staff would."""
    for kind, address in ((_Kind.PROFILE, profile), (_Kind.KEY_MANAGER, key_manager)):
        TrustedImplementation.objects.get_or_create(kind=kind, address=address, defaults={"name": "tests"})
