"""
The Universal Profile browser extension, as far as a page sees it: an EIP-1193 provider, announced by EIP-6963.

Methods and shapes are those of its public documentation. The keys stay in Python; the page gets a function to ask.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from eth_account import Account
from eth_account.messages import encode_defunct
from playwright.sync_api import Page

from devstack.gateway_api import GatewayApi
from devstack.wallet import Wallet
from devstack.world.abi import calldata

_PROVIDER = """
const provider = {
  isUniversalProfileExtension: true,
  on() { return this; },
  removeListener() { return this; },
  async request({ method, params = [] }) {
    const answer = JSON.parse(await window.askExtension(JSON.stringify({ method, params })));
    if ("error" in answer) throw Object.assign(new Error(answer.error.message), answer.error);
    return answer.result;
  },
};
const info = { uuid: crypto.randomUUID(), name: "Universal Profile", rdns: "io.universaleverything.universalprofile",
  icon: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>" };
const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider",
  { detail: Object.freeze({ info, provider }) }));
addEventListener("eip6963:requestProvider", announce);
window.lukso = provider;
announce();
"""
_REJECTED = {"code": 4001, "message": "User rejected the request."}
_UNSUPPORTED = {"code": 4200, "message": "The provider does not support the requested method."}


@dataclass
class Extension:
    """An extension that holds one profile; `declines` names the methods that its person says no to."""

    wallet: Wallet
    declines: set[str] = field(default_factory=set)
    relayer_url: str | None = None

    def install(self, page: Page) -> None:
        """Make the page see the extension from its next load on."""
        page.expose_function("askExtension", self._answer)
        page.add_init_script(_PROVIDER)

    def _answer(self, question: str) -> str:
        asked = json.loads(question)
        method = asked["method"]
        act = getattr(self, f"_{method}", None)
        if method in self.declines:
            return json.dumps({"error": _REJECTED})
        if act is None:
            return json.dumps({"error": _UNSUPPORTED})
        return json.dumps({"result": act(*asked["params"])})

    def _eth_requestAccounts(self) -> list[str]:  # noqa: N802 (the name of the method)
        return [self.wallet.profile_address]

    _eth_accounts = _eth_requestAccounts

    def _eth_chainId(self) -> Any:  # noqa: N802
        return self.wallet.rpc.call("eth_chainId")

    def _personal_sign(self, message: str, address: str) -> str:
        assert address.lower() == self.wallet.profile_address.lower()
        signable = encode_defunct(hexstr=message)
        return str(Account.sign_message(signable, self.wallet.controller_key).signature.to_0x_hex())

    def _up_addTransactionRelayer(self, relayer: dict[str, Any]) -> list[str]:  # noqa: N802
        assert set(relayer) == {"name", "apiUrl", "chainIds"}
        assert relayer["chainIds"] == [int(self.wallet.rpc.call("eth_chainId"), 16)]
        self.relayer_url = relayer["apiUrl"]
        return [self.wallet.profile_address]

    def _eth_sendTransaction(self, transaction: dict[str, Any]) -> str:  # noqa: N802
        assert self.relayer_url, "no relayer was added"
        call = (int(transaction["value"], 16), bytes.fromhex(transaction["data"][2:]))
        payload = calldata("execute(uint256,address,uint256,bytes)", 0, transaction["to"], *call)
        body = {
            "address": self.wallet.profile_address,
            "transaction": self.wallet.signed(payload)["transaction"],
        }
        answer = GatewayApi(self.relayer_url).post("/execute", body)
        return str(answer["transactionHash"])
