"""The way of the journey, from the sign-in to the last look at the dashboard."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from urllib3.exceptions import HTTPError

from devstack.console import complain, say
from devstack.files import read_json
from devstack.gateway_api import GatewayApi, Refused
from devstack.journey.books import read_books
from devstack.journey.calls import be_refused, send_money, write_data
from devstack.journey.checking_in import check_in
from devstack.journey.checks import Mismatch, expect
from devstack.journey.earner import Earner
from devstack.journey.months import catch_up, live_two_months, step_back
from devstack.journey.networks import networks_of
from devstack.journey.rewards import earn_everywhere, level_up
from devstack.journey.standing import Manage
from devstack.journey.subscriber import Subscriber
from devstack.journey.today import live_today
from devstack.rpc import Rpc, RpcFailed
from devstack.stripe.client import ControlError
from devstack.stripe_account import StripeAccount, StripeRefused
from devstack.wallet import Wallet

_LEAD_SECONDS, _PATIENCE_SECONDS = 20, 60
_FAILURES = (Mismatch, Refused, RpcFailed, StripeRefused, ControlError, LookupError, OSError, HTTPError)


def travel(
    stack_file: Path,
    *,
    lead: int = _LEAD_SECONDS,
    patience: float = _PATIENCE_SECONDS,
    manage: Manage | None = None,
) -> int:
    """
    Make the journey on the stack that the file describes; return 0 when everything agreed.

    The first journey of a stack begins two months ago by the provider's clock and reaches
    the end of these months `lead` seconds after it has subscribed; every journey ends today.
    What a worker has to do first may take it `patience` seconds. `manage` runs a management
    command of the service and returns its output; by default beside the stack of the file.
    """
    stack = read_json(stack_file)
    entry = stack["profiles"][0]
    wallet = Wallet(
        profile_address=entry["profile_address"],
        key_manager_address=entry["key_manager_address"],
        controller_key=entry["controller_private_key"],
        api=GatewayApi(stack["base_url"]),
        rpc=Rpc(stack["rpc_url"]),
    )
    provider = StripeAccount(stack["stripe_url"], stack["stripe_secret_key"])
    say(f"Wallet journey of {wallet.profile_address} at {stack['base_url']}")
    try:
        _earn(wallet, stack, manage or _manager(stack_file.parent))
        _walk(wallet, provider, lead, patience)
        read_books(wallet)
    except _FAILURES as error:
        complain(f"  ✗ the journey failed: {error}")
        return 1
    say("  ✓ the journey is complete: service, chain and payment provider agree on every figure")
    return 0


def _earn(wallet: Wallet, stack: dict[str, Any], manage: Manage) -> None:
    answer = wallet.sign_in()
    expect("the signed-in address", answer["address"], wallet.profile_address)
    say(f"  ✓ signed in by controller {wallet.controller_address}, token for {answer['expiresIn']} s")
    earner = Earner(wallet, networks_of(stack))
    begins_with = earner.standing
    say(f"  ✓ begins with {begins_with.credits} credits and {begins_with.experience} experience")
    earn_everywhere(earner, manage)
    check_in(earner)
    level_up(earner)


def _manager(data: Path) -> Manage:
    def manage(*arguments: str) -> str:
        command = [sys.executable, "-m", "devstack", "--data", str(data), "manage", *arguments]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise Mismatch(f"{arguments[0]} ended with {outcome.returncode}: {outcome.stderr[-500:]}")
        return outcome.stdout

    return manage


def _walk(wallet: Wallet, provider: StripeAccount, lead: int, patience: float) -> None:
    quota = wallet.quota()
    expect("the unit of the quota", quota["unit"], "credits")
    say(f"  ✓ quota: {quota['quota']} credits, total {quota['totalQuota']}, reset {quota['resetDate']}")
    subscriber = Subscriber(wallet, provider, credits=quota["quota"], patience=patience)
    if step_back(provider, lead):
        live_two_months(subscriber, spend=write_data)
    else:
        catch_up(subscriber)
        subscriber.spend(write_data)
    live_today(subscriber, spend=send_money)
    be_refused(wallet)
    subscriber.find_quota(total=0, reset=-1)
