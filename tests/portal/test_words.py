"""The page has words of its own for every code of the API, in every language, and shows them in one language."""

import re

import pytest
from babel.messages.catalog import Message

from checkin.models import DropType
from credits.models import EntrySource
from devstack.files import PROJECT
from devstack.translations import catalogue_of, compiled, languages, texts
from earnings.queries import HeldBecause
from gateway.common.errors import all_errors
from payments.models import Subscription
from relay.admin.calls import REASONS
from relay.models import RelayTransaction
from rewards.models import ModifierType

_FOLDER = PROJECT / "portal/static/portal"
_WORDS = (_FOLDER / "words.js").read_text()
_PLACE = re.compile(r"\{\w+\}|%\(\w+\)s")


def _codes(name: str) -> set[str]:
    """Return the codes for which words.js has words under a name."""
    match = re.search(rf"export const {name} = {{(.*?)}};", _WORDS, re.DOTALL)
    assert match
    return set(re.findall(r'(?:^|[{,])\s*"?([\w-]+)"?: t\(', match[1], re.MULTILINE))


def test_every_failure_of_a_call_has_a_sentence_for_its_owner() -> None:
    assert _codes("FAILURES") == set(REASONS)


def test_every_code_that_lists_show_has_a_name() -> None:
    assert _codes("SOURCES") >= set(EntrySource) - {EntrySource.RELAY_TRANSACTION}
    assert _codes("CALL_STATES") == set(RelayTransaction.Status)
    assert _codes("SUBSCRIPTION_STATES") == set(Subscription.Status)
    assert _codes("DROPS") | _codes("BONUSES") == set(DropType)
    assert _codes("BONUSES") == set(ModifierType)
    assert _codes("HELD_BECAUSE") == {reason.value for reason in HeldBecause}


def test_errors_are_explained_that_exist() -> None:
    assert _codes("PROBLEMS") <= {error.code for error in all_errors()}


def test_every_text_of_a_script_is_collected() -> None:
    scripts = [path.read_text() for path in _FOLDER.glob("*.js") if path.name != "relay-client.js"]
    written = {
        text for script in scripts for text in re.findall(r'(?<![\w.])tn?\(\s*"((?:[^"\\]|\\.)*)"', script)
    }

    assert written <= {text.one for text in texts()}
    assert len(written) > 300


@pytest.mark.parametrize("language", languages())
def test_a_language_is_complete(language: str) -> None:
    catalogue = catalogue_of(language)
    for text in texts():
        message = catalogue.get((text.one, text.other) if text.other else text.one)
        assert message is not None, f"run `make translations`: {text.one}"
        assert not message.fuzzy, text.one
        for translation in _translations(message):
            assert translation, f"not translated: {text.one}"
            assert set(_PLACE.findall(translation)) == set(_PLACE.findall(text.one)), translation


@pytest.mark.parametrize("language", languages())
def test_the_compiled_catalogue_is_that_of_the_translators(language: str) -> None:
    assert {path: path.read_bytes() for path in compiled(language)} == compiled(language), (
        "run `make translations`"
    )


def _translations(message: Message) -> tuple[str, ...]:
    return (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
