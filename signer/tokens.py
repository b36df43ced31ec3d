"""Keys in a device behind PKCS#11: a hardware security module, or SoftHSM."""

import threading
from typing import Any

import pkcs11
from coincurve import PublicKey
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass

from signer.keys import KeyUnusable
from signer.transactions import address_of, recoverable

_POINT_BYTES = 65


class TokenKey:
    """One key pair of a token. The session is shared, and used by one thread at a time."""

    def __init__(self, session: pkcs11.Session, lock: threading.Lock, private: Any) -> None:
        """
        Read the public half.

        Raises:
            KeyUnusable: it is missing, or of another curve.
        """
        self._lock, self._private = lock, private
        wanted = {Attribute.CLASS: ObjectClass.PUBLIC_KEY, Attribute.ID: private[Attribute.ID]}
        public = next(iter(session.get_objects(wanted)), None)
        try:
            if public is None:
                raise ValueError("no public key")
            # A DER octet string around the uncompressed point; some devices leave the wrapping out.
            self._public_key = PublicKey(bytes(public[Attribute.EC_POINT])[-_POINT_BYTES:])
        except ValueError as error:
            raise KeyUnusable(f"PKCS#11, key {private[Attribute.ID].hex()}: no key of secp256k1") from error
        self.address = address_of(self._public_key)

    def __repr__(self) -> str:
        return f"TokenKey({self.address})"

    def sign(self, digest: bytes) -> bytes:
        """See `signer.keys.Key`."""
        try:
            with self._lock:
                signature = bytes(self._private.sign(digest, mechanism=Mechanism.ECDSA))
            r, s = (int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
            return recoverable(digest, r, s, self._public_key)
        except (pkcs11.PKCS11Error, ValueError) as error:
            raise KeyUnusable(f"PKCS#11, {self.address}: {type(error).__name__}") from error


class Token:
    """A token that its user has logged in to; a process may do that once at a time."""

    def __init__(self, module: str, *, label: str, pin: str) -> None:
        """
        Log in.

        Raises:
            KeyUnusable: the module, the token or its PIN is wrong.
        """
        self._label, self._lock = label, threading.Lock()
        try:
            self._session = pkcs11.lib(module).get_token(token_label=label).open(user_pin=pin)
        except (pkcs11.PKCS11Error, RuntimeError) as error:
            raise KeyUnusable(f"PKCS#11, token {label}: {type(error).__name__}") from error

    def keys(self, label: str) -> list[TokenKey]:
        """
        Return the keys with this label, in the order of their ids.

        Raises:
            KeyUnusable: one of them has no public half, or is of another curve.
        """
        wanted = {
            Attribute.CLASS: ObjectClass.PRIVATE_KEY,
            Attribute.KEY_TYPE: KeyType.EC,
            Attribute.LABEL: label,
        }
        found = sorted(self._session.get_objects(wanted), key=lambda key: bytes(key[Attribute.ID]))
        return [TokenKey(self._session, self._lock, key) for key in found]

    def close(self) -> None:
        """Log out; its keys sign no more."""
        self._session.close()
