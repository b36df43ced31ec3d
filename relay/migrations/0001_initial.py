import uuid

import django.contrib.postgres.indexes
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

import gateway.common.fields


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("credits", "0002_initial"),
        ("sponsors", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FinalBlock",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField(unique=True)),
                ("number", models.BigIntegerField()),
                ("block_hash", models.CharField(max_length=66)),
                (
                    "replaced_at",
                    models.DateTimeField(
                        help_text="Since when the chain has had another block at this height.", null=True
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Relayer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("address", gateway.common.fields.AddressField()),
                ("next_account_nonce", models.BigIntegerField()),
                ("mined_account_nonce", models.BigIntegerField()),
                ("balance_wei", gateway.common.fields.Uint256Field(default=0)),
                (
                    "is_active",
                    models.BooleanField(default=True, help_text="An inactive relayer takes no new calls."),
                ),
                (
                    "quarantined_at",
                    models.DateTimeField(
                        help_text="When the chain showed that this key is used elsewhere; staff must resume it.",
                        null=True,
                    ),
                ),
                (
                    "has_code",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="The account has code (EIP-7702), so nodes take one of its transactions at a time.",
                    ),
                ),
                (
                    "retired_at",
                    models.DateTimeField(
                        help_text="A retired relayer is neither funded nor tracked.", null=True
                    ),
                ),
                ("synced_at", models.DateTimeField(null=True)),
                ("timeline", models.BigIntegerField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "permissions": [
                    ("pause_relayer", "Can pause and resume a relayer"),
                    ("add_spare_relayer", "Can retire a relayer, and ask to add or bring back one"),
                    ("decide_relayer", "Can decide other people's requests about relayers"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("chain_id", "address"), name="relayer_address"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_active", False),
                            models.Q(("quarantined_at__isnull", True), ("retired_at__isnull", True)),
                            _connector="OR",
                        ),
                        name="relayer_active_in_service",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RelayTransaction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("profile_address", gateway.common.fields.AddressField()),
                ("key_manager_address", gateway.common.fields.AddressField()),
                ("controller_address", gateway.common.fields.AddressField()),
                ("digest", gateway.common.fields.HashField()),
                ("generation", models.PositiveSmallIntegerField(default=0)),
                ("channel", gateway.common.fields.Uint256Field()),
                ("relay_nonce", gateway.common.fields.Uint256Field()),
                ("validity", gateway.common.fields.Uint256Field(default=0)),
                ("payload", models.BinaryField()),
                ("signature", models.BinaryField()),
                ("is_follower", models.BooleanField(default=False)),
                ("is_superseded", models.BooleanField(db_default=False)),
                ("transaction_hash", gateway.common.fields.HashField()),
                ("gas_limit", models.BigIntegerField()),
                ("expected_cost", models.BigIntegerField()),
                ("real_cost", models.BigIntegerField(default=0)),
                ("quoted_cost", models.BigIntegerField(null=True)),
                ("credits_before", models.BigIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Submitted", "Submitted"),
                            ("Success", "Success"),
                            ("Failed", "Failed"),
                            ("Expired", "Expired"),
                            ("Cancelled", "Cancelled"),
                            ("ExecutedExternally", "Executed Externally"),
                        ],
                        default="Pending",
                        max_length=20,
                    ),
                ),
                (
                    "terminal_status",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("Pending", "Pending"),
                            ("Submitted", "Submitted"),
                            ("Success", "Success"),
                            ("Failed", "Failed"),
                            ("Expired", "Expired"),
                            ("Cancelled", "Cancelled"),
                            ("ExecutedExternally", "Executed Externally"),
                        ],
                        default="",
                        max_length=20,
                    ),
                ),
                ("failure_code", models.CharField(blank=True, default="", max_length=64)),
                ("failure_detail", models.TextField(blank=True, default="")),
                ("request_id", models.CharField(blank=True, default="", max_length=64)),
                ("created_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
                (
                    "hold",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="relay_transaction",
                        to="credits.credithold",
                    ),
                ),
                (
                    "relayer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="transactions",
                        to="relay.relayer",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="relay_transactions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("rebroadcast_relaytransaction", "Can broadcast a relay transaction again"),
                    ("cancel_relaytransaction", "Can cancel a relay transaction that was never broadcast"),
                    ("release_orphaned_hold", "Can release a hold that nothing can close any more"),
                    ("export_relaytransaction", "Can export relay transactions"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("account_nonce", models.BigIntegerField()),
                ("sequence", models.PositiveSmallIntegerField(default=0)),
                (
                    "kind",
                    models.CharField(
                        choices=[("call", "Call"), ("cancellation", "Cancellation")],
                        default="call",
                        max_length=12,
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("signed", "Signed"),
                            ("sent", "Sent"),
                            ("replaced", "Replaced"),
                            ("withdrawn", "Withdrawn"),
                            ("mined", "Mined"),
                        ],
                        default="signed",
                        max_length=12,
                    ),
                ),
                ("transaction_hash", gateway.common.fields.HashField()),
                ("raw", models.BinaryField()),
                ("gas_limit", models.BigIntegerField()),
                ("max_fee_per_gas_wei", gateway.common.fields.Uint256Field()),
                ("max_priority_fee_per_gas_wei", gateway.common.fields.Uint256Field()),
                ("node_message", models.TextField(blank=True, default="")),
                ("block_number", models.BigIntegerField(null=True)),
                ("block_hash", models.CharField(blank=True, default="", max_length=66)),
                ("succeeded", models.BooleanField(null=True)),
                ("gas_used", models.BigIntegerField(null=True)),
                ("effective_gas_price_wei", gateway.common.fields.Uint256Field(null=True)),
                ("created_at", models.DateTimeField()),
                ("first_sent_at", models.DateTimeField(null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "mined_at",
                    models.DateTimeField(help_text="When the service first read its block.", null=True),
                ),
                (
                    "relayer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="relay.relayer",
                    ),
                ),
                (
                    "relay_transaction",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="relay.relaytransaction",
                    ),
                ),
            ],
            options={
                "permissions": [("export_attempt", "Can export attempts")],
            },
        ),
        migrations.CreateModel(
            name="ReversedSettlement",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveSmallIntegerField(help_text="0 for the call's first settlement.")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("Pending", "Pending"),
                            ("Submitted", "Submitted"),
                            ("Success", "Success"),
                            ("Failed", "Failed"),
                            ("Expired", "Expired"),
                            ("Cancelled", "Cancelled"),
                            ("ExecutedExternally", "Executed Externally"),
                        ],
                        max_length=20,
                    ),
                ),
                ("failure_code", models.CharField(blank=True, default="", max_length=64)),
                ("real_cost", models.BigIntegerField()),
                ("transaction_hash", gateway.common.fields.HashField()),
                ("block_number", models.BigIntegerField()),
                ("block_hash", models.CharField(max_length=66)),
                ("settled_at", models.DateTimeField()),
                ("reversed_at", models.DateTimeField()),
                (
                    "relay_transaction",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversed_settlements",
                        to="relay.relaytransaction",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TopUp",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("treasury_address", gateway.common.fields.AddressField()),
                ("account_nonce", models.BigIntegerField()),
                ("sequence", models.PositiveSmallIntegerField(default=0)),
                ("amount_wei", gateway.common.fields.Uint256Field()),
                ("max_fee_per_gas_wei", gateway.common.fields.Uint256Field()),
                ("max_priority_fee_per_gas_wei", gateway.common.fields.Uint256Field()),
                ("transaction_hash", gateway.common.fields.HashField()),
                ("raw", models.BinaryField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("sent", "Sent"),
                            ("replaced", "Replaced"),
                            ("mined", "Mined"),
                            ("lost", "Lost"),
                        ],
                        default="sent",
                        max_length=12,
                    ),
                ),
                ("fee_wei", gateway.common.fields.Uint256Field(null=True)),
                ("block_number", models.BigIntegerField(null=True)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "relayer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="top_ups",
                        to="relay.relayer",
                    ),
                ),
            ],
            options={
                "verbose_name": "top-up",
            },
        ),
        migrations.CreateModel(
            name="Treasury",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("address", gateway.common.fields.AddressField()),
                ("balance_wei", gateway.common.fields.Uint256Field(default=0)),
                ("synced_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "treasuries",
                "constraints": [
                    models.UniqueConstraint(fields=("chain_id", "address"), name="treasury_address")
                ],
            },
        ),
        migrations.CreateModel(
            name="UnsignedCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("account_nonce", models.BigIntegerField()),
                ("key_manager_address", gateway.common.fields.AddressField()),
                ("controller_address", gateway.common.fields.AddressField()),
                ("relay_nonce", gateway.common.fields.Uint256Field()),
                ("worst_cost_wei", gateway.common.fields.Uint256Field()),
                (
                    "call",
                    models.JSONField(
                        help_text="The argument of `relay_insert_calls`, without the signed bytes."
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                (
                    "hold",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="unsigned_call",
                        to="credits.credithold",
                    ),
                ),
                (
                    "relayer",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="unsigned_calls",
                        to="relay.relayer",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WorkerLoop",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                ("name", models.CharField(max_length=32)),
                ("ended_at", models.DateTimeField(null=True)),
                ("succeeded_at", models.DateTimeField(null=True)),
                ("moved_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("chain_id", "name"), name="workerloop_name")],
            },
        ),
        migrations.CreateModel(
            name="Loss",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("chain_id", models.BigIntegerField()),
                (
                    "key",
                    models.CharField(help_text="Idempotency key, which names the cause.", max_length=255),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("replacement", "replacement that costs more than the hold"),
                            ("cancellation", "self-transfer that cancels a call"),
                            ("untrusted", "call of untrusted code"),
                            ("gap", "self-transfer that fills a gap"),
                            ("quote", "quote"),
                        ],
                        max_length=16,
                    ),
                ),
                ("reserved_wei", gateway.common.fields.Uint256Field()),
                ("lost_wei", gateway.common.fields.Uint256Field(null=True)),
                ("reserved_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="losses",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "losses",
                "indexes": [
                    models.Index(fields=["chain_id", "settled_at"], name="loss_by_time"),
                    models.Index(
                        condition=models.Q(("settled_at__isnull", True)),
                        fields=["chain_id"],
                        name="loss_in_flight",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("chain_id", "key"), name="loss_key"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lost_wei__isnull", True), ("settled_at__isnull", True)),
                            models.Q(("lost_wei__isnull", False), ("settled_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="loss_settled_whole",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Quote",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("chain_id", models.BigIntegerField()),
                ("digest", gateway.common.fields.HashField()),
                ("credits", models.BigIntegerField()),
                (
                    "gas_limit",
                    models.BigIntegerField(help_text="The highest gas limit that the quote covers."),
                ),
                (
                    "max_fee_per_gas_wei",
                    gateway.common.fields.Uint256Field(
                        help_text="The highest fee that the loss reservation covers."
                    ),
                ),
                ("expires_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                (
                    "sponsor_version",
                    models.ForeignKey(
                        db_index=False,
                        help_text="The version of a sponsor's policy that pays.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="sponsors.policyversion",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="quote_by_expiry")],
            },
        ),
        migrations.CreateModel(
            name="GapFiller",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("account_nonce", models.BigIntegerField()),
                ("transaction_hash", gateway.common.fields.HashField()),
                ("raw", models.BinaryField()),
                ("max_fee_per_gas_wei", gateway.common.fields.Uint256Field()),
                ("max_priority_fee_per_gas_wei", gateway.common.fields.Uint256Field()),
                ("node_message", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "relayer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="gap_fillers",
                        to="relay.relayer",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("relayer", "account_nonce"), name="gapfiller_account_nonce"
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="relaytransaction",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["created_at"], name="relaytransaction_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(fields=["user", "-id"], name="relaytransaction_of_user"),
        ),
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(
                condition=models.Q(("status__in", ("Failed", "Expired", "Cancelled", "ExecutedExternally"))),
                fields=["user", "-settled_at"],
                name="relaytransaction_of_limits",
            ),
        ),
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(
                condition=models.Q(("status__in", ("Failed", "Expired", "Cancelled", "ExecutedExternally"))),
                fields=["status", "-id"],
                name="relaytransaction_unsuccessful",
            ),
        ),
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(
                condition=models.Q(("request_id", ""), _negated=True),
                fields=["request_id"],
                name="relaytransaction_of_request",
            ),
        ),
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(
                fields=["chain_id", "key_manager_address", "controller_address", "channel", "relay_nonce"],
                name="relaytransaction_of_channel",
            ),
        ),
        migrations.AddIndex(
            model_name="relaytransaction",
            index=models.Index(
                condition=models.Q(("status__in", ("Pending", "Submitted"))),
                fields=["chain_id", "key_manager_address", "controller_address", "channel"],
                name="relaytransaction_channel_busy",
            ),
        ),
        migrations.AddConstraint(
            model_name="relaytransaction",
            constraint=models.UniqueConstraint(
                fields=("chain_id", "digest", "controller_address", "generation"),
                name="relaytransaction_identity",
            ),
        ),
        migrations.AddConstraint(
            model_name="relaytransaction",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("is_superseded", False),
                    ("status__in", ("Pending", "Submitted", "Success", "ExecutedExternally")),
                ),
                fields=("chain_id", "key_manager_address", "controller_address", "relay_nonce"),
                name="relaytransaction_active_nonce",
            ),
        ),
        migrations.AddConstraint(
            model_name="relaytransaction",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("settled_at__isnull", True), ("status__in", ("Pending", "Submitted"))),
                    models.Q(
                        models.Q(("status__in", ("Pending", "Submitted")), _negated=True),
                        ("settled_at__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="relaytransaction_settled_when_final",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["created_at"], name="attempt_by_time"
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("status", "signed")),
                fields=["chain_id", "relayer", "account_nonce"],
                name="attempt_unsent",
            ),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("block_number__isnull", False)),
                fields=["block_number"],
                name="attempt_of_block",
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                fields=("chain_id", "transaction_hash"), name="attempt_transaction_hash"
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                fields=("relayer", "account_nonce", "sequence"), name="attempt_slot"
            ),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("block_number__isnull", True),
                        ("gas_used__isnull", True),
                        ("succeeded__isnull", True),
                    ),
                    models.Q(
                        ("block_number__isnull", False),
                        ("gas_used__isnull", False),
                        ("succeeded__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="attempt_receipt_whole",
            ),
        ),
        migrations.AddIndex(
            model_name="reversedsettlement",
            index=models.Index(fields=["-reversed_at"], name="reversedsettlement_newest"),
        ),
        migrations.AddConstraint(
            model_name="reversedsettlement",
            constraint=models.UniqueConstraint(
                fields=("relay_transaction", "number"), name="reversedsettlement_number"
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="reversedsettlement",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="8fefe9d4ddc95f2d2786a7d81c6a4b7de367231d",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_1c0b4",
                    table="relay_reversedsettlement",
                    when="BEFORE",
                ),
            ),
        ),
        migrations.AddIndex(
            model_name="topup",
            index=models.Index(fields=["created_at"], name="topup_by_time"),
        ),
        migrations.AddConstraint(
            model_name="topup",
            constraint=models.UniqueConstraint(
                fields=("chain_id", "treasury_address", "account_nonce", "sequence"), name="topup_slot"
            ),
        ),
        migrations.AddConstraint(
            model_name="topup",
            constraint=models.UniqueConstraint(
                condition=models.Q(("status", "sent")),
                fields=("chain_id", "treasury_address"),
                name="topup_one_on_the_way",
            ),
        ),
        migrations.AddConstraint(
            model_name="unsignedcall",
            constraint=models.UniqueConstraint(
                fields=("relayer", "account_nonce"), name="unsignedcall_account_nonce"
            ),
        ),
        migrations.AddConstraint(
            model_name="unsignedcall",
            constraint=models.UniqueConstraint(
                fields=("chain_id", "key_manager_address", "controller_address", "relay_nonce"),
                name="unsignedcall_relay_nonce",
            ),
        ),
    ]
