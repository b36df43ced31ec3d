"""System checks of the relay: configuration errors that would otherwise show only at the first call."""

import re
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.core.exceptions import ImproperlyConfigured
from eth_utils.address import is_hex_address

from gateway.chain.client import get_chain_client
from gateway.chain.config import chains, get_chain, home, on_chain
from gateway.chain.errors import NodeUnavailable, SignerUnavailable
from gateway.chain.remote_signing import remote_signer
from gateway.chain.signing import NoSigner, get_signer
from gateway.chain.treasury import get_treasury
from gateway.chain.types import Chain
from gateway.common.checks import asks_another_server, asks_the_database
from relay.models import CreditPrice
from relay.queries.chains import removed_chains_with_open_calls
from relay.queries.prices import recorded_rates
from relay.rules import Priced, deviation
from users.models import TrustedImplementation
from users.services import trusted_code


@register("relay")
def relayer_keys(**_: Any) -> list[CheckMessage]:
    """Report whether the process signs; if it does, its relayer keys must be readable."""
    try:
        addresses = get_signer().addresses()
    except SignerUnavailable:
        return [
            Warning(
                "The signer does not respond.",
                hint="Relay calls get a 503 until it responds.",
                id="relay.W003",
            )
        ]
    except NoSigner:
        return [Info("This process does not sign and holds no relayer key.", id="relay.I001")]
    except ImproperlyConfigured:
        return [Error("RELAY_RELAYER_KEYS or RELAY_RELAYER_MNEMONIC cannot be read.", id="relay.E001")]
    if addresses:
        return [Info(f"This process signs, for {len(addresses)} relayers.", id="relay.I001")]
    return [Error("RELAY_RELAYER_KEYS is empty.", hint="Set at least one private key.", id="relay.E001")]


def _of_each_chain(check: Callable[[], list[CheckMessage]]) -> list[CheckMessage]:
    """Run the check for each chain. What it finds on a further chain names that chain and its variables."""
    found: list[CheckMessage] = []
    for chain in chains():
        with on_chain(chain.id):
            messages = check()
        if chain is not home():
            messages = [_named(one, chain.id) for one in messages]
        found += messages
    return found


def _named(message: CheckMessage, chain_id: int) -> CheckMessage:
    text = re.sub(r"\b(?:CHAIN|RELAY)_(?=[A-Z])", f"CHAIN_{chain_id}_", message.msg)
    return CheckMessage(message.level, text, hint=message.hint, id=message.id)


@register("relay")
def treasury(**_: Any) -> list[CheckMessage]:
    """Refuse a treasury that is a relayer or does not match its address."""
    return _of_each_chain(_treasury)


def _treasury() -> list[CheckMessage]:
    try:
        key = get_treasury()
    except ImproperlyConfigured:
        return [Error("RELAY_TREASURY_KEY cannot be read.", id="relay.E004")]
    except SignerUnavailable:
        key = None  # `relayer_keys` reports this error.
    address = get_chain().funding.treasury_address
    if address and not is_hex_address(address):
        return [Error("RELAY_TREASURY_ADDRESS is not an address.", id="relay.E004")]
    if key and address and key.address.lower() != address.lower():
        return [Error("RELAY_TREASURY_ADDRESS is not the address of RELAY_TREASURY_KEY.", id="relay.E004")]
    if key and settings.RELAY_SIGNER == "local" and key.address in get_signer().addresses():
        return [Error("RELAY_TREASURY_KEY is the key of a relayer.", id="relay.E004")]
    return []


@register("relay")
def money_settings(**_: Any) -> list[CheckMessage]:
    """Refuse fee bounds that contradict each other."""
    return _of_each_chain(_money_settings)


def _money_settings() -> list[CheckMessage]:
    policy = get_chain().fees
    errors: list[CheckMessage] = []
    if policy.floor_wei > policy.cap_wei:
        errors.append(
            Error(f"RELAY_FEE_CAP_WEI is below the lowest max fee, {policy.floor_wei} wei.", id="relay.E003")
        )
    if policy.tip_cap_wei > policy.cap_wei:
        errors.append(Error("RELAY_FEE_CAP_WEI must be at least twice RELAY_TIP_WEI.", id="relay.E005"))
    return errors


@register("relay")
def quorum(**_: Any) -> list[CheckMessage]:
    """Warn where a minority of nodes could decide settlements."""
    return _of_each_chain(_quorum)


def _quorum() -> list[CheckMessage]:
    chain = get_chain()
    if 2 * chain.quorum > len(chain.node_urls):
        return []
    text = f"CHAIN_QUORUM is {chain.quorum} of {len(chain.node_urls)} nodes: less than a majority decides."
    return [Warning(text, id="relay.W002")]


@asks_the_database
def first_prices() -> list[CheckMessage]:
    """Refuse a setting that differs from the first price of its chain: later prices are made by staff."""
    first = dict(CreditPrice.objects.filter(is_first=True).values_list("chain_id", "credit_wei"))
    return [
        Error(
            f"{_price_variable(chain)} is {chain.first_credit_wei}, and the chain's first price was {stored}.",
            hint="Set it to the first price again. Two members of staff change a price in the admin.",
            id="relay.E006",
        )
        for chain in chains()
        if (stored := first.get(chain.id, chain.first_credit_wei)) != chain.first_credit_wei
    ]


@asks_the_database
def chains_with_open_calls() -> list[CheckMessage]:
    """Refuse settings without a chain that has calls in progress: nobody would send, settle or charge them."""
    removed = removed_chains_with_open_calls()
    return [Error(chain.fault, hint=chain.remedy, id="relay.E007") for chain in removed]


@asks_the_database
def rates_of_coins() -> list[CheckMessage]:
    """Warn if the price of a credit on a chain is compared with no rate, because none is recorded of its coin."""
    recorded, at_home = recorded_rates(), Priced(1, home().currency)
    return [
        Warning(
            f"The price of a credit on chain {chain.id} is compared with no rate: no currency has a rate of both "
            f"{chain.currency} and {home().currency}.",
            hint="Import rates of both coins in the admin (Coin rates).",
            id="relay.W004",
        )
        for chain in chains()[1:]
        if deviation(Priced(1, chain.currency), at_home, recorded) is None
    ]


_NOT_COMPARED = Warning(
    "The trusted code was not compared with that at home: too few nodes in CHAIN_RPC_URLS respond.",
    id="relay.W006",
)


@asks_the_database
def trusted_code_of_chains() -> list[CheckMessage]:
    """Report trusted addresses that have other code on a further chain than at home, where they are not trusted."""
    return _of_each_chain(_trusted_code)


def _trusted_code() -> list[CheckMessage]:
    if get_chain() is home():
        return []
    rows = TrustedImplementation.objects.filter(is_active=True, address__isnull=False)
    try:
        others = trusted_code.compare_with_home(sorted({str(row.address) for row in rows}))
    except NodeUnavailable:
        return [_NOT_COMPARED]
    return [
        Error(
            f"The contract at {address} is not the one that is trusted at home: its profiles get untrusted-code.",
            hint="Find out who deployed it. Profiles that run it are served at home alone.",
            id="relay.E009",
        )
        for address in others
    ]


def _price_variable(chain: Chain) -> str:
    return "CREDIT_WEI" if chain is home() else f"CHAIN_{chain.id}_CREDIT_WEI"


_SILENT_SIGNER = Warning("The signer does not tell for which chains it signs.", id="relay.W005")


@asks_another_server(_SILENT_SIGNER)
def chains_of_the_signer() -> list[CheckMessage]:
    """Refuse a chain for which a signer in another process does not sign: it would refuse all its calls."""
    if settings.RELAY_SIGNER != "remote":
        return []
    try:
        served = remote_signer().chain_ids()
    except SignerUnavailable:
        return [_SILENT_SIGNER]
    return [
        Error(
            f"The signer at SIGNER_URL does not sign for chain {chain.id}.",
            hint=f"List the chain in the signer's CHAINS, and set its SIGNER_{chain.id}_RPC_URL.",
            id="relay.E008",
        )
        for chain in chains()
        if chain.id not in served
    ]


_NO_NODE = Warning("No node in CHAIN_RPC_URLS responds.", id="relay.W001")


@asks_another_server(_NO_NODE)
def chain_identity() -> list[CheckMessage]:
    """Compare each configured chain id with the node's."""
    return _of_each_chain(_identity)


def _identity() -> list[CheckMessage]:
    try:
        actual = get_chain_client().chain_id()
    except NodeUnavailable:
        return [_NO_NODE]
    configured = get_chain().id
    if actual == configured:
        return []
    if get_chain() is not home():
        return [Error(f"The nodes of CHAIN_RPC_URLS serve chain {actual}.", id="relay.E002")]
    return [Error(f"CHAIN_ID is {configured} and the node's is {actual}.", id="relay.E002")]
