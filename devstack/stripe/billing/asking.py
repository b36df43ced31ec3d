"""The next action of an intent whose bank asks for the cardholder."""

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing


def next_action(account: Account, intent: Thing, return_url: str | None) -> Thing:
    """Return where the browser goes: to the bank's page and back, or wherever the SDK leads it."""
    if return_url is None:
        return {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect"}}
    page = f"{account.address}/_authenticate/{intent['id']}?client_secret={intent['client_secret']}"
    return {"type": "redirect_to_url", "redirect_to_url": {"return_url": return_url, "url": page}}
