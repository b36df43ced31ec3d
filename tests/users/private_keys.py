"""Private keys, also as PEM text."""

from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def ec_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    """Return a new private key, on P-256 unless another curve is given."""
    return ec.generate_private_key(curve or ec.SECP256R1())


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    """Return an RSA key of these tests alone; always the same, since making one takes longer than most tests."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, form: PrivateFormat = PrivateFormat.PKCS8
) -> str:
    """Return the key's PEM text."""
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode()
