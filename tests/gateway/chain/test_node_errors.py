"""What the words of the nodes in the field mean."""

import secrets

import pytest

from gateway.chain.node_errors import is_call_error, is_send_error, revert_data, send_outcome
from gateway.chain.rpc import RpcError
from gateway.chain.types import SendKind, SendOutcome

# In the clients' words: g geth, e erigon, n nethermind, b besu, r reth, a anvil, d EDR, o openethereum.
_WORDS = {
    SendKind.ACCEPTED: [
        "already known",  # g e n r
        "Known transaction",  # b
        "existing txn with same hash",  # e
        "INTERNAL_ERROR: existing tx with same hash",  # e
        "transaction already imported",  # a
        "AlreadyKnown",  # n before 2025
        "known transaction: 0x12",  # g before 2020
        "Transaction with the same hash was already imported.",  # o
    ],
    SendKind.NONCE_TOO_LOW: [
        "Transaction nonce too low. Expected nonce to be at least 1 but got 0.",  # d
        "nonce too low",  # g e r a
        "nonce too low: next nonce 5, tx nonce 3",  # g
        "transaction nonce 3 below sender account nonce 5",  # b
        "OldNonce, Current nonce: 5, nonce of rejected tx: 3",  # n
        "Transaction nonce is too low. Try incrementing the nonce.",  # o
        "mined",  # e
    ],
    SendKind.UNDERPRICED: [
        "Replacement transaction underpriced. A gasPrice/maxPriorityFeePerGas of at least 2 is necessary",  # d
        "replacement transaction underpriced",  # g e r a
        "transaction underpriced",  # g r
        "transaction underpriced: gas tip cap 0, minimum needed 1000000000",  # g
        "transaction gas price below minimum: gas tip cap 0, minimum needed 1",  # g
        "max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 7",  # g a r
        "could not replace existing tx",  # e
        "fee too low",  # e
        "FeeTooLowToCompete",  # n
        "ReplacementNotAllowed",  # n
        "replaced by transaction with higher tip",  # e
        "insufficient gas price to replace existing transaction",  # r
        "transaction feeCap 1 below chain minimum",  # r
        "Gas price below configured minimum gas price",  # b
        "Gas price below current base fee",  # b
    ],
    SendKind.LATER: [
        "txpool is full",  # g
        "out of capacity",  # g
        "account limit exceeded: pooled 64 txs",  # g
        "future transaction tries to replace pending",  # g
        "pending sub-pool is full",  # e
        "spammer",  # e
        "nonce too high",  # n a
        "nonce too far in future",  # n
        "Internal error",
        "request timed out",
        "Too Many Requests",
        "node is syncing",  # n
        "NonceGap, Future nonce. Expected nonce: 3",  # n
        "nonce gap: have 7, want 5",
        "transaction nonce too distant: 90",
        "there is another transaction with lower nonce",
        "transaction indexing is in progress",  # g
        "in-flight transaction limit reached for delegated accounts",  # g r
        "gapped-nonce tx from delegated accounts",  # g r
        "authority already reserved",  # g r
        "EIP-7702 transaction with authority already reserved",  # e
        "NotCurrentNonceForDelegation",  # n
        "Nonce too high",  # b
        "Transaction nonce is too distant from current sender nonce",  # b
        "An invalid transaction with a lower nonce exists",  # b
        "Initial sync is still in progress",  # b
        "baseFee sub-pool is full",  # e
        "something that no node has ever said",
    ],
    SendKind.REFUSED: [
        "Sender doesn't have enough funds to send tx. The max upfront cost is: 11",  # d
        "Transaction requires at least 21000 gas but got 20999",  # d
        "Transaction gas limit is 1099511627776 and exceeds transaction gas cap of 16777216",  # d
        "maxPriorityFeePerGas (2000000000) is bigger than maxFeePerGas (1000000000)",  # d
        "Trying to send a raw transaction with an invalid chainId. The expected chainId is 4201",  # d
        "insufficient funds for gas * price + value: balance 0, tx cost 1",  # g r
        "Insufficient funds for gas * price + value",  # a
        "insufficient funds",  # e
        "intrinsic gas too low: gas 21000, minimum needed 21160",  # g
        "IntrinsicGas",  # e
        "tx fee (1.05 ether) exceeds the configured cap (1.00 ether)",  # g
        "exceeds block gas limit",  # g
        "gas limit reached",  # n
        "intrinsic gas too high",  # a
        "invalid sender",  # g e
        "invalid chain id for signer: have 1 want 42",  # g
        "Failed to decode transaction",  # a
        "oversized data: transaction size 140000, limit 131072",  # g
        "max priority fee per gas higher than max fee per gas",  # g
        "Invalid signature",
        "transaction type not supported",  # g
        "max initcode size exceeded: code size 50000, limit 49152",  # g
        "InsufficientFunds, Account balance: 0, cumulative cost: 1",  # n
        "insufficient MaxFeePerGas for sender balance",  # n
        "insufficient sender balance",  # n
        "Upfront cost exceeds account balance",  # b
        "transaction up-front cost 0x10 exceeds transaction sender account balance 0x5",  # b
        "Transaction gas limit exceeds block gas limit",  # b
        "Intrinsic gas exceeds gas limit",  # b
        "Transaction fee cap exceeded",  # b
        "Max priority fee per gas exceeds max fee per gas",  # b
        "Wrong chainId",  # b
        "ChainId not supported",  # b
        "Invalid transaction type",  # b
        "transaction gas limit too high (cap: 16777216, tx: 20000000)",  # g r, EIP-7825
        "gas limit too high. Max: 16777216",  # e
        "insufficient gas for floor data gas cost: gas 21000, minimum needed 22000",  # g, EIP-7623
        "sender not an eoa",  # g
        "sender is not an EOA",  # r
        "SenderIsContract",  # n
        "NotSupportedTxType",  # n
        "unsupported transaction type",  # e
        "fork supporting this transaction type is not activated yet",  # e
        "MaxTxSizeExceeded",  # n
        "GasLimitExceeded",  # n
        "RLPTooLong",  # e
        "GasUintOverflow",  # e
    ],
}


def test_the_words_of_a_send_error_decide_its_kind() -> None:
    for kind, words in _WORDS.items():
        outcomes = [send_outcome(RpcError(-32000, each)) for each in words]
        assert outcomes == [SendOutcome(kind, each) for each in words]


@pytest.mark.parametrize(
    "words",
    [
        "transaction underpriced: tip needed 3000000000, tip permitted 1000000000",
        "transaction gas price below minimum: gas tip cap 1000000000, minimum needed 3000000000",
        "transaction underpriced: minimum required priority fee: 3000000000",
    ],
)
def test_the_lowest_tip_is_read_from_the_words_of_a_send_error(words: str) -> None:
    outcome = send_outcome(RpcError(-32000, words))
    assert (outcome.kind, outcome.least_tip_wei) == (SendKind.UNDERPRICED, 3 * 10**9)


@pytest.mark.parametrize(
    ("reply", "least"),
    [
        ("0x" + "ab" * 32, 0),
        (RpcError(-32000, "nonce too low"), 0),
        # Such a node may have dropped the bytes, and refuse them with its newest minimum.
        (RpcError(-32000, "already known"), None),
        (RpcError(-32000, "replacement transaction underpriced"), None),
        (RpcError(-32000, "insufficient funds: minimum needed 3000000000"), None),
    ],
)
def test_other_outcomes_tell_whether_the_tip_was_enough_or_nothing(reply: object, least: int | None) -> None:
    assert send_outcome(reply).least_tip_wei == least


def test_unknown_words_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    words = (
        f"the {secrets.token_urlsafe(9).translate(str.maketrans('0123456789', 'abcdefghij'))} is %d too odd"
    )
    for figure in (7, 12_345, 0):
        assert send_outcome(RpcError(-32099, words % figure)).kind is SendKind.LATER
    (record,) = [record for record in caplog.records if "unknown words" in record.message]
    assert record.levelname == "WARNING"
    assert words % 7 in record.message
    assert "-32099" in record.message


def test_known_words_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    send_outcome(RpcError(-32000, "txpool is full"))
    assert not caplog.records


def test_besus_code_of_a_block_gas_limit_is_not_a_rate_limit() -> None:
    assert is_send_error(RpcError(-32005, "Transaction gas limit exceeds block gas limit"))


def test_a_returned_hash_means_accepted() -> None:
    assert send_outcome("0x" + "ab" * 32).kind is SendKind.ACCEPTED


def test_a_long_node_message_is_cut() -> None:
    assert len(send_outcome(RpcError(-32000, "x" * 10_000)).message) == 200


@pytest.mark.parametrize(
    "error",
    [
        RpcError(3, "execution reverted: nope", "0x08c379a0"),
        RpcError(-32000, "execution reverted"),
        RpcError(-32015, "VM execution error.", "Reverted 0x08c379a0"),
        RpcError(-32000, "gas required exceeds allowance (60000)"),
        RpcError(-32000, "out of gas"),
        RpcError(-32003, "Out of gas: gas required exceeds allowance: 60000"),
        RpcError(-32603, "EVM error InvalidFEOpcode"),
        RpcError(-32000, "invalid opcode: INVALID"),
        RpcError(-32000, "stack underflow (0 <=> 1)"),
        RpcError(-32000, "stack limit reached 1024 (1023)"),
        RpcError(-32000, "return data out of bounds"),
        RpcError(-32000, "max call depth exceeded"),
        RpcError(-32000, "max code size exceeded"),
        RpcError(-32000, "invalid code: must not begin with 0xef"),
        RpcError(-32000, "contract address collision"),
        RpcError(-32000, "insufficient balance for transfer"),
        RpcError(-32000, "bad elliptic curve pairing size"),
        RpcError(-32000, "invalid input length"),
        RpcError(-32000, "bn256: malformed point"),
        RpcError(-32000, "invalid field element top bytes"),
        RpcError(-32000, "g1 point is not on correct subgroup"),
        RpcError(-32000, "invalid final flag"),
        RpcError(-32000, "mismatched versioned hash"),
        RpcError(-32003, "Precompile 0x08 failed with error: invalid input"),
        RpcError(-32015, "AccessViolation"),
        RpcError(-32000, "StaticCallViolation"),
        RpcError(-32601, "the method eth_maxPriorityFeePerGas does not exist"),
    ],
)
def test_a_failing_contract_is_a_call_error(error: RpcError) -> None:
    assert is_call_error(error)


@pytest.mark.parametrize(
    "error",
    [
        RpcError(-32005, "limit exceeded"),
        RpcError(-32603, "Internal error"),
        RpcError(-32000, "header not found"),
        RpcError(-32001, "Resource not found"),
        RpcError(-32000, "missing trie node"),
        RpcError(429, "execution reverted by the rate limiter"),
    ],
)
def test_a_failing_node_is_not_a_call_error(error: RpcError) -> None:
    assert not is_call_error(error)


def test_a_rate_limit_is_not_a_send_error() -> None:
    assert not is_send_error(RpcError(-32005, "limit exceeded"))
    assert is_send_error(RpcError(-32000, "nonce too low"))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("0x08c379a0", b"\x08\xc3\x79\xa0"),
        ("Reverted 0x08c379a0", b"\x08\xc3\x79\xa0"),
        ({"data": "0x08c379a0", "message": "x"}, b"\x08\xc3\x79\xa0"),
        ("0x", b""),
        ("nothing", b""),
        (None, b""),
        ({"other": 1}, b""),
        (7, b""),
    ],
)
def test_revert_data_is_read_from_each_clients_place(data: object, expected: bytes) -> None:
    assert revert_data(RpcError(3, "execution reverted", data)) == expected
