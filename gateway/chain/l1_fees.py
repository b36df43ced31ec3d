"""
What a chain of the OP stack charges besides gas: a fee for the transaction's data on L1, and the operator's fee.

Nodes take both from the sender's balance, whatever the gas limit, and drop a transaction whose sender cannot pay them.
Pure arithmetic, as of the fork Fjord; sources: the OP stack's specifications of Fjord, Isthmus and Jovian.
"""

from dataclasses import dataclass
from typing import Self

# The slots of the predeployed contract L1Block that nodes themselves compute the fees from: L1's base fee, both
# scalars, L1's blob base fee, and the operator's fee.
L1_BLOCK = "0x4200000000000000000000000000000000000015"
SLOTS = (1, 3, 7, 8)

# Fjord: the compressed size is estimated as 0.8365 × FastLZ - 42.5856 bytes, at least 100 bytes, with six decimals.
_SIZE_FACTOR, _SIZE_OFFSET, _LEAST_SIZE = 836_500, 42_585_600, 100_000_000
_DATA_DIVISOR = 10**12
# The price of 16 gas per byte of calldata on L1.
_GAS_PER_BYTE = 16
_ISTHMUS_DIVISOR, _JOVIAN_FACTOR = 10**6, 100
# A transaction beside its calldata: fees, gas, nonce, addresses and signature, with the prefixes of RLP.
ENVELOPE_BYTES = 140


# The base fee of a block is at most an eighth above that of the block before (EIP-1559, EIP-4844).
_LARGEST_RISE = 8


def highest_base_fee(base_fee_wei: int, *, blocks: int) -> int:
    """Return the highest base fee possible after this many blocks, of any chain with EIP-1559."""
    for _ in range(blocks):
        base_fee_wei += max(1, -(-base_fee_wei // _LARGEST_RISE))
    return base_fee_wei


@dataclass(frozen=True, slots=True)
class L1Prices:
    """
    The prices of one block: L1's base fees in wei per gas, their scalars, and the operator's fee.

    The operator's fee has been charged since Isthmus; Jovian has changed its formula.
    """

    base_fee_wei: int
    blob_base_fee_wei: int
    base_fee_scalar: int
    blob_base_fee_scalar: int
    operator_scalar: int = 0
    operator_constant_wei: int = 0
    is_jovian: bool = False

    @classmethod
    def of_slots(cls, base_fee: int, scalars: int, blob_base_fee: int, operator: int) -> Self:
        """Return the prices in the words of L1Block's `SLOTS`."""
        return cls(
            base_fee_wei=base_fee,
            blob_base_fee_wei=blob_base_fee,
            base_fee_scalar=_part(scalars, 16, 20),
            blob_base_fee_scalar=_part(scalars, 20, 24),
            operator_scalar=_part(operator, 20, 24),
            operator_constant_wei=_part(operator, 24, 32),
            # Since Jovian, the block has a scalar for the data's footprint, which is never 0.
            is_jovian=bool(_part(operator, 18, 20)),
        )

    def fee_wei(self, raw: bytes, *, gas_used: int) -> int:
        """Return the exact fee of a mined transaction with these signed bytes."""
        return self._data_fee_wei(fastlz_size(raw)) + self._operator_fee_wei(gas_used)

    def expected_fee_wei(self, *, data_bytes: int, gas: int) -> int:
        """Return the highest fee at these prices of a transaction with this much calldata, whatever its content."""
        size = data_bytes + ENVELOPE_BYTES
        return self._data_fee_wei(_largest_fastlz_size(size)) + self._operator_fee_wei(gas)

    def highest_fee_wei(self, *, data_bytes: int, gas_limit: int, l1_blocks: int) -> int:
        """
        Return the highest fee of such a transaction if it is mined within this many blocks of L1.

        In each of them, L1's base fee and blob base fee rise by at most an eighth. Scalars change only when the chain's
        operator changes them, which no bound can cover.
        """
        raised = L1Prices(
            highest_base_fee(self.base_fee_wei, blocks=l1_blocks),
            highest_base_fee(self.blob_base_fee_wei, blocks=l1_blocks),
            self.base_fee_scalar,
            self.blob_base_fee_scalar,
            self.operator_scalar,
            self.operator_constant_wei,
            self.is_jovian,
        )
        return raised.expected_fee_wei(data_bytes=data_bytes, gas=gas_limit)

    def _data_fee_wei(self, fastlz_bytes: int) -> int:
        size = max(_LEAST_SIZE, fastlz_bytes * _SIZE_FACTOR - _SIZE_OFFSET)
        base = self.base_fee_wei * self.base_fee_scalar * _GAS_PER_BYTE
        return size * (base + self.blob_base_fee_wei * self.blob_base_fee_scalar) // _DATA_DIVISOR

    def _operator_fee_wei(self, gas: int) -> int:
        return operator_fee_wei(
            gas=gas,
            scalar=self.operator_scalar,
            constant_wei=self.operator_constant_wei,
            is_jovian=self.is_jovian,
        )


def operator_fee_wei(*, gas: int, scalar: int, constant_wei: int, is_jovian: bool) -> int:
    """Return the operator's fee for this gas: by Jovian's formula, or by that of Isthmus."""
    product = gas * scalar
    return constant_wei + (product * _JOVIAN_FACTOR if is_jovian else product // _ISTHMUS_DIVISOR)


def _part(word: int, start: int, end: int) -> int:
    """Return the number in these bytes of a storage word."""
    return int.from_bytes(word.to_bytes(32, "big")[start:end], "big")


def _largest_fastlz_size(size: int) -> int:
    """Return the largest compressed size of this many bytes: FastLZ adds at most a byte per 32, and 16."""
    return size + -(-size // 32) + 16


# FastLZ, level 1, as the OP stack measures a transaction: only the compressed size, not the bytes.
_HASH_BITS, _HASH_FACTOR = 13, 2_654_435_769
_LITERALS, _LONGEST_MATCH, _SHORT_MATCH, _MOST_DISTANCE = 32, 262, 6, 0x1FFF
_TAIL = 13


def fastlz_size(data: bytes) -> int:
    """Return the size of the data compressed by FastLZ."""
    places = [0] * (1 << _HASH_BITS)
    limit = max(0, len(data) - _TAIL)
    size, anchor, at = 0, 0, 2
    while at < limit:
        place = _match_from(data, places, at, limit)
        if place is None:
            break
        at, earlier = place
        size += _literals(at - anchor)
        length = _equal_bytes(data, earlier + 3, at + 3, limit + 9)
        size += _match(length)
        at += length
        for _ in range(2):
            places[_hash(_three(data, at))] = at
            at += 1
        anchor = at
    return size + _literals(len(data) - anchor)


def _match_from(data: bytes, places: list[int], at: int, limit: int) -> tuple[int, int] | None:
    """Return the next place whose three bytes occurred before, and where they did; None without one."""
    while at < limit:
        three = _three(data, at)
        key = _hash(three)
        earlier, places[key] = places[key], at
        if at - earlier <= _MOST_DISTANCE and three == _three(data, earlier):
            return at, earlier
        at += 1
    return None


def _equal_bytes(data: bytes, earlier: int, later: int, end: int) -> int:
    """Return the count of equal bytes from both places on, including the first pair that differs, if there is one."""
    for length in range(end - later):
        if data[earlier + length] != data[later + length]:
            return length + 1
    return end - later


def _match(length: int) -> int:
    whole, rest = divmod(length - 1, _LONGEST_MATCH)
    return 3 * whole + (3 if rest >= _SHORT_MATCH else 2)


def _literals(count: int) -> int:
    whole, rest = divmod(count, _LITERALS)
    return whole * (_LITERALS + 1) + (rest + 1 if rest else 0)


def _three(data: bytes, at: int) -> int:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16


def _hash(three: int) -> int:
    return (three * _HASH_FACTOR >> 19) & ((1 << _HASH_BITS) - 1)
