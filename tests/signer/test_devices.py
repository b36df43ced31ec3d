"""Keys in memory, in a PKCS#11 token and in AWS KMS behave alike, and a signer may be configured with each."""

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pkcs11
import pytest
from coincurve import PublicKey
from cryptography.hazmat.primitives.asymmetric import ec
from pkcs11 import Attribute, KeyType
from pkcs11.util.ec import encode_named_curve_parameters

from devstack.kms import Kms, kms
from devstack.signing import softhsm
from signer.aws import KmsKey, kms_client
from signer.configuration import Misconfigured, configure
from signer.keys import RELAYERS, SPARE, TREASURY, Key, Keyring, KeyUnusable, write_keystore
from signer.messages import KeyList
from signer.tokens import Token
from signer.transactions import CURVE_ORDER, SignedTransaction, address_of
from tests.fakes.pool import read_transaction
from tests.signer.parts import FakeTargets, new_key, new_service, relay_call

_PIN = secrets.token_hex(4)


@pytest.fixture(scope="module")
def cloud() -> Iterator[Kms]:
    """A stub of KMS, with what its client wants to know."""
    with pytest.MonkeyPatch.context() as patch, kms() as stub:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", secrets.token_hex(16))
        patch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        yield stub


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The library of a device with one token, which has two relayers, a spare one and a treasury."""
    folder = tmp_path_factory.mktemp("token")
    (folder / "tokens").mkdir()
    (folder / "conf").write_text(
        f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTHSM2_CONF", str(folder / "conf"))
        library, utility = softhsm()
        token = ["--init-token", "--free", "--label", "signer", "--so-pin", _PIN, "--pin", _PIN]
        subprocess.run(
            [str(utility), "--module", str(library), *token], check=True, capture_output=True, env=os.environ
        )
        _fill(str(library))
        yield str(library)


def _fill(library: str) -> None:
    curve = {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256k1")}
    with pkcs11.lib(library).get_token(token_label="signer").open(rw=True, user_pin=_PIN) as session:
        parameters = session.create_domain_parameters(KeyType.EC, curve, local=True)
        for label in (RELAYERS, RELAYERS, SPARE, TREASURY):
            parameters.generate_keypair(store=True, label=label, id=secrets.token_bytes(8))


@pytest.fixture
def token(module: str) -> Iterator[Token]:
    """The token, logged in."""
    opened = Token(module, label="signer", pin=_PIN)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "token", "cloud"])
def key(request: pytest.FixtureRequest) -> Key:
    """A key of each kind."""
    make: dict[str, Callable[[], Key]] = {
        "memory": new_key,
        "token": lambda: request.getfixturevalue("token").keys(TREASURY)[0],
        "cloud": lambda: _in_cloud(request.getfixturevalue("cloud")),
    }
    return make[request.param]()


def _in_cloud(cloud: Kms) -> Key:
    return KmsKey(kms_client(endpoint=cloud.url), cloud.new_key())


def test_signatures_are_of_the_key_and_have_the_lower_s(key: Key) -> None:
    for _ in range(8):
        digest = secrets.token_bytes(32)
        signature = key.sign(digest)
        assert _is_of(key, signature, digest)
        assert int.from_bytes(signature[32:64], "big") <= CURVE_ORDER // 2


def test_a_batch_is_signed_and_a_repeated_request_returns_the_same_bytes(key: Key, tmp_path: Path) -> None:
    targets = FakeTargets()
    service = new_service(tmp_path, Keyring.of([key]), targets)
    calls = [relay_call(key.address, targets.key_manager(), account_nonce=nonce) for nonce in range(8)]
    signed = service.sign(calls)
    assert all(isinstance(one, SignedTransaction) for one in signed)
    assert {read_transaction(one.raw).sender for one in signed if isinstance(one, SignedTransaction)} == {
        key.address
    }
    assert service.sign(calls) == signed


def test_the_public_key_is_read_once_and_a_failing_service_leaves_calls_unsigned(
    cloud: Kms, tmp_path: Path
) -> None:
    cloud.operations.clear()
    key, targets = _in_cloud(cloud), FakeTargets()
    service = new_service(tmp_path, Keyring.of([key]), targets)
    call = relay_call(key.address, targets.key_manager())
    cloud.is_broken = True
    try:
        assert service.sign([call]) == [None]
    finally:
        cloud.is_broken = False
    assert isinstance(service.sign([call])[0], SignedTransaction)
    assert cloud.operations == ["TrentService.GetPublicKey", "TrentService.Sign"]


def test_a_key_of_another_curve_is_refused(cloud: Kms) -> None:
    with pytest.raises(KeyUnusable, match="AWS KMS"):
        KmsKey(kms_client(endpoint=cloud.url), cloud.new_key(ec.SECP256R1()))


def test_a_wrong_pin_is_refused_and_shown_nowhere(module: str) -> None:
    with pytest.raises(KeyUnusable) as refusal:
        Token(module, label="signer", pin=_PIN + "0")
    assert str(refusal.value) == "PKCS#11, token signer: PinIncorrect"


# The library's own clean-up of what it began in a session that is gone.
@pytest.mark.filterwarnings("ignore:Exception ignored in. 'pkcs11:pytest.PytestUnraisableExceptionWarning")
def test_a_device_that_was_reset_or_away_signs_again(module: str, token: Token, tmp_path: Path) -> None:
    key = token.keys(TREASURY)[0]
    # Every session and handle is of no use any more.
    pkcs11.lib(module).reinitialize()
    digest = secrets.token_bytes(32)
    assert _is_of(key, key.sign(digest), digest)
    tokens = Path(os.environ["SOFTHSM2_CONF"]).with_name("tokens")
    tokens.rename(tmp_path / "away")
    tokens.mkdir()
    pkcs11.lib(module).reinitialize()
    for _ in range(2):
        with pytest.raises(KeyUnusable, match="NoSuchToken"):
            key.sign(digest)
    tokens.rmdir()
    (tmp_path / "away").rename(tokens)
    assert _is_of(key, key.sign(digest), digest)


def test_a_pin_that_became_invalid_is_tried_once(module: str, token: Token) -> None:
    key = token.keys(TREASURY)[0]
    token._pin = _PIN + "0"
    token.close()
    with patch.object(token, "open_session", side_effect=token.open_session) as opened:
        for _ in range(3):
            with pytest.raises(KeyUnusable, match="PinIncorrect"):
                key.sign(bytes(32))
    assert opened.call_count == 1


def test_a_key_service_that_was_away_signs_again(cloud: Kms) -> None:
    with kms() as first:
        name, port = first.new_key(), first.server_port
        kept = first.keys[name]
        key = KmsKey(kms_client(endpoint=first.url), name)
        key.sign(bytes(32))
    with pytest.raises(KeyUnusable, match="EndpointConnectionError"):
        key.sign(bytes(32))
    with kms(port) as again:
        again.keys[name] = kept
        assert _is_of(key, key.sign(bytes(32)), bytes(32))


def _is_of(key: Key, signature: bytes, digest: bytes) -> bool:
    return address_of(PublicKey.from_signature_and_message(signature, digest, hasher=None)) == key.address


def test_a_keystore_may_have_the_file_names_of_geth_and_hidden_files(tmp_path: Path) -> None:
    password, secret = secrets.token_hex(8), secrets.token_bytes(32)
    address = write_keystore(tmp_path, RELAYERS, secret, password, work=2)
    (written,) = (tmp_path / RELAYERS).iterdir()
    written.rename(written.with_name(f"UTC--2026-11-28T06-40-47.000000000Z--{address[2:].lower()}"))
    (tmp_path / RELAYERS / "._other.json").write_bytes(secrets.token_bytes(8))
    (tmp_path / "password").write_text(password, encoding="utf-8-sig")
    environment = {
        "SIGNER_LISTEN": f"unix://{tmp_path}/socket",
        "CHAIN_ID": "4201",
        "SIGNER_RPC_URL": "http://127.0.0.1:1",
        "SIGNER_JOURNAL": str(tmp_path / "journal"),
        "SIGNER_KEYSTORE": str(tmp_path),
        "SIGNER_KEYSTORE_PASSWORD_FILE": str(tmp_path / "password"),
    }

    assert list(configure(environment).service.keys().relayers) == [address]


def test_more_than_one_treasury_is_refused_wherever_the_keys_are(
    cloud: Kms, token: Token, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", cloud.url)
    password = secrets.token_hex(8)
    write_keystore(tmp_path, TREASURY, secrets.token_bytes(32), password, work=2)
    environment = {
        "SIGNER_LISTEN": f"unix://{tmp_path}/socket",
        "CHAIN_ID": "4201",
        "SIGNER_RPC_URL": "http://127.0.0.1:1",
        "SIGNER_JOURNAL": str(tmp_path / "journal"),
        "SIGNER_AWS_RELAYERS": cloud.new_key(),
    }
    keystore = {"SIGNER_KEYSTORE": str(tmp_path), "SIGNER_KEYSTORE_PASSWORD": password}
    with pytest.raises(KeyUnusable, match="more than one treasury"):
        configure(environment | keystore | {"SIGNER_AWS_TREASURY": cloud.new_key()})
    device = {"SIGNER_PKCS11_MODULE": "any", "SIGNER_PKCS11_TOKEN": "signer", "SIGNER_PKCS11_PIN": _PIN}
    with (
        patch("signer.tokens.Token", return_value=token),
        # It has two keys with this label.
        patch("signer.configuration.TREASURY", RELAYERS),
        pytest.raises(KeyUnusable, match="more than one treasury"),
    ):
        configure(environment | device)
    write_keystore(tmp_path, TREASURY, secrets.token_bytes(32), password, work=2)
    with pytest.raises(KeyUnusable, match="more than one treasury"):
        configure(environment | keystore)


def test_a_signer_has_the_keys_of_its_keystore_its_token_and_its_cloud(
    cloud: Kms, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", cloud.url)
    password = secrets.token_hex(8)
    store = {kind: secrets.token_bytes(32) for kind in (RELAYERS, SPARE)}
    written = {kind: write_keystore(tmp_path, kind, key, password, work=2) for kind, key in store.items()}
    names = [cloud.new_key(), cloud.new_key()]
    environment = {
        "SIGNER_LISTEN": f"unix://{tmp_path}/socket",
        "CHAIN_ID": "4201",
        "SIGNER_RPC_URL": "http://127.0.0.1:1",
        "SIGNER_JOURNAL": str(tmp_path / "journal"),
        "SIGNER_KEYSTORE": str(tmp_path),
        "SIGNER_KEYSTORE_PASSWORD": password,
        "SIGNER_PKCS11_MODULE": module,
        "SIGNER_PKCS11_TOKEN": "signer",
        "SIGNER_PKCS11_PIN": _PIN,
        "SIGNER_AWS_RELAYERS": names[0],
        "SIGNER_AWS_SPARE": names[1],
    }
    with closing(Token(module, label="signer", pin=_PIN)) as token:
        in_token = {kind: [key.address for key in token.keys(kind)] for kind in (RELAYERS, SPARE, TREASURY)}
    keys = configure(environment).service.keys()
    client = kms_client(endpoint=cloud.url)
    relayers = [written[RELAYERS], *in_token[RELAYERS], KmsKey(client, names[0]).address]
    spare = [written[SPARE], *in_token[SPARE], KmsKey(client, names[1]).address]
    assert keys == KeyList([*relayers, *spare], spare, in_token[TREASURY][0])
    with pytest.raises(KeyUnusable) as refusal:
        configure({**environment, "SIGNER_KEYSTORE_PASSWORD": secrets.token_hex(8)})
    assert password not in str(refusal.value)
    with pytest.raises(Misconfigured, match="CHAIN_ID"):
        configure({**environment, "CHAIN_ID": ""})
    with pytest.raises(Misconfigured, match="relayer's key"):
        configure(
            {
                name: text
                for name, text in environment.items()
                if name in {"SIGNER_LISTEN", "CHAIN_ID", "SIGNER_RPC_URL", "SIGNER_JOURNAL"}
            }
        )
