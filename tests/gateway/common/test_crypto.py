"""Sealed data is read only with its key and for its purpose."""

import secrets

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.common.crypto import SealedUnderAnotherKey, seal, unseal

_OLD, _NEW = secrets.token_urlsafe(40), secrets.token_urlsafe(40)


@settings(max_examples=50, deadline=None)
@given(text=st.text(min_size=1))
def test_a_sealed_text_can_be_opened_and_hides_its_content(text: str) -> None:
    sealed = seal(text, keys=[_NEW], purpose="test")

    assert unseal(sealed, keys=[_NEW], purpose="test") == text
    assert text not in sealed or len(text) < 8
    assert seal(text, keys=[_NEW], purpose="test") != sealed


def test_the_first_key_seals_and_all_open() -> None:
    before = seal("a secret", keys=[_OLD], purpose="test")
    assert unseal(before, keys=[_NEW, _OLD], purpose="test") == "a secret"

    after = seal("a secret", keys=[_NEW, _OLD], purpose="test")
    assert unseal(after, keys=[_NEW], purpose="test") == "a secret"
    with pytest.raises(SealedUnderAnotherKey):
        unseal(after, keys=[_OLD], purpose="test")


@pytest.mark.parametrize("change", ["key", "purpose", "text", "plain"])
def test_another_key_another_purpose_or_a_changed_text_unseals_nothing(change: str) -> None:
    sealed = seal("a secret", keys=[_NEW], purpose="test")
    middle = len(sealed) // 2
    changed = sealed[:middle] + ("A" if sealed[middle] != "A" else "B") + sealed[middle + 1 :]

    with pytest.raises(SealedUnderAnotherKey):
        unseal(
            {"text": changed, "plain": "a secret"}.get(change, sealed),
            keys=[_OLD if change == "key" else _NEW],
            purpose="another" if change == "purpose" else "test",
        )


def test_a_process_without_a_key_raises_an_error() -> None:
    for work in (seal, unseal):
        with pytest.raises(ImproperlyConfigured, match="no encryption key"):
            work(secrets.token_hex(), keys=[], purpose="test")
