"""One call of each kind by a client that openapi-python-client makes."""

import json
import sys
from pathlib import Path

from credit_relay_gateway_client import AuthenticatedClient, Client
from credit_relay_gateway_client.api.payments import upsert_subscription
from credit_relay_gateway_client.api.sign_in import auth_nonce, auth_verify
from credit_relay_gateway_client.api.user import transactions
from credit_relay_gateway_client.models import NonceRequestRequest, UpsertRequest, VerifyRequestRequest
from credit_relay_gateway_client.models.problem import Problem
from eth_account import Account
from eth_account.messages import encode_defunct

stack = json.loads(Path(sys.argv[1]).read_text())
owner = stack["profiles"][0]
client = Client(base_url=stack["base_url"])

challenge = auth_nonce.sync(client=client, body=NonceRequestRequest(address=owner["profile_address"]))
assert challenge and not isinstance(challenge, Problem)
signed = Account.sign_message(encode_defunct(text=challenge.message), owner["controller_private_key"])
proof = VerifyRequestRequest(nonce=challenge.nonce, signature=signed.signature.to_0x_hex())
tokens = auth_verify.sync(client=client, body=proof)
assert tokens and not isinstance(tokens, Problem)
signed_in = AuthenticatedClient(base_url=stack["base_url"], token=tokens.access)
page = transactions.sync(client=signed_in, limit=1)
assert page and not isinstance(page, Problem)
# Neither currency nor cancelAtEndOfBillingPeriod has to be there.
upsert = upsert_subscription.sync(client=signed_in, body=UpsertRequest(subscription_cost=1000))
outcome = upsert.code if isinstance(upsert, Problem) else "subscribed"
print(f"openapi-python-client: {len(page.results)} transaction, {outcome}")
