"""
`python -m lab restore-drill`: lose PostgreSQL under load and restore it from base backup and archive.

The wallets know which calls got a hash, so the drill can check whether the service's own report of lost
calls is complete.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from devstack.console import echo, step
from devstack.processes import Web
from devstack.services.archive import Archive
from devstack.services.stack import Services, start_services
from lab.chaos.traffic import Call
from lab.rehearsals.stack import BLOCK_SECONDS, Rehearsal

_ARCHIVED_EVERY_SECONDS, _MOST_SHOWN = 10, 3
_RESUME = """
from relay.models import Relayer
from relay.services.fleet.relayers import set_active
[set_active(relayer_id=row.pk, is_active=True) for row in Relayer.objects.filter(quarantined_at__isnull=False)]
"""
_BOOKS = ("reconcile_credits", "reconcile_relay", "audit_ledger")


@dataclass(frozen=True)
class Options:
    """Seconds of load before and after the base backup; seconds before the loss to restore to."""

    before: float
    after: float
    back: float | None


def run(options: Options) -> int:
    """Run the drill and print its results; return 1 if a check fails."""
    with tempfile.TemporaryDirectory(prefix="restore-") as folder:
        archive = Archive(Path(folder) / "archive")
        archive.prepare()
        settings = archive.settings(at_least_every_seconds=_ARCHIVED_EVERY_SECONDS)
        with start_services(
            Path(folder) / "stack", block_time=BLOCK_SECONDS, postgres_settings=settings
        ) as services:
            return _drill(services, archive, options)


def _drill(services: Services, archive: Archive, options: Options) -> int:
    rehearsal = Rehearsal.prepare(services)
    calls, until = _calls_until_loss(rehearsal, archive, options)
    began = time.monotonic()
    with step("restoring the base backup, and replaying the archive"):
        archive.restore(services.postgres, until=until)
    rehearsal.find_database()
    recorded = _recorded(services.database_url, calls)
    lost = [call for call in calls if call.transaction_hash and call.transaction_hash not in recorded]
    status, listed = rehearsal.manage("list_unrecorded")
    unrecorded = [line for line in listed.splitlines() if line.startswith("0x")]
    echo("\n".join(f"    {line}" for line in [*unrecorded[:_MOST_SHOWN], "…", *listed.splitlines()[-1:]]))
    on_chain = [call for call in lost if _is_mined(services, call)]
    wrong = _differences(listed, on_chain)
    wrong += [f"list_unrecorded exits {status}"] if status != bool(on_chain) else []
    # Before any process starts that would query the only node and reject its report.
    wrong += _failed(rehearsal, ["sync_relayers", "--believe-node"])
    kept = [call for call in calls if call.transaction_hash in recorded]
    with rehearsal.running([_web(rehearsal), *rehearsal.workers()]):
        seconds = time.monotonic() - began
        rehearsal.settle()
        wrong += [complaint for name in _BOOKS for complaint in _failed(rehearsal, [name])]
        wrong += rehearsal.result(kept).wrong
        wrong += _differences(rehearsal.manage("list_unrecorded")[1], on_chain)
        wrong += _failed(rehearsal, ["shell", "-c", _RESUME])
        wrong += _goes_on(rehearsal, options.before)
    answered = sum(bool(call.transaction_hash) for call in calls)
    echo(
        f"{answered} calls were answered with a hash, {answered - len(lost)} of them are in the restored rows.\n"
        f"Lost: {len(lost)}, of which {len(on_chain)} are executed and were listed, "
        f"{len(lost) - len(on_chain)} were never sent.\n"
        f"The service answered {seconds:.0f} s after the restore had begun."
    )
    echo("\n".join(f"✗ {one}" for one in wrong) or "✓ reconciled, and the list of lost calls was complete")
    return int(bool(wrong))


def _web(rehearsal: Rehearsal) -> Web:
    prepared = rehearsal.prepared
    return Web(prepared.directory / "log", prepared.environment, port=prepared.port)


def _calls_until_loss(
    rehearsal: Rehearsal, archive: Archive, options: Options
) -> tuple[list[Call], str | None]:
    """Make calls until PostgreSQL is lost with its data; return them and the time to restore to."""
    postgres = rehearsal.services.postgres
    with rehearsal.running([_web(rehearsal), *rehearsal.workers()]):
        traffic = rehearsal.traffic()
        with traffic.running(patience=0):
            time.sleep(options.before)
            with step("base backup under load"):
                archive.back_up(postgres)
            time.sleep(options.after)
            lost_at = datetime.now(UTC)
            postgres.kill()
            echo("  · PostgreSQL is killed and its data deleted")
    if options.back is None:
        return list(traffic.calls), None
    return list(traffic.calls), (lost_at - timedelta(seconds=options.back)).isoformat()


def _recorded(database_url: str, calls: Sequence[Call]) -> set[str]:
    hashes = [call.transaction_hash for call in calls if call.transaction_hash]
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT transaction_hash FROM relay_attempt WHERE transaction_hash = ANY(%s)", [hashes]
        )
        return {transaction_hash for (transaction_hash,) in rows}


def _is_mined(services: Services, call: Call) -> bool:
    return services.rpc.call("eth_getTransactionReceipt", call.transaction_hash) is not None


def _differences(listed: str, on_chain: Sequence[Call]) -> list[str]:
    """Return the executed, lost calls that are missing from the service's list."""
    return [
        f"{call.transaction_hash} is executed, has no row and is not listed"
        for call in on_chain
        if f"{call.transaction_hash}," not in listed or call.wallet.profile_address not in listed
    ]


def _failed(rehearsal: Rehearsal, command: list[str]) -> list[str]:
    status, printed = rehearsal.manage(*command)
    return [f"{command[0]} exits {status}: {printed[-1000:]}"] if status else []


def _goes_on(rehearsal: Rehearsal, seconds: float) -> list[str]:
    """Make further calls; return their differences."""
    since = time.time()
    traffic = rehearsal.traffic()
    with step("further calls"), traffic.running():
        time.sleep(seconds)
    rehearsal.settle()
    accepted = [call for call in traffic.calls if call.transaction_hash]
    return rehearsal.result(traffic.calls, since=since).wrong + ([] if accepted else ["no call was accepted"])
