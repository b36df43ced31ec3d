"""Faults of a node, each as a rule of the proxy in front of it."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from eth_utils.crypto import keccak

from lab.chaos.http_proxy import Forward, Message, Rule, answer

_SEND = "eth_sendRawTransaction"
_BLOCKS_BEHIND = 50
Response = dict[str, Any]


def _is_sending(request: Message) -> bool:
    return any(call["method"] == _SEND for call in request.calls)


async def cut_before_sending(request: Message, forward: Forward) -> Message | None:
    """Cut the connection before the node receives a transaction."""
    return None if _is_sending(request) else await forward(request)


async def cut_after_sending(request: Message, forward: Forward) -> Message | None:
    """Cut the connection after the node has accepted a transaction, so the client gets no response."""
    answered = await forward(request)
    return None if _is_sending(request) else answered


async def too_many_requests(request: Message, forward: Forward) -> Message | None:
    """Return 429 to everything."""
    return answer("429 Too Many Requests", {"error": "rate limited"})


def changed(change: Callable[[Response, Response], Response]) -> Rule:
    """Forward everything, and replace each result by that of `change`, which gets the call and its result."""

    async def rule(request: Message, forward: Forward) -> Message | None:
        answered = await forward(request)
        by_id = {one["id"]: one for one in answered.calls}
        return _answers(request, [change(call, by_id[call["id"]]) for call in request.calls])

    return rule


def wrong_chain_id(call: Response, answered: Response) -> Response:
    """Report a wrong chain id."""
    return {**answered, "result": "0x1"} if call["method"] == "eth_chainId" else answered


def reverted_receipts(call: Response, answered: Response) -> Response:
    """Report that each transaction reverted."""
    if call["method"] != "eth_getTransactionReceipt" or not answered.get("result"):
        return answered
    return {**answered, "result": {**answered["result"], "status": "0x0"}}


def costly_receipts(call: Response, answered: Response) -> Response:
    """Report twice the gas of each transaction."""
    if call["method"] != "eth_getTransactionReceipt" or not answered.get("result"):
        return answered
    receipt = answered["result"]
    return {**answered, "result": {**receipt, "gasUsed": hex(2 * int(receipt["gasUsed"], 16))}}


def moved_nonces(by: int) -> Callable[[Response, Response], Response]:
    """Report account nonces that are too high or too low."""

    def change(call: Response, answered: Response) -> Response:
        if call["method"] != "eth_getTransactionCount" or not answered.get("result"):
            return answered
        return {**answered, "result": hex(max(0, int(answered["result"], 16) + by))}

    return change


def already_known(call: Response, answered: Response) -> Response:
    """Accept each transaction, and report that it was already known."""
    return _error(call, "already known") if call["method"] == _SEND else answered


def refusing(message: str, *, once: bool) -> Rule:
    """Reject transactions with this error; with `once`, accept each on its second attempt."""
    refused: set[str] = set()

    async def rule(request: Message, forward: Forward) -> Message | None:
        kept = [call for call in request.calls if call["method"] != _SEND or call["params"][0] in refused]
        dropped = [call for call in request.calls if call not in kept]
        if once:
            refused.update(call["params"][0] for call in dropped)
        return await _some(request, kept, forward, lambda call: _error(call, message))

    return rule


async def lost_broadcast(request: Message, forward: Forward) -> Message | None:
    """Return each transaction's hash, but drop the transaction."""
    kept = [call for call in request.calls if call["method"] != _SEND]

    def hash_of(call: Response) -> Response:
        raw = bytes.fromhex(call["params"][0][2:])
        return {"jsonrpc": "2.0", "id": call["id"], "result": "0x" + keccak(raw).hex()}

    return await _some(request, kept, forward, hash_of)


async def behind(request: Message, forward: Forward, blocks: int = _BLOCKS_BEHIND) -> Message:
    """Respond as a node that is this many blocks behind."""
    question = Message(
        request.head, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "eth_blockNumber"}).encode()
    )
    newest = int((await forward(_sized(question))).calls[0]["result"], 16)
    latest = hex(max(0, newest - blocks))
    calls = [
        {
            **call,
            "params": [latest if one in ("latest", "pending") else one for one in call.get("params", [])],
        }
        for call in request.calls
    ]
    answered = await forward(_with_calls(request, calls))
    by_id = {one["id"]: one for one in answered.calls}
    return _answers(request, [_not_after(latest, call, by_id[call["id"]]) for call in request.calls])


def _not_after(latest: str, call: Response, answered: Response) -> Response:
    if call["method"] == "eth_blockNumber":
        return {**answered, "result": latest}
    result = answered.get("result")
    if call["method"] == "eth_getTransactionReceipt" and result:
        is_included = int(result["blockNumber"], 16) <= int(latest, 16)
        return answered if is_included else {**answered, "result": None}
    return answered


async def slowly(request: Message, forward: Forward) -> Message | None:
    """Delay every response by three seconds."""
    await asyncio.sleep(3)
    return await forward(request)


async def _some(
    request: Message, kept: list[Response], forward: Forward, instead: Callable[[Response], Response]
) -> Message:
    """Forward some of the calls, and fill the others with the results of `instead`."""
    answered = (await forward(_with_calls(request, kept))).calls if kept else []
    by_id = {one["id"]: one for one in answered}
    return _answers(request, [by_id.get(call["id"]) or instead(call) for call in request.calls])


def _error(call: Response, message: str) -> Response:
    return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32000, "message": message}}


def _answers(request: Message, answers: list[Response]) -> Message:
    return answer("200 OK", answers if request.body.lstrip().startswith(b"[") else answers[0])


def _with_calls(request: Message, calls: list[Response]) -> Message:
    is_batch = request.body.lstrip().startswith(b"[")
    return _sized(Message(request.head, json.dumps(calls if is_batch else calls[0]).encode()))


def _sized(request: Message) -> Message:
    """Return the request with a correct Content-Length."""
    lines = [line for line in request.head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
    return Message(b"\r\n".join([*lines, b"content-length: %d" % len(request.body)]), request.body)
