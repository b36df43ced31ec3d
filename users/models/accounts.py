"""Users, their profile cards, the notes that staff keep about them, and the deletion of accounts."""

from typing import ClassVar, Self

import pgtrigger
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.indexes import OpClass
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower, Now, Reverse
from django.dispatch import Signal

from gateway.common.fields import AddressField
from gateway.common.models import APPEND_ONLY

# Sent with `user` inside the transaction that creates a profile's user; receivers' rows commit with it.
user_created = Signal()


class User(AbstractUser):
    """
    A wallet user has a profile, its address as username, and no usable password; staff have no profile.

    A sponsor's member without a profile signs in with a password, and is neither a wallet user nor staff.
    """

    profile_address = AddressField(unique=True, null=True, blank=True)
    is_member = models.BooleanField(db_default=False, default=False, editable=False)

    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta(AbstractUser.Meta):
        permissions = [
            ("manage_staff", "Can request staff accounts, roles and credential resets"),
            ("decide_staff", "Can decide other people's requests about staff accounts"),
            ("ban_user", "Can ban people, and lift the bans of others"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(is_member=False) | Q(is_staff=False, is_superuser=False, profile_address=None),
                name="users_user_member_alone",
            )
        ]
        # Staff search users by the beginning or end of an address, in any casing.
        indexes = [
            models.Index(
                OpClass(Lower("profile_address"), "text_pattern_ops"), name="users_user_address_begin"
            ),
            models.Index(
                OpClass(Reverse(Lower("profile_address")), "text_pattern_ops"), name="users_user_address_end"
            ),
            # Few users are staff, and they are searched by name.
            models.Index(fields=["username"], condition=models.Q(is_staff=True), name="users_user_staff"),
        ]

    def __str__(self) -> str:
        return self.username


class BanQuerySet(models.QuerySet["Ban"]):
    def open(self) -> Self:
        """Keep the bans in force."""
        return self.filter(lifted_at=None)


class Ban(models.Model):
    """
    A person whom support has banned, until another member of support lifts it.

    While it is in force the account is inactive, and its owner gets the problem `account-banned`.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="bans", db_index=False)
    reason = models.CharField(max_length=500)
    banned_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    banned_at = models.DateTimeField()
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False
    )
    lifted_at = models.DateTimeField(null=True)

    objects = BanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(lifted_at__isnull=True), name="users_ban_once"
            ),
            models.CheckConstraint(
                condition=Q(lifted_at=None, lifted_by=None)
                | (Q(lifted_at__isnull=False, lifted_by__isnull=False) & ~Q(lifted_by=F("banned_by"))),
                name="users_ban_lifted_by_another",
            ),
        ]

    def __str__(self) -> str:
        return f"ban of user {self.user_id}"


class AccountDeletion(models.Model):
    """
    A request to delete an account, and its progress (`services.deletion`).

    The user's row stays, because accounting rows reference it; its personal data is removed.
    """

    class Status(models.TextChoices):
        REQUESTED = "requested", "Requested: subscription and customer at Stripe are being deleted"
        BILLING_ENDED = "billing-ended", "Deleted at Stripe; erased once all calls have ended"
        ERASED = "erased", "Erased"

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.PROTECT, related_name="deletion")
    status = models.CharField(max_length=16, choices=Status, default=Status.REQUESTED)
    waits_for = models.CharField(
        max_length=200, blank=True, default="", help_text="What it waited for at the last attempt."
    )
    requested_at = models.DateTimeField()
    billing_ended_at = models.DateTimeField(null=True)
    erased_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["requested_at"], condition=~Q(status="erased"), name="accountdeletion_unfinished"
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status="requested", billing_ended_at=None, erased_at=None)
                | Q(status="billing-ended", billing_ended_at__isnull=False, erased_at=None)
                | Q(status="erased", billing_ended_at__isnull=False, erased_at__isnull=False),
                name="accountdeletion_status_fits_times",
            )
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Trigger(
                name="erased_by_the_owner",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update,
                condition=pgtrigger.Q(new__status="erased"),
                declare=[("owner", "oid")],
                func="""
                    SELECT relowner INTO owner FROM pg_class WHERE oid = TG_RELID;
                    IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
                        RAISE insufficient_privilege USING MESSAGE = 'only the owner of the tables erases an account';
                    END IF;
                    RETURN NEW;
                """,
            )
        ]

    def __str__(self) -> str:
        return f"deletion of user {self.user_id}"


class ProfileCard(models.Model):
    """A profile's name and picture (LSP-3), as last read; empty if there are none."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="card")
    name = models.CharField(max_length=80, blank=True, default="")
    # A small picture of verified type and size; browsers never fetch the original.
    picture = models.BinaryField(default=bytes)
    picture_type = models.CharField(max_length=10, blank=True, default="")
    refreshed_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(OpClass(Lower("name"), "text_pattern_ops"), name="profilecard_name_begin"),
        ]

    def __str__(self) -> str:
        return self.name or f"user {self.user_id}"


class Note(models.Model):
    """A note by staff about a person: never changed, and erased with the account."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="notes")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ("add", "view")
        ordering = ("-pk",)
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="note_has_text")]
        # Tables with a trigger of this name are append-only for the application role; only the tables' owner erases.
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name=APPEND_ONLY.name, operation=pgtrigger.Update)
        ]

    def __str__(self) -> str:
        return f"note {self.pk}"
