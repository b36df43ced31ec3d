"""Keys in a PKCS#11 device: a hardware security module, or SoftHSM."""

import threading
from contextlib import suppress
from typing import Any

import pkcs11
from coincurve import PublicKey
from pkcs11 import Attribute, KeyType, Mechanism, ObjectClass

from signer.keys import KeyUnusable
from signer.transactions import address_of, recoverable

_POINT_BYTES = 65
# A device locks itself after several wrong PINs, so these errors are not retried.
_WRONG_PIN = (pkcs11.PinIncorrect, pkcs11.PinLocked, pkcs11.PinExpired)


class TokenKey:
    """One key pair of a token."""

    def __init__(self, token: "Token", key_id: bytes) -> None:
        """
        Read the public key.

        Raises:
            KeyUnusable: the public key is missing, or of another curve.
        """
        self._token, self._key_id = token, key_id
        self._public_key = token.public_key(key_id)
        self.address = address_of(self._public_key)

    def __repr__(self) -> str:
        return f"TokenKey({self.address})"

    def sign(self, digest: bytes) -> bytes:
        """See `signer.keys.Key`."""
        try:
            signature = self._token.sign(self._key_id, digest)
            r, s = (int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
            return recoverable(digest, r, s, self._public_key)
        except (pkcs11.PKCS11Error, ValueError) as error:
            raise KeyUnusable(f"PKCS#11, {self.address}: {type(error).__name__}") from error


class Token:
    """
    A token with an open session; a process may have one at a time.

    One thread uses the session at a time. If the device has ended it, because it was reset or disconnected, the next
    signature opens a new one.
    """

    def __init__(self, module: str, *, label: str, pin: str) -> None:
        """
        Log in.

        Raises:
            KeyUnusable: the module, the token or its PIN is wrong.
        """
        self._label, self._pin, self._lock = label, pin, threading.Lock()
        self._handles: dict[bytes, Any] = {}
        try:
            self._library = pkcs11.lib(module)
            self._session: Any = self.open_session()
        except (pkcs11.PKCS11Error, RuntimeError) as error:
            raise KeyUnusable(f"PKCS#11, token {label}: {type(error).__name__}") from error

    def keys(self, label: str) -> list[TokenKey]:
        """
        Return the keys with this label, in the order of their ids.

        Raises:
            KeyUnusable: one of them has no public key, or is of another curve.
        """
        wanted = {
            Attribute.CLASS: ObjectClass.PRIVATE_KEY,
            Attribute.KEY_TYPE: KeyType.EC,
            Attribute.LABEL: label,
        }
        ids = sorted(bytes(key[Attribute.ID]) for key in self._objects(wanted))
        return [TokenKey(self, key_id) for key_id in ids]

    def public_key(self, key_id: bytes) -> PublicKey:
        """
        Return the public key of a key pair.

        Raises:
            KeyUnusable: the public key is missing, or of another curve.
        """
        public_keys = self._objects({Attribute.CLASS: ObjectClass.PUBLIC_KEY, Attribute.ID: key_id})
        try:
            if not public_keys:
                raise ValueError("no public key")
            # The uncompressed point; most devices wrap it in a DER octet string.
            return PublicKey(bytes(public_keys[0][Attribute.EC_POINT])[-_POINT_BYTES:])
        except ValueError as error:
            raise KeyUnusable(f"PKCS#11, key {key_id.hex()}: not a key of secp256k1") from error

    def sign(self, key_id: bytes, digest: bytes) -> bytes:
        """
        Return r and s; opens a new session if the current one fails.

        Raises:
            PKCS11Error: the device does not sign.
        """
        with self._lock:
            if self._session is not None:
                with suppress(pkcs11.PKCS11Error):
                    return self._signed(key_id, digest)
            self._reopen()
            return self._signed(key_id, digest)

    def close(self) -> None:
        """Log out."""
        self._handles.clear()
        session, self._session = self._session, None
        if session is not None:
            with suppress(pkcs11.PKCS11Error):
                session.close()

    def _signed(self, key_id: bytes, digest: bytes) -> bytes:
        if key_id not in self._handles:
            wanted = {
                Attribute.CLASS: ObjectClass.PRIVATE_KEY,
                Attribute.KEY_TYPE: KeyType.EC,
                Attribute.ID: key_id,
            }
            private_keys = self._objects(wanted)
            if not private_keys:
                raise pkcs11.NoSuchKey
            self._handles[key_id] = private_keys[0]
        return bytes(self._handles[key_id].sign(digest, mechanism=Mechanism.ECDSA))

    def _objects(self, wanted: dict[Attribute, Any]) -> list[Any]:
        # Read completely, because an unfinished search stays open.
        return list(self._session.get_objects(wanted))

    def _reopen(self) -> None:
        """
        Initialise the library again, because it may not notice a reconnected device, and open a session.

        Raises:
            PKCS11Error: the device is still disconnected, or the PIN, which is tried once, is wrong.
        """
        if not self._pin:
            raise pkcs11.PinIncorrect
        self.close()
        self._library.reinitialize()
        try:
            self._session = self.open_session()
        except _WRONG_PIN:
            self._pin = ""
            raise

    def open_session(self) -> Any:
        """Open a session and log in."""
        return self._library.get_token(token_label=self._label).open(user_pin=self._pin)
