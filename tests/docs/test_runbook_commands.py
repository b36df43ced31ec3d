"""Every command of the runbook can be typed: it has these options, and its service has what the command needs."""

import re
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

<<<<<<< HEAD
=======
from checkin.services import seeds
from checkin.services.checkins import execute
from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import entries
from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services
from earnings.models import AdNetwork
from earnings.services import networks
from gateway.chain.client import get_chain_client
from gateway.chain.signing import get_signer
from gateway.common.processes import withheld
from payments.models import Payout
from payments.stripe import set_billing_client
from proofs.keys import public_keys
from proofs.models import LedgerRoot
from relay.models import Attempt, FinalBlock, Relayer
from signer import __main__ as signer_program
from tests.checkin.conftest import earner
from tests.database import OWNER, connect_as, tamper
>>>>>>> 2feee2be (settings: Drop checks of what can no longer be set)
from tests.docs.pages import ROOT
from tests.docs.runbook import SERVICES, Typed, typed, unknown_words
from tests.factories import random_address

# Commands that are neither ours nor Compose's, and those of the backups, which `test_runbook_backups.py` runs.
ELSEWHERE = ("docker image ls", "install -d", "sudo chown", "echo COMPOSE_FILE=", "make manage CMD=…")
MODULES = ("python -m signer read /metrics", "python -m lab restore-drill")
BACKUPS = ("pg_dump", "pg_restore", "pg_archivecleanup", "pg_basebackup", "-ec")
<<<<<<< HEAD
# What a command needs of the service that runs it; `migrate` and the eraser connect as the owner of the tables.
NEEDS = {
    "close_ledger_roots": "LEDGER_SIGNING_KEY",
    "audit_ledger": "LEDGER_PUBLIC_KEYS",
    "seal_network_secrets": "AD_NETWORK_SECRET_KEYS",
    "seal_webhook_secrets": "WEBHOOK_SECRET_KEYS",
    "verify_draws": "CHECKIN_SEED_SECRETS",
    "reconcile_payments": "STRIPE_SECRET_KEY",
    "erase_deleted_accounts": "the owner",
}
_STANDS_FOR = {"WEI": "1", "NUMBER": "1", "0xPROFILE": random_address()}


def _managed() -> list[Typed]:
    return [command for command in typed() if command.words[0] in get_commands()]


@pytest.mark.parametrize("command", _managed(), ids=str)
def test_a_management_command_takes_these_words(command: Typed) -> None:
    name, *words = command.words
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)

    parser.parse_args([_STANDS_FOR.get(word, word) for word in words])


@pytest.mark.parametrize("command", [one for one in _managed() if one.words[0] in NEEDS], ids=str)
def test_a_command_runs_where_its_secrets_are(command: Typed) -> None:
    need = NEEDS[command.words[0]]
    if command.service is None:
        return
    environment: dict[str, Any] = SERVICES[command.service]["environment"]

    if need == "the owner":
        assert "gateway:${POSTGRES_PASSWORD" in environment["DATABASE_URL"]
    else:
        given = {name.removesuffix("_FILE") for name in environment}
        withheld = environment.get("WITHHELD_SECRETS", "").split(",")
        assert need not in withheld
        assert need in given or need != "LEDGER_SIGNING_KEY"
=======


@dataclass
class Operator:
    """Runs commands as they are typed, with the secrets that their service has."""

    typed: Typed
    services: Services
    settings: Any
    patch: pytest.MonkeyPatch
    folder: Path

    def run(self, exits: int = 0, **placeholders: object) -> str:
        """Run the command, its words replaced by what they stand for; return what it prints and how it fails."""
        name, *words = (str(placeholders.get(word, word)) for word in self.typed.words)
        out = StringIO()
        with self.patch.context() as withheld:
            for secret in _withheld(self.typed.service):
                withheld.setattr(project, secret, type(getattr(project, secret, ""))(), raising=False)
            refusal = None
            try:
                call_command(name, *words, stdout=out, stderr=out)
            except CommandError as error:
                refusal = error
        assert (refusal.returncode if refusal else 0) == exits, refusal
        return out.getvalue() + str(refusal or "")


def _withheld(service: str | None) -> set[str]:
    """Return the settings with secrets that compose.yaml does not give to this service."""
    if service is None:
        return set()
    return set(withheld(service))


Case = Callable[[Operator], object]
CASES: dict[str, Case] = {}


def case(*lines: str) -> Callable[[Case], Case]:
    """Decorator: the function shows what these commands do."""

    def add(function: Case) -> Case:
        CASES.update(dict.fromkeys(lines, function))
        return function

    return add


@case("check")
def _(operator: Operator) -> None:
    """It needs no network, and finds a contradiction."""
    with node_away():
        assert "relay.I001" in operator.run()
        operator.settings.RELAY_FEE_FLOOR_WEI = operator.settings.RELAY_FEE_CAP_WEI + 1
        assert "relay.E003" in operator.run(exits=1)


@case("check --deploy --database default")
def _(operator: Operator) -> None:
    """It asks the node and the database."""
    assert "relay.W001" not in operator.run()
    with node_away():
        assert "relay.W001" in operator.run()


@case("sync_relayers")
def _(operator: Operator) -> None:
    chain = _funded(operator)
    lines = operator.run().splitlines()[1:]
    assert lines == [
        f"{address} active next nonce {chain.account_nonce(address)} in flight 0 balance {5 * LYX} wei"
        for address in get_signer().addresses()
    ]


@case("sync_relayers --at-least WEI")
def _(operator: Operator) -> None:
    _funded(operator)
    operator.run(WEI=5 * LYX)
    assert "Fund 0x" in operator.run(exits=1, WEI=5 * LYX + 1)


@case("sync_relayers --believe-node")
def _(operator: Operator) -> None:
    _use_keys_elsewhere(operator)
    with pytest.raises(CommandError, match="3 of 3 relayers"):
        call_command("sync_relayers")
    operator.run()
    assert {row.state for row in Relayer.objects.all()} == {"quarantined"}


@case("list_unrecorded")
def _(operator: Operator) -> None:
    """What the relayers sent first is in the rows, and what they sent then is not."""
    relayed = calls(1, status="Failed")[0]
    recorded = _use_keys_elsewhere(operator)
    for sequence, (relayer, transaction_hash) in enumerate(
        zip(Relayer.objects.order_by("-pk"), recorded[::-1], strict=False)
    ):
        attempt(relayed, age=9, status="mined", sequence=sequence)
        nonce, block = relayer.next_account_nonce, get_chain_client().head().number
        Attempt.objects.filter(sequence=sequence).update(
            relayer=relayer, account_nonce=nonce, transaction_hash=transaction_hash, block_number=block
        )
    Relayer.objects.update(
        next_account_nonce=F("next_account_nonce") + 1, mined_account_nonce=F("next_account_nonce") + 1
    )
    assert "explain every account nonce" in operator.run()
    unrecorded = _use_keys_elsewhere(operator)
    printed = operator.run(exits=1)
    assert [transaction_hash in printed for transaction_hash in recorded + unrecorded] == [False] * 3 + [
        True
    ] * 3


@case("list_unrecorded --from-block NUMBER")
def _(operator: Operator) -> None:
    begins = get_chain_client().head().number
    hashes = _use_keys_elsewhere(operator)
    with pytest.raises(CommandError, match="Use --from-block"):
        call_command("list_unrecorded")
    printed = operator.run(exits=1, NUMBER=begins)
    assert all(transaction_hash in printed for transaction_hash in hashes)


def _funded(operator: Operator) -> Chain:
    chain = Chain(operator.services)
    # What other tests left may be more than the transactions here offer.
    chain.set_base_fee(GWEI)
    chain.fund(5 * LYX, *get_signer().addresses())
    return chain


def _use_keys_elsewhere(operator: Operator) -> list[str]:
    """Let each relayer's key sign a transaction that no row knows; return the hashes."""
    chain = _funded(operator)
    call_command("sync_relayers", stdout=StringIO())
    hashes = [
        chain.use_key_elsewhere(key, account_nonce=chain.account_nonce(address))
        for key, address in zip(project.RELAY_RELAYER_KEYS, get_signer().addresses(), strict=True)
    ]
    # The node answers before it has mined what it was sent.
    chain.mine()
    return hashes


@case("accept_reorganisation --from-block NUMBER")
def _(operator: Operator) -> None:
    Chain(operator.services).mine(2)
    head = get_chain_client().head().number
    FinalBlock.objects.create(number=head, block_hash="0x" + "ab" * 32, replaced_at=timezone.now())
    operator.run(NUMBER=head - 1)
    assert FinalBlock.objects.values_list("number", "replaced_at").get() == (head - 1, None)


@case("reconcile_relay", *(f"reconcile_relay {words}" for words in ("--receipt-days 2", "--receipt-days 30")))
def _(operator: Operator) -> None:
    assert "No difference" in operator.run()
    calls(1, status="Failed", real_cost=7)
    assert "1 differences" in operator.run(exits=1)


@case("reconcile_relay --days 40")
def _(operator: Operator) -> None:
    calls(1, status="Failed", real_cost=7, settled_at=timezone.now() - timedelta(days=41))
    assert "No difference" in operator.run()
    with pytest.raises(CommandError, match="1 differences"):
        call_command("reconcile_relay", "--days", "42", stdout=StringIO())


@case("reconcile_credits")
def _(operator: Operator) -> None:
    earner()
    assert "No difference" in operator.run()
    tamper("UPDATE credits_account SET balance = balance + 1")
    assert "1 differences" in operator.run(exits=1)


@case("adjust_credits 0xPROFILE -250 --reason … --actor USERNAME --key TICKET")
def _(operator: Operator) -> None:
    user = UserFactory.create()
    _grant(user, 1000)
    values: dict[str, Any] = {"0xPROFILE": user.profile_address, "USERNAME": member("support").username}
    for _ in range(2):
        operator.run(**values)
    assert balance_of(user).balance == 750


def _grant(user: Any, credits: int) -> CreditEntry:
    return entries.grant(user=user, credits=credits, source=EntrySource.SURVEYS, key=secrets.token_hex(8))


@case("audit_ledger")
def _(operator: Operator) -> None:
    covered_ledger()
    pems = [
        key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in public_keys().values()
    ]
    operator.settings.LEDGER_PUBLIC_KEYS = b"".join(pems).decode()
    assert "No difference" in operator.run()
    tamper("DELETE FROM credits_entry")
    assert "6 differences" in operator.run(exits=1)


@case("close_ledger_roots")
def _(operator: Operator) -> None:
    earner()
    assert "1 roots closed" in operator.run()
    assert LedgerRoot.objects.get().entry_count == 1
    operator.settings.LEDGER_SIGNING_KEY = ""
    earner()
    with pytest.raises(ImproperlyConfigured, match="LEDGER_SIGNING_KEY"):
        operator.run()


@case(
    "reconcile_payments",
    "reconcile_payments --repair",
    "reconcile_payments --minutes 15",
    "reconcile_payments --days 40",
)
def _(operator: Operator) -> None:
    """Money was collected an hour ago, or before the days that are compared, and nothing paid out."""
    set_rates()
    operator.settings.STRIPE_SECRET_KEY = f"sk_test_{secrets.token_hex(12)}"
    operator.settings.STRIPE_WEBHOOK_SECRETS = [f"whsec_{secrets.token_hex(12)}"]
    fake = FakeBilling(webhook_secrets=operator.settings.STRIPE_WEBHOOK_SECRETS)
    set_billing_client(fake)
    is_long_ago = "--days" in operator.typed.words
    fake.pass_time(-41 * 86_400 if is_long_ago else -3600)
    payer = Payer(fake, UserFactory.create()).with_card()
    payer.upsert(500)
    repairs = "--repair" in operator.typed.words
    printed = operator.run(exits=0 if repairs or is_long_ago else 1)
    assert ("payout-missing" in printed) is not (repairs or is_long_ago)
    assert Payout.objects.count() == repairs


@case("verify_draws 2026-11-19")
def _(operator: Operator) -> None:
    now = timezone.now()
    long_ago = now - timedelta(days=4)
    execute(user=earner(), now=long_ago)
    seeds.commit_and_reveal(now=now)
    drawn: dict[str, Any] = {"2026-11-19": long_ago.date().isoformat()}
    assert "1 draws" in operator.run(**drawn)
    tamper(
        "UPDATE checkin_dailyseed SET revealed_seed = %s WHERE day = %s",
        secrets.token_hex(32),
        drawn["2026-11-19"],
    )
    operator.run(exits=1, **drawn)
    drawn["2026-11-19"] = now.date().isoformat()
    operator.run(exits=2, **drawn)


@case("erase_deleted_accounts")
def _(operator: Operator) -> None:
    user = UserFactory.create()
    hour_ago = timezone.now() - timedelta(hours=1)
    AccountDeletion.objects.create(
        user=user, status="billing-ended", requested_at=hour_ago, billing_ended_at=hour_ago
    )
    assert "1 people are erased" in operator.run()
    user.refresh_from_db()
    assert user.profile_address is None


@case("remove_stale_contenttypes")
def _(operator: Operator) -> None:
    """The runbook says that it is refused."""
    LogEntry.objects.create(
        user=member("support"),
        action_flag=1,
        content_type=ContentType.objects.create(app_label="gone", model="gone"),
    )
    with pytest.raises(DatabaseError, match="permission denied for table django_admin_log"):
        call_command("remove_stale_contenttypes", "--no-input", "--include-stale-apps", stdout=StringIO())


@case("seal_network_secrets")
def _(operator: Operator) -> None:
    network = set_up("tapjoy")
    new = _new_key_first(operator, "AD_NETWORK_SECRET_KEYS")
    assert "1 secrets are sealed" in operator.run()
    operator.settings.AD_NETWORK_SECRET_KEYS = [new]
    assert networks.live_secrets(AdNetwork.objects.get(slug="tapjoy")) == [network.secret]


@case("seal_webhook_secrets")
def _(operator: Operator) -> None:
    endpoint = Endpoint(name="wallet", url="https://x.example", origins=["https://x.example"], event_types=[])
    secret = endpoints.create(endpoint)
    new = _new_key_first(operator, "WEBHOOK_SECRET_KEYS")
    operator.run()
    operator.settings.WEBHOOK_SECRET_KEYS = [new]
    assert endpoints.live_secrets(Endpoint.objects.get()) == [secret]


def _new_key_first(operator: Operator, name: str) -> str:
    new = secrets.token_urlsafe(40)
    setattr(operator.settings, name, [new, *getattr(operator.settings, name)])
    return new


@case("python -m signer read /metrics")
def _(operator: Operator) -> None:
    service = new_service(operator.folder, new_keys(), FakeTargets())
    with serving(operator.folder, service) as url:
        operator.patch.setenv("SIGNER_LISTEN", url)
        assert signer_program.main(list(operator.typed.words[3:])) == 0


def test_every_command_has_a_case_or_a_reason() -> None:
    missing = [
        str(command)
        for command in typed()
        if not (command.line in CASES or command.line.startswith((*ELSEWHERE, *BACKUPS)))
    ]
    assert missing == []
    lines = {command.line for command in typed()}
    assert CASES.keys() <= lines
    assert [start for start in ELSEWHERE if not any(line.startswith(start) for line in lines)] == []


@pytest.fixture
def role(command: Typed, django_db_setup: None) -> Iterator[None]:
    """Connect as the command's service does."""
    environment = SERVICES[command.service]["environment"] if command.service else {}
    is_owner = "gateway:${POSTGRES_PASSWORD" in environment.get("DATABASE_URL", "")
    connect_as(OWNER if is_owner else APPLICATION_ROLE)
    yield
    connect_as(APPLICATION_ROLE)


@pytest.mark.parametrize("command", [one for one in typed() if one.line in CASES], ids=str)
def test_a_command_does_what_the_runbook_says(
    command: Typed,
    role: None,
    services: Services,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    request.getfixturevalue("db")
    CASES[command.line](Operator(command, services, settings, monkeypatch, tmp_path))
    set_billing_client(None)
>>>>>>> 2feee2be (settings: Drop checks of what can no longer be set)


@pytest.mark.parametrize(
    "command", [one for one in typed() if one.line.startswith("docker compose")], ids=str
)
def test_compose_has_the_services_of_a_command(command: Typed) -> None:
    assert unknown_words(command.words) == []


def test_every_other_command_is_known() -> None:
    lines = [command.line for command in typed() if command not in _managed()]

    known = ("docker compose", *ELSEWHERE, *MODULES, *BACKUPS)
    assert [line for line in lines if not line.startswith(known)] == []
    assert [start for start in known if not any(line.startswith(start) for line in lines)] == []


def test_compose_has_every_named_file_and_service() -> None:
    lines = " ".join(command.line for command in typed())

    assert SERVICES["web"]["image"].startswith("credit-relay-gateway:")
    (files,) = re.findall(r"COMPOSE_FILE=(\S+)", lines)
    assert all((ROOT / name).is_file() for name in files.split(":"))
    assert {command.service for command in typed()} - {None} <= SERVICES.keys()
