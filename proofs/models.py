"""
Signed roots over the entries of the ledger, and the salts that hide people in them.

A root covers every entry after the previous root, up to and including `last_entry_id`; its signature covers every
column. The tree could be computed again from the entries and the seed. It is stored so that a proof need not read the
other entries, and so that an audit can tell which entry differs.

The tables keep the prefix `credits_`: these models were part of that app.
"""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from credits.models import CreditAccount, CreditEntry
from gateway.common.models import APPEND_ONLY, never_emptied

_HASH_LETTERS, _SIGNATURE_LETTERS = 64, 128


class LedgerRoot(models.Model):
    number = models.BigIntegerField(primary_key=True, help_text="Counts the roots from 1, without gaps.")
    closed_at = models.DateTimeField()
    last_entry_id = models.BigIntegerField(help_text="The root covers new entries up to this id.")
    entry_count = models.IntegerField(help_text="Number of entries that the root covers.")
    tree = models.CharField(max_length=_HASH_LETTERS, help_text="RFC 6962 hash of the tree over its entries.")
    previous = models.CharField(max_length=_HASH_LETTERS, blank=True, help_text="Hash of the previous root.")
    key_id = models.CharField(max_length=_HASH_LETTERS, help_text="Thumbprint of the key that signed.")
    signature = models.CharField(
        max_length=_SIGNATURE_LETTERS, help_text="ES256 of the root, r and s in hex."
    )

    class Meta:
        db_table = "credits_root"
        constraints = [
            models.CheckConstraint(condition=Q(number__gte=1), name="credits_root_number_starts_at_1"),
            models.CheckConstraint(condition=Q(entry_count__gte=0), name="credits_root_count_not_negative"),
        ]
        indexes = [models.Index(fields=["last_entry_id", "number"], name="credits_root_of_entry")]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY, never_emptied("the list of roots")]

    def __str__(self) -> str:
        return f"root {self.number}: {self.entry_count} entries up to {self.last_entry_id}"


class RootTree(models.Model):
    """The seed, the entry ids and the hashes of a root's tree."""

    root = models.OneToOneField(
        LedgerRoot, models.PROTECT, primary_key=True, db_column="number", related_name="hashes"
    )
    seed = models.BinaryField(help_text="Random; each entry's salt is derived from it.")
    entry_ids = ArrayField(models.BigIntegerField(), help_text="In the order of the leaves.")
    nodes = models.BinaryField(help_text="32 bytes each: the leaves, then level after level up to the root.")

    class Meta:
        db_table = "credits_roottree"
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY, never_emptied("the list of trees")]


class AccountSalt(models.Model):
    """Random bytes that salt an account's profile and the reasons of its entries; deleted to erase the person."""

    account = models.OneToOneField(CreditAccount, models.PROTECT, primary_key=True, related_name="salt")
    salt = models.BinaryField()

    class Meta:
        db_table = "credits_accountsalt"


class ErasedEntry(models.Model):
    """The two hashes of an erased entry; with them its proof stays valid without salt and text."""

    entry = models.OneToOneField(CreditEntry, models.PROTECT, primary_key=True, related_name="erased")
    profile_hash = models.CharField(max_length=_HASH_LETTERS)
    reason_hash = models.CharField(max_length=_HASH_LETTERS)

    class Meta:
        db_table = "credits_erasedentry"
