"""The chain client over JSON-RPC: one batch per question, with "latest" given explicitly, as defaults differ."""

from collections.abc import Iterable, Sequence
from typing import Any

from gateway.chain import answers, contracts, outcomes
from gateway.chain.errors import CallReverted, NodeUnavailable
from gateway.chain.follower import follower_gas
from gateway.chain.lsp6 import permissions_key
from gateway.chain.states import (
    AccountState,
    ChainView,
    ExternalExecution,
    Head,
    KeyManagerState,
    ProfileState,
    RelayState,
    SendKind,
    SendOutcome,
)
from gateway.chain.transport import Call, RpcError, Transport

_LATEST = "latest"
_FEE_BLOCKS, _FEE_PERCENTILE = 10, 50
# Callers choose the contract, so cap the gas of each question.
_QUESTION_GAS = 500_000
_ACCEPTED = contracts.IS_VALID_SIGNATURE
# lsp20VerifyCall answers this and one byte of flags (LSP-20).
_VERIFIED = contracts.LSP20_VERIFY_CALL[:3]
_LOG_BLOCKS = 1_000
_SENT_TOGETHER = 100
_NOBODY = "0x0000000000000000000000000000000000000000"


class JsonRpcChainClient:
    """A `ChainClient` over the nodes of a list of URLs. Safe to share between threads."""

    def __init__(self, urls: Sequence[str], *, timeout_seconds: float) -> None:
        self._transport = Transport(urls, timeout_seconds=timeout_seconds)

    def chain_id(self) -> int:
        return answers.number(self._read(("eth_chainId", []))[0])

    def head(self) -> Head:
        return answers.head(self._read(_block())[0])

    def read_profile(self, *, profile: str, controller: str, digest: bytes, signature: bytes) -> ProfileState:
        code, owner, permissions, verdict = self._read(
            _code(profile),
            _call(profile, contracts.OWNER),
            _permissions(profile, controller),
            _call(profile, contracts.encode_is_valid_signature(digest=digest, signature=signature)),
        )
        word = answers.returned_word(verdict)
        return ProfileState(
            profile_code=answers.octets(code),
            owner=answers.returned_address(owner),
            permissions=answers.returned_permissions(permissions),
            signature_valid=word is not None and word[:4] == _ACCEPTED,
        )

    def read_key_manager(self, *, key_manager: str) -> KeyManagerState:
        code, target = self._read(_code(key_manager), _call(key_manager, contracts.TARGET))
        return KeyManagerState(code=answers.octets(code), target=answers.returned_address(target))

    def read_permissions(self, *, profile: str, controllers: Sequence[str]) -> list[int]:
        replies = self._read(*(_permissions(profile, controller) for controller in controllers))
        return [answers.returned_permissions(reply) for reply in replies]

    def read_relay_state(
        self, *, profile: str, key_manager: str, controller: str, channel: int
    ) -> RelayState:
        profile_code, key_manager_code, owner, target, permissions, nonce, block, history, suggestion = (
            self._read(
                _code(profile),
                _code(key_manager),
                _call(profile, contracts.OWNER),
                _call(key_manager, contracts.TARGET),
                _permissions(profile, controller),
                _nonce(key_manager, controller, channel),
                _block(),
                ("eth_feeHistory", [hex(_FEE_BLOCKS), _LATEST, [_FEE_PERCENTILE]]),
                ("eth_maxPriorityFeePerGas", []),
            )
        )
        word = answers.returned_word(nonce)
        return RelayState(
            profile_code=answers.octets(profile_code),
            key_manager_code=answers.octets(key_manager_code),
            owner=answers.returned_address(owner),
            target=answers.returned_address(target),
            permissions=answers.returned_permissions(permissions),
            relay_nonce=None if word is None else int.from_bytes(word, "big"),
            head=answers.head(block),
            tip_wei=answers.tip(history, suggestion),
        )

    def simulate_relay_call(self, *, sender: str, key_manager: str, calldata: bytes, gas_cap: int) -> int:
        reply = self._read(_estimate(sender, key_manager, calldata, gas_cap))[0]
        return answers.number(_unreverted(reply))

    def simulate_follower(
        self, *, key_manager: str, profile: str, controller: str, payload: bytes, gas_cap: int
    ) -> int:
        question = contracts.encode_lsp20_verify_call(profile=profile, controller=controller, payload=payload)
        verdict, verifying, executing = self._read(
            _call(key_manager, question, gas=gas_cap),
            _estimate(_NOBODY, key_manager, question, gas_cap),
            _estimate(key_manager, profile, payload, gas_cap),
        )
        word = answers.returned(_unreverted(verdict))
        if word[:3] != _VERIFIED:
            raise CallReverted(b"")
        return follower_gas(
            verifying_gas=answers.number(_unreverted(verifying)),
            executing_gas=answers.number(_unreverted(executing)),
            verifying_calldata=question,
            payload=payload,
        )

    def read_chain(
        self, *, transaction_hashes: Sequence[str], accounts: Sequence[str], confirmations: int
    ) -> ChainView:
        # The head is read first: a block that arrives meanwhile can only add to what is read afterwards.
        block, *found = self._read(
            _block(), *(("eth_getTransactionReceipt", [known]) for known in transaction_hashes)
        )
        newest = answers.head(block)
        receipts = [read for read in map(answers.receipt, found) if read is not None]
        return ChainView(
            head=newest,
            receipts={receipt.transaction_hash: receipt for receipt in receipts},
            accounts=self._accounts(accounts, max(0, newest.number - confirmations + 1)),
        )

    def read_relay_nonce(self, *, key_manager: str, controller: str, channel: int) -> int | None:
        word = answers.returned_word(self._read(_nonce(key_manager, controller, channel))[0])
        return None if word is None else int.from_bytes(word, "big")

    def read_external_executions(
        self, *, key_manager: str, controller: str, from_block: int, to_block: int
    ) -> list[ExternalExecution]:
        topics = [contracts.PERMISSIONS_VERIFIED_TOPIC, "0x" + controller[2:].lower().rjust(64, "0")]
        pages = self._read(
            *(
                (
                    "eth_getLogs",
                    [
                        {
                            "address": key_manager,
                            "topics": topics,
                            "fromBlock": hex(first),
                            "toBlock": hex(last),
                        }
                    ],
                )
                for first, last in _windows(from_block, to_block)
            )
        )
        logs = [log for page in pages for log in answers.logs(page)]
        hashes = list(dict.fromkeys(log.transaction_hash for log in logs))
        found = self._read(*(("eth_getTransactionByHash", [known]) for known in hashes))
        transactions = dict(zip(hashes, found, strict=True))
        return [
            answers.execution(log, transactions[log.transaction_hash])
            for log in logs
            if transactions[log.transaction_hash] is not None
        ]

    def send_raw_transactions(self, raw: Sequence[bytes]) -> list[SendOutcome]:
        sent: list[SendOutcome] = []
        for start in range(0, len(raw), _SENT_TOGETHER):
            calls = [
                ("eth_sendRawTransaction", ["0x" + one.hex()]) for one in raw[start : start + _SENT_TOGETHER]
            ]
            try:
                replies = self._transport.batch(calls, accepts=outcomes.is_verdict)
            except NodeUnavailable as error:
                # The rest would wait for the same nodes, and depends on these.
                return sent + [SendOutcome(SendKind.UNREACHABLE, error.detail)] * (len(raw) - start)
            sent += map(outcomes.sending, replies)
        return sent

    def _accounts(self, accounts: Sequence[str], confirmed_block: int) -> dict[str, AccountState]:
        calls: list[Call] = []
        for account in accounts:
            calls += [
                ("eth_getTransactionCount", [account, _LATEST]),
                ("eth_getTransactionCount", [account, hex(confirmed_block)]),
                ("eth_getBalance", [account, _LATEST]),
            ]
        read = [answers.number(reply) for reply in self._read(*calls)]
        triples = zip(read[0::3], read[1::3], read[2::3], strict=True)
        return {account: AccountState(*triple) for account, triple in zip(accounts, triples, strict=True)}

    def _read(self, *calls: Call) -> list[Any]:
        return self._transport.batch(calls, accepts=outcomes.is_answer)


def _unreverted(reply: Any) -> Any:
    if isinstance(reply, RpcError):
        raise CallReverted(outcomes.revert_data(reply))
    return reply


def _windows(first: int, last: int) -> Iterable[tuple[int, int]]:
    """Split a range of blocks into pieces that public nodes are willing to search."""
    return ((start, min(start + _LOG_BLOCKS - 1, last)) for start in range(first, last + 1, _LOG_BLOCKS))


def _block() -> Call:
    return "eth_getBlockByNumber", [_LATEST, False]


def _code(address: str) -> Call:
    return "eth_getCode", [address, _LATEST]


def _call(to: str, calldata: bytes, *, gas: int = _QUESTION_GAS) -> Call:
    return "eth_call", [{"to": to, "data": "0x" + calldata.hex(), "gas": hex(gas)}, _LATEST]


def _estimate(sender: str, to: str, calldata: bytes, gas_cap: int) -> Call:
    fields = {"from": sender, "to": to, "data": "0x" + calldata.hex(), "gas": hex(gas_cap)}
    return "eth_estimateGas", [fields, _LATEST]


def _permissions(profile: str, controller: str) -> Call:
    return _call(profile, contracts.GET_DATA + permissions_key(controller))


def _nonce(key_manager: str, controller: str, channel: int) -> Call:
    return _call(key_manager, contracts.encode_get_nonce(controller=controller, channel=channel))
