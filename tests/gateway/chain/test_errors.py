"""The refusals of this room as callers will read them."""

import re

from gateway.common.errors import DomainError, all_errors


def _ours() -> list[type[DomainError]]:
    return [refusal for refusal in all_errors() if refusal.__module__.startswith("gateway.chain.")]


def test_every_code_is_unique_in_the_service() -> None:
    codes = [refusal.code for refusal in all_errors()]
    assert len(codes) == len(set(codes))


def test_every_refusal_has_a_code_a_title_and_a_sentence_about_it() -> None:
    assert len(_ours()) > 30
    for refusal in _ours():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", refusal.code), refusal
        assert refusal.title, refusal
        assert "\n" not in refusal.title
        assert refusal.__doc__, refusal
        assert refusal.__doc__ != DomainError.__doc__


def test_only_a_503_is_retryable() -> None:
    kinds = {(refusal.status, refusal.retryable) for refusal in _ours()}
    assert kinds == {(400, False), (422, False), (503, True)}
