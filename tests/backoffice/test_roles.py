"""Roles: one table, and groups that match it."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from backoffice import roles
from gateway.staff import approval_kinds

pytestmark = pytest.mark.django_db
# What a role may do in the app that manages staff accounts.
_OF_USERS = {
    "revoke_signinsession",
    "add_trustedimplementation",
    "change_trustedimplementation",
    "decide_trustedimplementation",
    "ban_user",
    # Words about a person.
    "add_note",
    # These ask and decide; a staff account needs two people.
    "manage_staff",
    "decide_staff",
}


def names_of(role: str) -> set[str]:
    permissions = Group.objects.get(name=role).permissions.select_related("content_type")
    return {f"{one.content_type.app_label}.{one.codename}" for one in permissions}


@pytest.mark.parametrize("role", sorted(roles.ROLES))
def test_every_name_of_the_table_is_a_permission_and_the_group_has_just_these(role: str) -> None:
    wanted = roles.ROLES[role]
    assert len(set(wanted)) == len(wanted)
    for name in wanted:
        assert list(roles.permissions_of(name)), name
    expected = {
        f"{one.content_type.app_label}.{one.codename}"
        for name in wanted
        for one in roles.permissions_of(name)
    }
    assert names_of(role) == expected


def test_the_next_migration_resets_a_changed_group() -> None:
    group = Group.objects.get(name="support")
    before = names_of("support")
    stray = Permission.objects.get(codename="change_user")
    group.permissions.add(stray)
    group.permissions.remove(Permission.objects.get(codename="adjust_credits"))
    Group.objects.get(name="finance").delete()
    call_command("migrate", verbosity=0)
    assert names_of("support") == before
    assert "credits.decide_adjustment" in names_of("finance")
    roles.synchronise()
    assert names_of("support") == before


def test_no_role_can_create_staff_or_change_their_second_factors() -> None:
    for role in roles.ROLES:
        for name in names_of(role):
            app, codename = name.split(".")
            assert app in roles.OURS
            assert app != "users" or codename.startswith("view_") or codename in _OF_USERS


def test_no_role_can_decide_its_own_requests() -> None:
    for role in roles.ROLES:
        names = names_of(role)
        assert not {kind.name for kind in approval_kinds.kinds() if {kind.asks, kind.decides} <= names}
