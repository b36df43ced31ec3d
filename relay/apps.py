"""The app's configuration."""

from django.apps import AppConfig
from django.conf import settings


class RelayConfig(AppConfig):
    """The relay, with its system checks."""

    name = "relay"

    def ready(self) -> None:
        from credits.services import causes
        from gateway.chain.config import chains, on_chain
        from gateway.chain.signing import get_signer
        from gateway.web import process
        from relay import checks, metrics  # noqa: F401 - register on import, and need the loaded models
        from relay.queries import executed
        from relay.services import erasure
        from relay.services.fleet import prices, relayers
        from relay.services.sending import loops
        from sponsors.services import simulation
        from users.services import deletion

        deletion.register(
            "relay",
            deletion.AppDeletion(
                waits_for=lambda user, now: erasure.reason_to_wait(user), erase=erasure.erase
            ),
        )
        causes.register("relay", rules=prices.Sql.rules)
        simulation.register(executed.executed_call)
        process.register(loops.faults)
        process.register(relayers.faults)
        if settings.RELAY_SIGNER == "local":
            # An unreadable key stops the process at start, not at its first call.
            for chain in chains():
                with on_chain(chain.id):
                    get_signer()
