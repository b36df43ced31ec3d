"""The keys of a mnemonic are those that wallets derive, and wrong words are refused without being shown."""

import secrets
import traceback
from collections.abc import Callable

import pytest
from django.core.exceptions import ImproperlyConfigured
from eth_account.hdaccount.deterministic import HDPath
from eth_account.hdaccount.mnemonic import VALID_WORD_COUNTS, Mnemonic
from eth_account.types import Language

from gateway.chain.signing import derive_keys
from tests.fakes.profiles import address_of

_COUNT = 3
_ENGLISH = Mnemonic(Language.ENGLISH)
_KNOWN = "test test test test test test test test test test test junk"


def _expected(words: str) -> list[str]:
    seed = Mnemonic.to_seed(words)
    return ["0x" + HDPath(f"m/44'/60'/0'/0/{index}").derive(seed).hex() for index in range(_COUNT)]


def test_the_first_keys_of_the_well_known_test_mnemonic() -> None:
    assert [address_of(key) for key in derive_keys(_KNOWN, count=2)] == [
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
    ]


@pytest.mark.parametrize("word_count", VALID_WORD_COUNTS)
def test_keys_are_those_of_eth_account_in_each_of_its_languages(word_count: int) -> None:
    for language in Mnemonic.list_languages_enum():
        words = Mnemonic(language).generate(word_count)
        assert derive_keys(words, count=_COUNT) == _expected(words), language


def test_words_that_two_languages_share_are_a_mnemonic() -> None:
    chinese, other = Mnemonic(Language.CHINESE_SIMPLIFIED), Mnemonic(Language.CHINESE_TRADITIONAL)
    shared = sorted({*chinese.wordlist} & {*other.wordlist})
    words = ""
    # One choice in 16 has the right checksum.
    while not chinese.is_mnemonic_valid(words):
        words = " ".join(secrets.choice(shared) for _ in range(12))
    assert derive_keys(words, count=_COUNT) == _expected(words)


def _wrong_checksum() -> list[str]:
    *others, last = _ENGLISH.generate(12).split(" ")
    # The last bit of the last word belongs to the checksum.
    return [*others, _ENGLISH.wordlist[_ENGLISH.wordlist.index(last) ^ 1]]


def _unknown_word() -> list[str]:
    return [*_ENGLISH.generate(12).split(" ")[:-1], secrets.token_hex(8)]


def _one_word_less() -> list[str]:
    return _ENGLISH.generate(12).split(" ")[:-1]


@pytest.mark.parametrize("make", [_wrong_checksum, _unknown_word, _one_word_less])
def test_an_invalid_mnemonic_is_refused_and_not_shown(make: Callable[[], list[str]]) -> None:
    words = make()
    with pytest.raises(ImproperlyConfigured) as refusal:
        derive_keys(" ".join(words), count=1)
    assert str(refusal.value) == "RELAY_RELAYER_MNEMONIC is not a mnemonic of BIP-39."
    # Some words are also Python's; no two are.
    shown = "".join(traceback.format_exception(refusal.value))
    assert " ".join(words[-2:]) not in shown
    assert repr(words[-1]) not in shown
