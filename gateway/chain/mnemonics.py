"""
Private keys from words: BIP-39 leads from a mnemonic to a seed, BIP-32 and BIP-44 from there to the keys.

`eth_account` does the same, but its import takes a fifth of the time in which a process starts.
"""

import hmac

from coincurve import PrivateKey
from django.core.exceptions import ImproperlyConfigured
from mnemonic import Mnemonic

_HARDENED = 1 << 31
# m/44'/60'/0'/0: the accounts of Ethereum wallets come below it.
_ACCOUNTS = (_HARDENED + 44, _HARDENED + 60, _HARDENED + 0, 0)


def derive_keys(mnemonic: str, *, count: int) -> list[str]:
    """
    Return the first private keys of a BIP-39 mnemonic, in hex, along `m/44'/60'/0'/0/i` as wallets derive them.

    The words may be of any language of BIP-39; there is no passphrase.

    Raises:
        ImproperlyConfigured: the words are no mnemonic. The error does not show them.
    """
    if not _is_mnemonic(mnemonic):
        raise ImproperlyConfigured("RELAY_RELAYER_MNEMONIC is not a mnemonic of BIP-39.")
    parent, chain_code = _master(Mnemonic.to_seed(mnemonic))
    for index in _ACCOUNTS:
        parent, chain_code = _child(parent, chain_code, index)
    return ["0x" + _child(parent, chain_code, index)[0].secret.hex() for index in range(count)]


def _is_mnemonic(words: str) -> bool:
    # Without detecting the language: the seed does not depend on it, and some words are of several languages.
    return any(Mnemonic(language).check(words) for language in Mnemonic.list_languages())


def _master(seed: bytes) -> tuple[PrivateKey, bytes]:
    """Return the master key and chain code of a seed, by BIP-32."""
    digest = hmac.digest(b"Bitcoin seed", seed, "sha512")
    return PrivateKey(digest[:32]), digest[32:]


def _child(parent: PrivateKey, chain_code: bytes, index: int) -> tuple[PrivateKey, bytes]:
    """
    Return the private key and chain code of a child, which is `CKDpriv` of BIP-32; from 2**31 on it is hardened.

    Raises:
        ValueError: BIP-32 knows no such child.
    """
    material = b"\0" + parent.secret if index >= _HARDENED else parent.public_key.format()
    digest = hmac.digest(chain_code, material + index.to_bytes(4, "big"), "sha512")
    # `add` refuses the one child in 2**127 that BIP-32 calls invalid: a left half not below n, or a sum of zero.
    return parent.add(digest[:32]), digest[32:]
