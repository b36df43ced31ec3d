"""A controller's signature over a challenge opens a session; anything else opens nothing."""

import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils.timezone import now

from credits.models import CreditAccount
from gateway.chain.errors import NodeUnavailable, UnusableSignature
from gateway.chain.lsp6 import ALL_PERMISSIONS, Permission
from gateway.chain.mistakes import SignedForOtherChain
from gateway.chain.signatures import personal_sign_digest
from tests.fakes.chain import FakeChain
from tests.fakes.profiles import Controller, Profile, random_address
from tests.users.auth_client import CALLER, personal_sign, signed_in
from users.errors import (
    AccountInactive,
    ChallengeExpired,
    ChallengeForeign,
    ChallengeUnknown,
    ChallengeUsed,
    ProfileNotDeployed,
    SignatureNotByController,
    SignPermissionMissing,
    UntrustedCode,
)
from users.models import RefreshToken, SignInChallenge, SignInSession, TrustedImplementation, User
from users.services import sign_in
from users.services.sessions import TokenPair
from users.tokens import AccessToken

pytestmark = pytest.mark.django_db


def _challenge(profile_address: str, client: str = CALLER) -> SignInChallenge:
    return sign_in.issue_challenge(profile_address=profile_address, client=client, now=now())


def _answer(
    challenge: SignInChallenge,
    signature: bytes,
    *,
    at: datetime | None = None,
    profile_address: str | None = None,
) -> TokenPair:
    return sign_in.sign_in(
        nonce=challenge.nonce,
        signature=signature,
        client=CALLER,
        now=at or now(),
        profile_address=profile_address,
    )


def _assert_nobody_is_signed_in() -> None:
    assert not User.objects.exists()
    assert not SignInSession.objects.exists()
    assert not RefreshToken.objects.exists()
    assert not CreditAccount.objects.exists()


def _is_open(challenge: SignInChallenge) -> bool:
    return SignInChallenge.objects.open(now=now()).filter(pk=challenge.pk).exists()


def test_the_first_sign_in_makes_the_user_its_account_and_a_session(profile: Profile) -> None:
    pair = signed_in(profile)

    user = User.objects.get()
    assert (user.username, user.profile_address) == (profile.profile_address, profile.profile_address)
    assert not user.has_usable_password()
    assert CreditAccount.objects.get().user_id == user.pk
    session = SignInSession.objects.get()
    assert (session.user_id, session.controller_address) == (user.pk, profile.controller.address)
    token = AccessToken(pair.access)
    assert (token.user_id, token.session_id) == (user.pk, session.pk)
    assert (token.profile_address, token["ctl"]) == (
        profile.profile_address,
        profile.controller.address,
    )


def test_a_second_sign_in_opens_a_second_session_of_the_same_user(profile: Profile) -> None:
    signed_in(profile)
    signed_in(profile)

    assert User.objects.count() == CreditAccount.objects.count() == 1
    assert SignInSession.objects.count() == 2


def test_other_spellings_of_the_signature_are_the_same_signature(profile: Profile) -> None:
    challenge = _challenge(profile.profile_address)
    signature = personal_sign(profile.controller, challenge.message)

    _answer(challenge, signature[:64] + bytes([signature[64] - 27]))

    assert SignInSession.objects.count() == 1


def test_a_nonce_that_was_never_issued_is_unknown(profile: Profile) -> None:
    message = "anything"
    with pytest.raises(ChallengeUnknown):
        sign_in.sign_in(
            nonce=secrets.token_hex(11),
            signature=personal_sign(profile.controller, message),
            client=CALLER,
            now=now(),
        )
    _assert_nobody_is_signed_in()


def test_a_nonce_is_valid_until_its_expiry_and_expired_after_it(profile: Profile, chain: FakeChain) -> None:
    challenge = _challenge(profile.profile_address)
    signature = personal_sign(profile.controller, challenge.message)

    with pytest.raises(ChallengeExpired):
        _answer(challenge, signature, at=challenge.expires_at)
    _assert_nobody_is_signed_in()
    assert not chain.request_counts
    _answer(challenge, signature, at=challenge.expires_at - timedelta(milliseconds=1))
    assert SignInSession.objects.count() == 1


def test_a_nonce_serves_once(profile: Profile) -> None:
    challenge = _challenge(profile.profile_address)
    signature = personal_sign(profile.controller, challenge.message)
    _answer(challenge, signature)

    with pytest.raises(ChallengeUsed):
        _answer(challenge, signature)
    assert SignInSession.objects.count() == 1


def test_a_nonce_is_foreign_to_any_other_profile_that_claims_it(profile: Profile, chain: FakeChain) -> None:
    challenge, other = _challenge(profile.profile_address), chain.create_profile()
    signature = personal_sign(other.controller, challenge.message)

    with pytest.raises(ChallengeForeign):
        _answer(challenge, signature, profile_address=other.profile_address)
    _assert_nobody_is_signed_in()
    assert _is_open(challenge)


def test_a_nonce_is_foreign_to_the_message_of_another_open_nonce(profile: Profile, chain: FakeChain) -> None:
    other = chain.create_profile()
    mine, theirs = _challenge(profile.profile_address), _challenge(other.profile_address)

    with pytest.raises(ChallengeForeign):
        _answer(theirs, personal_sign(profile.controller, mine.message))
    _assert_nobody_is_signed_in()
    assert _is_open(mine)
    assert not _is_open(theirs)


def test_messages_of_other_callers_are_not_searched(profile: Profile, chain: FakeChain) -> None:
    other = chain.create_profile()
    mine = _challenge(profile.profile_address, client="somebody else")
    theirs = _challenge(other.profile_address)

    with pytest.raises(SignatureNotByController):
        _answer(theirs, personal_sign(profile.controller, mine.message))
    _assert_nobody_is_signed_in()


@pytest.mark.parametrize("length", [0, 1, 63, 65, 66, 67, 68, 69, 200])
def test_invalid_signature_bytes_leave_the_nonce_open(
    profile: Profile, chain: FakeChain, length: int
) -> None:
    challenge = _challenge(profile.profile_address)

    with pytest.raises(UnusableSignature):
        _answer(challenge, (secrets.token_bytes(64) + b"\xff" * 136)[:length])
    assert _is_open(challenge)
    assert not chain.request_counts
    _assert_nobody_is_signed_in()


def test_a_signature_that_no_key_can_have_made_is_malformed(profile: Profile, chain: FakeChain) -> None:
    challenge = _challenge(profile.profile_address)
    # No point of the curve has the x coordinate 5.
    impossible = (5).to_bytes(32, "big") + (1).to_bytes(32, "big") + bytes([27])

    with pytest.raises(UnusableSignature):
        _answer(challenge, impossible)
    assert not chain.request_counts
    _assert_nobody_is_signed_in()


def test_an_address_without_code_cannot_sign_in(trusted: None) -> None:
    person = Controller()
    challenge = _challenge(person.address)

    with pytest.raises(ProfileNotDeployed):
        _answer(challenge, personal_sign(person, challenge.message))
    _assert_nobody_is_signed_in()


def test_a_signature_wrapped_for_an_undeployed_profile_is_refused_by_that_name(profile: Profile) -> None:
    challenge = _challenge(profile.profile_address)
    wrapped = secrets.token_bytes(320) + bytes.fromhex("6492" * 16)

    with pytest.raises(ProfileNotDeployed):
        _answer(challenge, wrapped)
    assert _is_open(challenge)
    _assert_nobody_is_signed_in()


def test_a_contract_that_accepts_everything_is_not_trusted(chain: FakeChain, trusted: None) -> None:
    impostor = chain.deploy_impostor()
    challenge = _challenge(impostor)

    with pytest.raises(UntrustedCode):
        _answer(challenge, personal_sign(Controller(), challenge.message))
    _assert_nobody_is_signed_in()


def test_a_profile_of_vetted_code_with_an_unvetted_key_manager_is_not_trusted(
    profile: Profile, chain: FakeChain
) -> None:
    impostor = chain.deploy_impostor()
    chain.set_owner(profile, impostor)
    challenge = _challenge(profile.profile_address)

    with pytest.raises(UntrustedCode):
        _answer(challenge, personal_sign(profile.controller, challenge.message))
    _assert_nobody_is_signed_in()


def test_a_profile_owned_by_the_key_manager_of_another_is_not_trusted(
    profile: Profile, chain: FakeChain
) -> None:
    chain.set_owner(profile, chain.create_profile().key_manager_address)
    challenge = _challenge(profile.profile_address)

    with pytest.raises(UntrustedCode):
        _answer(challenge, personal_sign(profile.controller, challenge.message))
    _assert_nobody_is_signed_in()


def test_a_profile_owned_by_a_plain_key_is_not_trusted(profile: Profile, chain: FakeChain) -> None:
    chain.set_owner(profile, profile.controller.address)
    challenge = _challenge(profile.profile_address)

    with pytest.raises(UntrustedCode):
        _answer(challenge, personal_sign(profile.controller, challenge.message))
    _assert_nobody_is_signed_in()


def test_the_error_for_unvetted_code_names_the_address_to_vet(profile: Profile, chain: FakeChain) -> None:
    vetted = TrustedImplementation.objects.filter(is_active=True)
    addresses = dict(vetted.values_list("address", "kind"))
    vetted.update(is_active=False)
    challenge = _challenge(profile.profile_address)

    with pytest.raises(UntrustedCode) as refusal:
        _answer(challenge, personal_sign(profile.controller, challenge.message))
    assert addresses[refusal.value.members["profileCode"]] == "profile"
    assert addresses[refusal.value.members["keyManagerCode"]] == "key-manager"
    _assert_nobody_is_signed_in()


def test_a_contract_without_an_owner_is_not_a_profile(profile: Profile, chain: FakeChain) -> None:
    challenge = _challenge(profile.key_manager_address)

    with pytest.raises(UntrustedCode):
        _answer(challenge, personal_sign(profile.controller, challenge.message))
    assert not chain.request_counts["read_key_manager"]
    _assert_nobody_is_signed_in()


def test_a_controller_without_sign_is_refused_as_such(chain: FakeChain, trusted: None) -> None:
    mover = Controller(permissions=ALL_PERMISSIONS & ~Permission.SIGN)
    profile = chain.create_profile(mover)

    with pytest.raises(SignPermissionMissing):
        signed_in(profile)
    _assert_nobody_is_signed_in()


def test_a_controller_that_may_only_sign_signs_in(chain: FakeChain, trusted: None) -> None:
    signed_in(chain.create_profile(Controller(permissions=Permission.SIGN)))

    assert SignInSession.objects.count() == 1


def test_a_key_without_permission_cannot_sign_for_the_profile(profile: Profile) -> None:
    with pytest.raises(SignatureNotByController):
        signed_in(profile, Controller())
    _assert_nobody_is_signed_in()


def test_a_signature_that_the_profile_does_not_accept_is_refused(
    profile: Profile, chain: FakeChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = chain.read_profile
    monkeypatch.setattr(
        chain, "read_profile", lambda **arguments: replace(read(**arguments), signature_valid=False)
    )

    with pytest.raises(SignatureNotByController):
        signed_in(profile)
    _assert_nobody_is_signed_in()


def test_the_message_hash_signed_without_its_prefix_does_not_count(profile: Profile) -> None:
    challenge = _challenge(profile.profile_address)
    twice = personal_sign_digest(personal_sign_digest(challenge.message.encode()))

    with pytest.raises(SignatureNotByController):
        _answer(challenge, profile.controller.sign(twice))
    _assert_nobody_is_signed_in()


def test_without_a_node_sign_in_is_refused_and_the_nonce_is_used_up(
    profile: Profile, chain: FakeChain
) -> None:
    challenge = _challenge(profile.profile_address)
    signature = personal_sign(profile.controller, challenge.message)

    with chain.away(), pytest.raises(NodeUnavailable) as refusal:
        _answer(challenge, signature)
    assert refusal.value.retry_after
    assert "new nonce" in refusal.value.detail
    _assert_nobody_is_signed_in()
    with pytest.raises(ChallengeUsed):
        _answer(challenge, signature)


def test_a_closed_account_stays_closed(profile: Profile) -> None:
    signed_in(profile)
    User.objects.update(is_active=False)

    with pytest.raises(AccountInactive):
        signed_in(profile)
    assert SignInSession.objects.count() == 1


def test_open_trust_lets_unvetted_profiles_sign_in(chain: FakeChain, settings: Any, db: None) -> None:
    settings.CHAIN_TRUST = "open"

    signed_in(chain.create_profile())

    assert SignInSession.objects.count() == 1


def test_unvetted_profiles_do_not_sign_in_otherwise(chain: FakeChain, db: None) -> None:
    with pytest.raises(UntrustedCode):
        signed_in(chain.create_profile())
    _assert_nobody_is_signed_in()


def _request(profile_address: str) -> SignInChallenge:
    return sign_in.request_challenge(profile_address=profile_address, site="s", client=CALLER, now=now())


def test_an_address_without_code_gets_no_challenge(chain: FakeChain, trusted: None) -> None:
    with pytest.raises(ProfileNotDeployed):
        _request(random_address())
    assert not SignInChallenge.objects.exists()


def test_unvetted_code_gets_no_challenge(chain: FakeChain, profile: Profile) -> None:
    with pytest.raises(UntrustedCode) as refusal:
        _request(profile.key_manager_address)
    assert refusal.value.members["profileCode"] == chain.key_manager
    assert not SignInChallenge.objects.exists()


def test_any_code_gets_a_challenge_with_open_trust(profile: Profile, settings: Any) -> None:
    settings.CHAIN_TRUST = "open"
    assert _is_open(_request(profile.key_manager_address))


def test_a_profile_found_once_is_not_read_again(chain: FakeChain, profile: Profile) -> None:
    for _ in range(3):
        _request(profile.profile_address)
    assert chain.request_counts["probe_code"] == 1

    other = chain.create_profile()
    signed_in(other)
    _request(other.profile_address)
    assert chain.request_counts["probe_code"] == 1


def test_while_no_node_responds_in_time_every_address_gets_a_challenge(
    chain: FakeChain, trusted: None
) -> None:
    address = random_address()
    with chain.away():
        assert _is_open(_request(address))
    with pytest.raises(ProfileNotDeployed):
        _request(address)


@pytest.mark.parametrize("other", [4201, 2828])
def test_a_message_signed_for_another_chain_is_named(profile: Profile, settings: Any, other: int) -> None:
    settings.CHAIN_ID = 42
    challenge = _challenge(profile.profile_address)
    replaced = challenge.message.replace("Chain ID: 42", f"Chain ID: {other}")

    with pytest.raises(SignedForOtherChain, match=f"chain id {other}"):
        _answer(challenge, personal_sign(profile.controller, replaced))
    _assert_nobody_is_signed_in()


def test_another_signers_message_for_another_chain_is_an_unknown_signer(
    profile: Profile, settings: Any
) -> None:
    settings.CHAIN_ID = 42
    challenge = _challenge(profile.profile_address)

    with pytest.raises(SignatureNotByController):
        _answer(challenge, personal_sign(Controller(), challenge.message.replace("ID: 42", "ID: 4201")))
