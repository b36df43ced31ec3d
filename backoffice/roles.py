"""
The permissions of each staff role in one table, and the groups derived from it.

A role is a Django group; people with several roles are in several groups, and no one has individual permissions.
Everything else is for superusers, whose requests also need approval by a person with another role
(`gateway.staff.approvals`).
"""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import transaction

# Every role may view the rows of these apps.
OURS = (
    "users",
    "credits",
    "sponsors",
    "proofs",
    "rewards",
    "earnings",
    "relay",
    "payments",
    "checkin",
    "accounting",
    "gateway_admin",
    "webhooks",
)

ROLES: dict[str, tuple[str, ...]] = {
    "support": (
        *(f"{app}.view_*" for app in OURS),
        "credits.adjust_credits",
        "sponsors.fund_sponsor",
        "rewards.add_modifier",
        "payments.process_stripeevent",
        "payments.cancel_subscription",
        "payments.refund_payout",
        "payments.send_refund",
        "users.revoke_signinsession",
        "users.ban_user",
        "users.add_note",
        "webhooks.resend_message",
    ),
    "finance": (
        *(f"{app}.view_*" for app in OURS),
        "gateway_admin.decide_approvalrequest",
        # Requests of support and operations.
        "credits.decide_adjustment",
        "rewards.decide_modifier",
        "payments.decide_refund",
        "earnings.decide_adnetwork",
        "users.decide_trustedimplementation",
        "users.add_note",
        "relay.decide_relayer",
        "users.decide_staff",
        "earnings.decide_earning",
        "payments.add_payoutrate",
        "relay.add_creditprice",
        "credits.add_expiryrule",
        "credits.add_unbackedceiling",
        "sponsors.add_sponsor",
        "sponsors.add_member",
        "sponsors.add_policy",
        "sponsors.add_policyversion",
        "sponsors.add_vouchersigner",
        "sponsors.add_verifier",
        "sponsors.freeze_sponsor",
        "payments.change_creditpack",
        "credits.run_stripe_reconciliation",
        "payments.dismiss_stripeevent",
        "credits.run_reconciliation",
        "accounting.add_coinrate",
        "accounting.change_coinrate",
        "accounting.import_coinrate",
        "accounting.prepare_month",
        "accounting.close_month",
        "accounting.export_month",
        "payments.export_payout",
        "payments.export_refund",
        "payments.export_clawback",
        "payments.export_purchase",
        "credits.export_creditentry",
        "credits.export_creditaccount",
        "relay.export_relaytransaction",
        "relay.export_attempt",
        # Rewards: drafts of drop tables, and requests.
        "checkin.add_droptable",
        "checkin.change_droptable",
        "checkin.delete_droptable",
        "checkin.add_dropitem",
        "checkin.change_dropitem",
        "checkin.delete_dropitem",
        "checkin.publish_droptable",
        "rewards.add_badge",
        "rewards.change_badge",
        "rewards.delete_badge",
    ),
    "operations": (
        *(f"{app}.view_*" for app in OURS),
        "gateway_admin.decide_approvalrequest",
        # Requests of finance.
        "payments.decide_payoutrate",
        "relay.decide_creditprice",
        "credits.decide_expiryrule",
        "accounting.decide_month",
        "credits.decide_unbackedceiling",
        "sponsors.decide_policyversion",
        "sponsors.freeze_sponsor",
        "payments.decide_creditpack",
        "earnings.decide_release",
        "rewards.decide_badge",
        "checkin.decide_droptable",
        "credits.run_reconciliation",
        "relay.pause_relayer",
        "relay.add_spare_relayer",
        "relay.rebroadcast_relaytransaction",
        "relay.cancel_relaytransaction",
        "relay.release_orphaned_hold",
        "users.manage_staff",
        "users.add_trustedimplementation",
        "users.change_trustedimplementation",
        "earnings.add_adnetwork",
        "earnings.change_adnetwork",
        "gateway_admin.add_pause",
        "webhooks.add_endpoint",
        "webhooks.change_endpoint",
        "webhooks.resend_message",
    ),
}


@transaction.atomic
def synchronise(**_: Any) -> None:
    """
    Give each role's group exactly the permissions in the table; idempotent.

    Runs after every migration. Permissions that do not exist yet, because the database is at
    an older migration, are added by a later run.
    """
    for role, names in ROLES.items():
        group, _created = Group.objects.get_or_create(name=role)
        group.permissions.set(permission for name in names for permission in permissions_of(name))


def permissions_of(name: str) -> Iterator[Permission]:
    """Yield the permissions of `app.codename`; `app.view_*` stands for all view permissions of the app."""
    app, codename = name.split(".")
    permissions = Permission.objects.filter(content_type__app_label=app)
    if codename == "view_*":
        yield from permissions.filter(codename__startswith="view_")
    else:
        yield from permissions.filter(codename=codename)
