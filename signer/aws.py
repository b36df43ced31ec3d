"""Keys in AWS KMS (`ECC_SECG_P256K1`), which signs digests and never reveals a key."""

from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from coincurve import PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from signer.keys import KeyUnusable
from signer.transactions import address_of, recoverable

_ALGORITHM = "ECDSA_SHA_256"
# The timeout for connecting, and for reading a response.
_SECONDS = 1.5


class KmsKey:
    """One key, by its id or ARN. Its public key is read once."""

    def __init__(self, client: Any, key_id: str) -> None:
        """
        Read the public key.

        Raises:
            KeyUnusable: the key does not exist, or is of another curve.
        """
        self._client, self._key_id = client, key_id
        try:
            spki = load_der_public_key(client.get_public_key(KeyId=key_id)["PublicKey"])
            point = spki.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
            self._public_key = PublicKey(point)
        except (BotoCoreError, ClientError, ValueError) as error:
            raise _unusable(key_id, error) from error
        self.address = address_of(self._public_key)

    def __repr__(self) -> str:
        return f"KmsKey({self.address})"

    def sign(self, digest: bytes) -> bytes:
        """See `signer.keys.Key`. KMS signs the digest as it is; by default it would hash it again."""
        try:
            response = self._client.sign(
                KeyId=self._key_id, Message=digest, MessageType="DIGEST", SigningAlgorithm=_ALGORITHM
            )
            r, s = decode_dss_signature(response["Signature"])
            return recoverable(digest, r, s, self._public_key)
        except (BotoCoreError, ClientError, ValueError) as error:
            raise _unusable(self._key_id, error) from error


def _unusable(key_id: str, error: Exception) -> KeyUnusable:
    return KeyUnusable(f"AWS KMS, key {key_id}: {type(error).__name__}")


def kms_client(*, endpoint: str = "") -> Any:
    """
    Return a client that tries twice; both tries together are shorter than the service's timeout.

    Region and credentials come from AWS's own variables or the host's role.
    """
    config = Config(
        connect_timeout=_SECONDS,
        read_timeout=_SECONDS,
        retries={"total_max_attempts": 2},
        max_pool_connections=32,
        # No proxy, whatever the environment names.
        proxies={},
    )
    return boto3.client("kms", endpoint_url=endpoint or None, config=config)
