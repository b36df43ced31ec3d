"""New profiles, which a sponsor's server requests with its API key."""

import secrets
import time
from collections.abc import Sequence
from typing import Any

from credit_relay_client.calls import check_address
from credit_relay_client.schema import Profile
from credit_relay_client.service import Service

_PATH = "/api/universal-profile"
_OPEN_STATUSES = {"Pending", "Submitted"}
_PAUSE_SECONDS = 1
_SALT_BYTES = 32


def create_profile(
    url: str,
    api_key: str,
    controllers: Sequence[str] | None = None,
    *,
    metadata: bytes = b"",
    salt: bytes | None = None,
    post_deployment_data: bytes | None = None,
    chain_ids: Sequence[int] | None = None,
    voucher: str | None = None,
    origin: str | None = None,
    key: str | None = None,
    wait_seconds: float = 180,
    patience_seconds: float = 60,
) -> Profile:
    """
    Have a new Universal Profile deployed at the sponsor's cost, and wait for the end of the deployment.

    The profile exists if its `status` is `Success` or `ExecutedExternally`. After `Failed` and `Cancelled`, a call with
    the same `key` tries again.

    Args:
        api_key: A key of the sponsor with the right `create`. It belongs on a server, in no app.
        controllers: The addresses of the keys that control the new profile.
        metadata: The VerifiableURI of its LSP-3 metadata.
        salt: Instead of controllers and metadata: the salt of the deployment, 32 bytes,
        post_deployment_data: and `abi.encode(bytes32[], bytes[])` of the data keys and values of the new profile.
        chain_ids: Further chains that get the same address at once, besides home.
        voucher: What the sponsor's server has signed for this profile, for policies that want a voucher.
        origin: What stands for the person, such as a network address, for policies that limit profiles by origin.
        key: Calls with the same key are one profile, so keep one for each user; by default a new one for each call.
        wait_seconds: How long to wait; with 0 the profile is returned as it was accepted.
        patience_seconds: How long to retry requests while the service is busy or unreachable.

    Raises:
        TypeError, ValueError: names the argument that the service would refuse.
        RelayProblem: the service or the sponsor's policies refuse.
        TimeoutError: it is accepted, but not final in time. Read it with `requested_profile`.
    """
    _require_bytes(metadata, "metadata")
    if salt is None and post_deployment_data is None:
        body: dict[str, Any] = {"lsp6ControllerAddress": _checked(controllers)}
        if metadata:
            body |= {"lsp3Profile": "0x" + metadata.hex()}
    else:
        body = _by_salt(controllers, metadata, salt, post_deployment_data)
    if chain_ids is not None:
        body |= {"chainIds": _checked_chains(chain_ids)}
    if voucher is not None:
        body |= {"sponsorVoucher": voucher}
    if origin is not None:
        body |= {"origin": origin}
    service = Service(url, patience_seconds)
    # One key for all attempts, so that a retry after a lost response is no second profile.
    headers = _authorized(api_key) | {"Idempotency-Key": key or secrets.token_hex(16)}
    profile: Profile = service.patiently(lambda: service.once("POST", _PATH, body, headers=headers))
    return _settled(service, api_key, profile, wait_seconds) if wait_seconds else profile


def requested_profile(url: str, api_key: str, address: str, *, patience_seconds: float = 60) -> Profile:
    """
    Return a profile that the sponsor requested before, with its present status.

    Raises:
        ValueError: the address is none, or its checksum is wrong.
        RelayProblem: the sponsor has not requested it.
    """
    check_address(address, "address")
    return _read(Service(url, patience_seconds), api_key, address)


def register_profile(url: str, api_key: str, address: str, *, patience_seconds: float = 60) -> Profile:
    """
    Open an account for a profile that exists already, so that the sponsor can pay for its calls.

    Raises:
        ValueError: the address is none, or its checksum is wrong.
        RelayProblem: there is no such profile, or the sponsor has registered as many as the operator allows.
    """
    check_address(address, "address")
    service, body = Service(url, patience_seconds), {"universalProfileAddress": address}
    profile: Profile = service.patiently(
        lambda: service.once("POST", f"{_PATH}/register", body, headers=_authorized(api_key))
    )
    return profile


def _by_salt(controllers: object, metadata: bytes, salt: bytes | None, data: bytes | None) -> dict[str, Any]:
    if controllers is not None:
        raise ValueError("controllers: those of a deployment by salt are in its data.")
    if metadata:
        raise ValueError("metadata: that of a deployment by salt is in its data.")
    of_salt, of_data = _require_bytes(salt, "salt"), _require_bytes(data, "post_deployment_data")
    if len(of_salt) != _SALT_BYTES:
        raise ValueError(f"salt: it has {len(of_salt)} bytes, and needs {_SALT_BYTES}.")
    if not of_data:
        raise ValueError("post_deployment_data: there is none.")
    return {"salt": "0x" + of_salt.hex(), "postDeploymentCallData": "0x" + of_data.hex()}


def _require_bytes(value: object, name: str) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{name}: {value!r} is not bytes, such as bytes.fromhex(…).")
    return value


def _checked_chains(chain_ids: Sequence[int]) -> list[int]:
    if isinstance(chain_ids, str | bytes) or not isinstance(chain_ids, Sequence):
        raise TypeError(f"chain_ids: {chain_ids!r} is not a list of chain ids.")
    for place, chain_id in enumerate(chain_ids):
        if isinstance(chain_id, bool) or not isinstance(chain_id, int):
            raise TypeError(f"chain_ids[{place}]: {chain_id!r} is no chain id, such as 8453.")
        if chain_id < 1:
            raise ValueError(f"chain_ids[{place}]: {chain_id} is no chain id, such as 8453.")
    return list(chain_ids)


def _checked(controllers: Sequence[str] | None) -> list[str]:
    if isinstance(controllers, str) or not isinstance(controllers, Sequence):
        raise TypeError(f"controllers: {controllers!r} is not a list of addresses.")
    if not controllers:
        raise ValueError("controllers: a profile needs at least one.")
    for place, address in enumerate(controllers):
        check_address(address, f"controllers[{place}]")
    return list(controllers)


def _settled(service: Service, api_key: str, profile: Profile, seconds: float) -> Profile:
    deadline = time.monotonic() + seconds
    while profile["status"] in _OPEN_STATUSES:
        if time.monotonic() > deadline:
            address = profile["universalProfileAddress"]
            raise TimeoutError(f"The profile {address} is not final after {seconds} s.")
        time.sleep(_PAUSE_SECONDS)
        profile = _read(service, api_key, profile["universalProfileAddress"])
    return profile


def _read(service: Service, api_key: str, address: str) -> Profile:
    path, headers = f"{_PATH}/{address}", _authorized(api_key)
    profile: Profile = service.patiently(lambda: service.once("GET", path, headers=headers))
    return profile


def _authorized(api_key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"}
