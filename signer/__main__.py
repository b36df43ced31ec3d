"""
`python -m signer`: serve. `python -m signer import KIND` encrypts keys from standard input into the keystore.

`python -m signer read PAGE` prints `/health` or `/metrics` of the signer that runs here.
"""

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from signer.client import SignerAway, SignerClient
from signer.configuration import Misconfigured, configure
from signer.journal import JournalInUse
from signer.keys import RELAYERS, SPARE, TREASURY, KeyUnusable, write_keystore
from signer.logs import BackgroundHandler, json_formatter
from signer.server import Server
from signer.service import SigningService
from signer.targets import NodeUnavailable

logger = logging.getLogger("signer")
_PRUNED_EVERY_SECONDS = 6 * 3600.0
# How long the journal keeps entries that are final on the chain. It must be at least 2 days, because after a restart
# the signer computes the use of its hourly and daily limits from the journal.
_JOURNAL_DAYS = 30


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code."""
    handler = BackgroundHandler()
    handler.setFormatter(json_formatter())
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"), handlers=[handler])
    try:
        match arguments:
            case []:
                return _serve()
            case ["import", kind] if kind in (RELAYERS, SPARE, TREASURY):
                return _import(kind)
            case ["read", page]:
                sys.stdout.write(SignerClient(os.environ["SIGNER_LISTEN"], timeout_seconds=5).read(page))
                return 0
    except (Misconfigured, KeyUnusable, JournalInUse, SignerAway) as error:
        logger.error("%s: %s", type(error).__name__, error)
        return 1
    sys.stderr.write(__doc__ or "")
    return 2


def _serve() -> int:
    configuration = configure()
    Pruning(configuration.service, days=_JOURNAL_DAYS).start()
    with Server(
        configuration.listen, configuration.service, certificates=configuration.certificates
    ) as server:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
        logger.info(
            "signing for %d relayers on the chains %s at %s",
            len(configuration.service.keys().relayers),
            configuration.service.chain_ids,
            configuration.listen,
        )
        server.serve_forever(poll_interval=0.2)
    return 0


def _import(kind: str) -> int:
    """Encrypt the keys from standard input, one per line in hex."""
    directory = Path(os.environ["SIGNER_KEYSTORE"])
    password = Path(os.environ["SIGNER_KEYSTORE_PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
    for line in sys.stdin:
        address = write_keystore(directory, kind, bytes.fromhex(line.strip().removeprefix("0x")), password)
        sys.stdout.write(f"{address}\n")
    return 0


class Pruning(threading.Thread):
    """Prunes the journal at the start and then every six hours."""

    def __init__(self, service: SigningService, *, days: int) -> None:
        super().__init__(name="pruning", daemon=True)
        self._service, self._days = service, days

    def run(self) -> None:
        while True:
            self.prune()
            time.sleep(_PRUNED_EVERY_SECONDS)

    def prune(self) -> None:
        """Prune once; what a chain's node does not respond to, the next run retries."""
        for chain_id in self._service.chain_ids:
            try:
                count = self._service.prune(chain_id, days=self._days)
            except NodeUnavailable as error:
                logger.warning("the journal is not pruned now for chain %s: %s", chain_id, error)
                continue
            if count:
                logger.info("%s old entries of the journal are pruned for chain %s", count, chain_id)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
