"""The whole journey, from sign-in to the last check of the dashboard."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from urllib3.exceptions import HTTPError

from credit_relay_client import RelayProblem
from devstack.console import echo, echo_error
from devstack.files import read_json
from devstack.journey.check_in import check_in
from devstack.journey.checks import Mismatch, expect
from devstack.journey.dashboard import Manage, check_dashboard
from devstack.journey.earnings import Earner, earn_everywhere, level_up, networks_of
from devstack.journey.newcomer import welcome
from devstack.journey.relay_calls import check_wrong_signature, send_elsewhere, send_money, write_data
from devstack.journey.subscriber import Subscriber
from devstack.journey.subscriptions import catch_up, set_clock_back, subscribe_today, subscribe_two_months_ago
from devstack.rpc import Rpc, RpcFailed
from devstack.stripe_account import StripeAccount, StripeRefused
from devstack.wallet import Wallet
from stripe_double.client import ControlError

_LEAD_SECONDS, _PATIENCE_SECONDS = 20, 300
_FAILURES = (Mismatch, RelayProblem, RpcFailed, StripeRefused, ControlError, LookupError, OSError, HTTPError)


def run_journey(stack_file: Path) -> int:
    """Run the journey on the stack described by the file; return 0 if every check passes."""
    stack = read_json(stack_file)
    wallet = Wallet.of(stack["profiles"][0], stack["base_url"], Rpc(stack["rpc_url"]))
    provider = StripeAccount(stack["stripe_url"], stack["stripe_secret_key"])
    echo(f"Wallet journey of {wallet.profile_address} at {stack['base_url']}")
    try:
        _earn_credits(wallet, stack, _manager(stack_file.parent))
        _subscribe_and_spend(wallet, provider)
        if second := stack["second_chain"]:
            send_elsewhere(wallet, Rpc(second["rpc_url"]), chain_id=second["chain_id"])
        welcome(wallet, stack["sponsor"])
        check_dashboard(wallet)
    except _FAILURES as error:
        echo_error(f"  ✗ the journey failed: {error}")
        return 1
    echo("  ✓ the journey is complete: service, chain and payment provider agree on every figure")
    return 0


def _earn_credits(wallet: Wallet, stack: dict[str, Any], manage: Manage) -> None:
    wallet.sign_in()
    echo(f"  ✓ signed in by controller {wallet.controller_address}")
    earner = Earner(wallet, networks_of(stack))
    before = earner.dashboard
    echo(f"  ✓ begins with {before.credits} credits and {before.experience} experience")
    earn_everywhere(earner, manage)
    check_in(earner)
    level_up(earner)


def _manager(data: Path) -> Manage:
    """Return a function that runs a management command and returns its output."""

    def manage(*arguments: str) -> str:
        command = [sys.executable, "-m", "devstack", "--data", str(data), "manage", *arguments]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise Mismatch(f"{arguments[0]} ended with {outcome.returncode}: {outcome.stderr[-500:]}")
        return outcome.stdout

    return manage


def _subscribe_and_spend(wallet: Wallet, provider: StripeAccount) -> None:
    quota = wallet.quota()
    expect("the unit of the quota", quota["unit"], "credits")
    echo(f"  ✓ quota: {quota['quota']} credits, total {quota['totalQuota']}, reset {quota['resetDate']}")
    subscriber = Subscriber(wallet, provider, credits=quota["quota"], patience=_PATIENCE_SECONDS)
    if set_clock_back(provider, lead=_LEAD_SECONDS):
        subscribe_two_months_ago(subscriber, spend=write_data)
    else:
        catch_up(subscriber)
        subscriber.spend(write_data)
    subscribe_today(subscriber, spend=send_money)
    subscriber.buy_pack()
    subscriber.spend(write_data)
    check_wrong_signature(wallet)
    subscriber.check_quota(total=0, reset=-1)
