"""Store terms of policies; freeze sponsors and switch policies off at once."""

from django.db import transaction
from django.db.models import Max, Model

from gateway.staff.form_kinds import Values
from sponsors.models import Policy, PolicyVersion, Sponsor


def save_version(version: PolicyVersion, values: Values) -> Model:
    """
    Store new terms as the next version of their policy.

    Raises:
        ValidationError: the terms contradict each other.
    """
    # Versions of a policy are numbered without gaps, so the lock serialises new ones.
    Policy.objects.select_for_update(no_key=True).get(pk=version.policy_id)
    newest = PolicyVersion.objects.filter(policy_id=version.policy_id).aggregate(Max("number"))["number__max"]
    version.number = (newest or 0) + 1
    version.full_clean()
    version.save(force_insert=True)
    return version


def freeze(sponsor: Sponsor, *, is_frozen: bool) -> str:
    """Freeze or unfreeze the sponsor from the next call on; return the outcome as a sentence."""
    Sponsor.objects.filter(pk=sponsor.pk).update(is_frozen=is_frozen)
    return "The sponsor is frozen." if is_frozen else "The sponsor is no longer frozen."


@transaction.atomic
def make_default(sponsor: Sponsor, *, is_default: bool) -> str:
    """Make the sponsor the default, which may pay when a user has too few credits, or stop that; return a sentence."""
    Sponsor.objects.filter(is_default=True).update(is_default=False)
    Sponsor.objects.filter(pk=sponsor.pk).update(is_default=is_default)
    return "The sponsor is now the default." if is_default else "No sponsor is the default now."


def enable(policy: Policy, *, is_enabled: bool) -> str:
    """Switch a policy on or off from the next call on; return the outcome as a sentence."""
    Policy.objects.filter(pk=policy.pk).update(is_enabled=is_enabled)
    return "The policy is switched on." if is_enabled else "The policy is switched off."
