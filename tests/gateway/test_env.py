"""The environment is read strictly, and a fault names the variable."""

import secrets
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway import env

NAME = "A_SETTING_OF_THE_TESTS"


def test_an_absent_or_empty_variable_stops_the_process_and_names_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    with pytest.raises(ImproperlyConfigured, match=NAME):
        env.required(NAME)
    monkeypatch.setenv(NAME, "")
    with pytest.raises(ImproperlyConfigured, match=NAME):
        env.secret(NAME)


def test_a_secret_is_read_from_the_file_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value = secrets.token_hex()
    (tmp_path / "secret").write_text(value + "\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))

    assert env.secret(NAME) == value


def test_a_byte_order_mark_in_front_of_a_secret_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value = secrets.token_hex()
    (tmp_path / "secret").write_text(value, encoding="utf-8-sig")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))

    assert env.secret(NAME) == value


def test_a_secret_file_whose_text_is_in_quotes_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    value = secrets.token_hex()
    (tmp_path / "secret").write_text(f'"{value}"')
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))

    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE .* in quotes") as refusal:
        env.secret(NAME)
    assert value not in str(refusal.value)


def test_a_secret_set_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv(NAME, "two")

    with pytest.raises(ImproperlyConfigured, match="only one"):
        env.secret(NAME)


def test_a_secret_file_that_is_missing_stops_the_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "absent"))

    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE"):
        env.secret(NAME)


def test_several_secrets_are_read_like_one_and_parted_by_commas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, two = secrets.token_hex(), secrets.token_hex()
    monkeypatch.delenv(NAME, raising=False)
    assert env.secrets(NAME, default="") == []
    with pytest.raises(ImproperlyConfigured, match=NAME):
        env.secrets(NAME)

    (tmp_path / "secret").write_text(f"{one}, ,{two},\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))

    assert env.secrets(NAME) == [one, two]


@pytest.mark.parametrize(("text", "value"), [("True", True), ("False", False)])
def test_a_flag_is_exactly_true_or_false(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv(NAME, text)

    assert env.flag(NAME, default=not value) is value


@pytest.mark.parametrize("text", ["true", "1", "yes", "on", "FALSE"])
def test_any_other_spelling_of_a_flag_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)

    with pytest.raises(ImproperlyConfigured, match=NAME):
        env.flag(NAME, default=False)


@pytest.mark.parametrize("text", ["1.5", "ten", "0x10", "-1"])
def test_a_fractional_or_too_small_number_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)

    with pytest.raises(ImproperlyConfigured, match=NAME):
        env.integer(NAME)


def test_a_number_has_an_upper_bound_if_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "100")
    assert env.integer(NAME, maximum=100) == 100
    monkeypatch.setenv(NAME, "101")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must be at most 100"):
        env.integer(NAME, maximum=100)


@pytest.mark.parametrize("text", ["banana", "30", "30/fortnight", "-1/minute", "30/minute;600/hour"])
def test_an_invalid_rate_limit_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)

    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must be a rate like 30/minute"):
        env.rate(NAME, "60/minute")


def test_a_rate_is_its_text_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "30/hour")
    assert env.rate(NAME, "60/minute") == "30/hour"
    monkeypatch.setenv(NAME, "")
    assert env.rate(NAME, "60/minute") == "60/minute"


def test_a_malformed_connection_string_is_refused_and_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    password = secrets.token_hex()
    monkeypatch.setenv(NAME, password)

    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must be a libpq connection string") as refused:
        env.database(NAME)

    assert refused.value.__suppress_context__
    monkeypatch.setenv(NAME, f"postgresql://relay:{password}@db:5433/gateway?sslmode=require")
    assert env.database(NAME) == {
        "user": "relay",
        "password": password,
        "host": "db",
        "port": "5433",
        "dbname": "gateway",
        "sslmode": "require",
    }


@pytest.mark.parametrize("text", ["localhost:8545", "ftp://node", "http://", "http://[", " , "])
def test_a_url_without_scheme_or_host_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)

    for reader in (env.url, env.urls):
        with pytest.raises(ImproperlyConfigured, match=NAME):
            reader(NAME)


def test_a_url_is_read_as_it_is_written_and_one_that_paths_follow_without_its_slash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAME, "https://issuer.example/keys/")

    assert env.url(NAME) == "https://issuer.example/keys/"
    assert env.base_url(NAME) == "https://issuer.example/keys"


def test_a_url_may_be_omitted_if_the_default_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    assert env.url(NAME, default="") == ""
    monkeypatch.setenv(NAME, "banana")
    with pytest.raises(ImproperlyConfigured, match=NAME):
        env.url(NAME, default="")


def test_a_list_drops_empty_items_and_a_choice_knows_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " a, ,b,")
    assert env.listing(NAME) == ["a", "b"]
    with pytest.raises(ImproperlyConfigured, match="strict, open"):
        env.choice(NAME, allowed=("strict", "open"), default="strict")


def test_a_process_is_refused_a_secret_that_it_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "AUTH_SIGNING_KEYS"
    monkeypatch.setenv("GATEWAY_PROCESS", "beat")
    monkeypatch.delenv(name, raising=False)
    assert env.secret(name) == ""
    for given in (name, f"{name}_FILE"):
        with monkeypatch.context() as patch:
            patch.setenv(given, secrets.token_hex())
            with pytest.raises(ImproperlyConfigured, match=f"must not be given {name}"):
                env.secret(name)


def test_errors_are_collected_and_each_variable_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "ten")
    monkeypatch.delenv(f"{NAME}_TOO", raising=False)
    env.collect()
    assert (env.integer(NAME, default=7), env.integer(NAME), env.urls(f"{NAME}_TOO")) == (
        7,
        1,
        ["http://invalid"],
    )

    with pytest.raises(SystemExit) as refused:
        env.finish()

    assert str(refused.value).splitlines()[1:] == [
        f"- {NAME} must be a whole number.",
        f"- Set the environment variable {NAME}_TOO.",
    ]
    with pytest.raises(ImproperlyConfigured):
        env.integer(NAME)


@pytest.mark.parametrize(
    "name", ["A_SETTING_OF_THE_TEST", "A_SETTINGS_OF_THE_TESTS", "A_SETTING_OF_THE_TEST_FILE"]
)
def test_a_misspelt_name_is_an_error_while_the_right_one_is_not_set(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    env.collect()
    env.optional(NAME)
    with pytest.raises(SystemExit, match=f"{name} is not a setting; did you mean {NAME}?"):
        env.finish()

    monkeypatch.setenv(NAME, "2")
    env.collect()
    env.optional(NAME)
    env.finish()


def test_a_former_name_is_an_error_while_the_new_one_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for former, name in env.FORMER.items():
        with monkeypatch.context() as patch:
            patch.setenv(former, "1")
            patch.delenv(name, raising=False)
            env.collect()
            env.optional(name)
            with pytest.raises(SystemExit, match=f"{former} is not a setting; did you mean {name}?"):
                env.finish()
            patch.setenv(name, "2")
            env.collect()
            env.optional(name)
            assert former in env.unread(())
            env.finish()


def test_a_variable_that_looks_like_a_setting_and_is_not_read_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env.collect()
    env.optional("ZEBRA_STRIPES", "")
    before = env.unread(("A_CONSTANT",))
    for name in ("ZEBRA_HERD", "A_CONSTANT", "SIGNER_JOURNAL"):
        monkeypatch.setenv(name, "1")
    assert set(env.unread(("A_CONSTANT",))) == {*before, "A_CONSTANT"}

    env.optional("ZEBRA_LEGS", "")
    for name in ("ZEBRA_SERVICE_HOST", "ZEBRA_PORT_80_TCP_ADDR", "ZEBRA_PORT", "ZEBRA_STRIPES"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("ZEBRA_SECRET_FILE", "/a/file")
    assert set(env.unread(())) == {*before, "ZEBRA_HERD", "ZEBRA_SECRET_FILE"}
    env.collect()
    env.finish()


@pytest.mark.parametrize(
    "text", ["https://gateway.example", "gateway.example:443", "gateway.example/", "a b", "a,b/c"]
)
def test_an_invalid_host_name_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must list host names only"):
        env.hosts(NAME)


def test_hosts_and_a_host_with_its_port_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "gateway.example, .example, 127.0.0.1,[::1],*")
    assert env.hosts(NAME) == ["gateway.example", ".example", "127.0.0.1", "[::1]", "*"]
    monkeypatch.setenv(NAME, "gateway.example:8000")
    assert env.host(NAME) == "gateway.example:8000"


def test_a_secret_that_is_too_short_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, f"{'a' * 32},{'b' * 31}")
    for reader in (env.secrets, env.secret):
        with pytest.raises(ImproperlyConfigured, match=f"{NAME} needs at least"):
            reader(NAME, minimum=65 if reader is env.secret else 32)


def test_a_secret_that_has_another_purpose_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, own = secrets.token_hex(), secrets.token_hex()
    monkeypatch.setenv(NAME, taken)
    for reader in (env.secrets, env.secret):
        with pytest.raises(ImproperlyConfigured, match=f"{NAME} must not be OTHER_KEY"):
            reader(NAME, other_than={"SECRET_KEY": "", "OTHER_KEY": taken})
    monkeypatch.setenv(NAME, f"{own},{taken}")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} must not be OTHER_KEY"):
        env.secrets(NAME, other_than={"OTHER_KEY": taken})
    assert env.secrets(NAME, other_than={"SECRET_KEY": ""}) == [own, taken]


def test_a_list_without_a_secret_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " , ")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME} lists no secret"):
        env.secrets(NAME)
