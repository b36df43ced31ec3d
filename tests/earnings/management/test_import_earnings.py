"""`manage.py import_earnings`: a report is checked whole, imported once, and its errors are reported by line."""

from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from credits.models import CreditEntry
from credits.queries import balance_of
from earnings.models import NetworkUser, Postback
from earnings.services import networks, push
from earnings.services.networks import ensure
from earnings.services.push import check_report
from gateway.staff.models import ApprovalRequest
from tests.factories import UserFactory
from tests.staff import approve, member
from users.models import User

pytestmark = pytest.mark.django_db
HEADER = "row_id,user_reference,amount,payout_usd,occurred_at"


@pytest.fixture(autouse=True)
def _enabled() -> None:
    networks.configure(slug="push-report", is_enabled=True, rate=2)


@pytest.fixture
def users() -> list[User]:
    """Return two users whom the network knows."""
    return [UserFactory.create(), UserFactory.create()]


def _reference(user: User) -> str:
    return networks.reference_of(user=user, network=ensure(slug="push-report"))


def _named() -> tuple[str, ...]:
    return "--actor", member("operations").username, "--reason", "the file of today"


def _import(path: Path, *rows: str, header: str = HEADER, flags: tuple[str, ...] = ()) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    file = path / "report.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    try:
        call_command("import_earnings", "push-report", str(file), *flags, *_named(), stdout=out, stderr=err)
    except CommandError as error:
        err.write(str(error))
    return out.getvalue(), err.getvalue()


def test_every_row_is_credited_and_a_second_import_credits_nothing(tmp_path: Path, users: list[User]) -> None:
    rows = [
        f"r1,{_reference(users[0])},10,0.10,2026-11-20T10:00:00Z",
        f"r2,{_reference(users[1])},20.5,,",
        f"r3,{_reference(users[0])},1,,2026-11-20T10:00:00+02:00",
    ]

    assert _import(tmp_path, *rows) == ("3 rows imported, 0 had already been imported\n", "")
    assert _import(tmp_path, *rows, f"r4,{_reference(users[1])},1,,")[0].startswith(
        "1 rows imported, 3 had already been"
    )

    assert [balance_of(user).available for user in users] == [22, 43]
    assert set(CreditEntry.objects.values_list("source", flat=True)) == {"PUSH_ADS"}
    assert Postback.objects.count() == 4
    assert bytes(Postback.objects.get(external_id="r1").raw).decode() == rows[0]


def test_a_negative_row_takes_the_row_of_its_id_back(tmp_path: Path, users: list[User]) -> None:
    name = _reference(users[0])
    _import(tmp_path, f"r1,{name},10,,", f"r2,{name},5,,")

    _import(tmp_path, f"r1,{name},-10,,")

    assert balance_of(users[0]).available == 10


def test_a_dry_run_posts_nothing(tmp_path: Path, users: list[User]) -> None:
    out, err = _import(tmp_path, f"r1,{_reference(users[0])},10,,", flags=("--dry-run",))

    assert (out, err) == ("1 rows are valid; nothing was imported\n", "")
    assert not Postback.objects.exists()


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_one_faulty_line_refuses_the_whole_file_and_every_error_is_reported(
    tmp_path: Path, users: list[User], flags: tuple[str, ...]
) -> None:
    name = _reference(users[0])
    out, err = _import(
        tmp_path,
        f"r1,{name},10,,",
        f"r3,{users[0].profile_address},10,,",
        f"r4,{name},ten,,",
        f"r1,{name},10,,",
        f"r5,{name},10",
        f"r6,{name},10,,,more",
        f"r7,{name},10,,2026-11-20T10:00:00",
        f"r8,{name},10,,yesterday",
        f",{name},10,,",
        flags=flags,
    )

    assert out == ""
    lines = err.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == [f"line {number}" for number in range(3, 11)]
    for line, part in zip(
        lines,
        ["user reference", "amount", "r1 is duplicate", "number of values", "number of values",
         "no time zone", "ISO 8601", "row_id", "8 invalid lines; nothing was imported"],
        strict=True,
    ):  # fmt: skip
        assert part in line
    assert not Postback.objects.exists()


@pytest.mark.parametrize(
    "header",
    [
        "row_id,user_reference",
        "row_id,user_reference;amount",
        "row_id,row_id,user_reference,amount",
        "",
    ],
)
def test_a_wrong_header_is_refused(tmp_path: Path, users: list[User], header: str) -> None:
    _, err = _import(tmp_path, f"r1,{_reference(users[0])},10", header=header)

    assert "the header must have row_id, user_reference, amount" in err
    assert not Postback.objects.exists()


def test_above_the_limits_the_same_file_is_imported_after_a_second_approval(
    tmp_path: Path, users: list[User]
) -> None:
    rows = [f"r{number},{_reference(user)},4000,," for number, user in enumerate(users)]
    for _ in range(2):
        assert "waits for a second person" in _import(tmp_path, *rows)[0]
    [request] = ApprovalRequest.objects.all()
    assert request.amount == 16_000
    assert request.changes["rows"] == ["", "2 of 2 users"]
    assert not Postback.objects.exists()
    approve("finance")
    assert "waits for a second person" in _import(tmp_path, *rows, f"r9,{_reference(users[0])},5000,,")[0]
    assert _import(tmp_path, *rows) == ("2 rows imported, 0 had already been imported\n", "")
    assert [balance_of(user).available for user in users] == [8_000, 8_000]


def test_columns_may_have_any_order_and_a_byte_order_mark(
    monkeypatch: pytest.MonkeyPatch, users: list[User]
) -> None:
    text = f"amount,user_reference,row_id\r\n4,{_reference(users[0])},r1\r\n"
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"\xef\xbb\xbf" + text.encode())))

    call_command("import_earnings", "push-report", "-", *_named(), stdout=StringIO())

    assert balance_of(users[0]).available == 8


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("tapjoy", "cannot be imported"),
        ("no-such-network", "cannot be imported"),
        ("push-report", "is disabled"),
    ],
)
def test_only_an_enabled_network_with_reports_has_imports(tmp_path: Path, network: str, message: str) -> None:
    networks.configure(slug="push-report", is_enabled=False)
    file = tmp_path / "report.csv"
    file.write_text(HEADER)

    with pytest.raises(CommandError, match=message):
        call_command("import_earnings", network, str(file), *_named())


@pytest.mark.parametrize(("name", "message"), [("missing.csv", "cannot be read"), ("latin.csv", "not UTF-8")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "latin.csv").write_bytes(b"row_id,\xff")

    with pytest.raises(CommandError, match=message):
        call_command("import_earnings", "push-report", str(tmp_path / name), *_named())


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_other_columns_are_ignored_whatever_separates_them(
    tmp_path: Path, users: list[User], separator: str
) -> None:
    header = separator.join(["Date", "Row_ID", "country", " user_reference ", "amount", "country"])
    row = separator.join(["2026-11-20", "r1", "DE", _reference(users[0]), "0.30000000000000004e1", "AT"])

    assert _import(tmp_path, row, header=header)[0].startswith("1 rows imported")

    assert balance_of(users[0]).available == 6


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_a_changed_amount_is_reported_and_the_first_one_counts(
    tmp_path: Path, users: list[User], flags: tuple[str, ...]
) -> None:
    name = _reference(users[0])
    _import(tmp_path, f"r1,{name},10,,", f"r2,{name},5,,")

    _, err = _import(tmp_path, f"r1,{name},10.0,,", f"r2,{name},6,,", flags=flags)

    assert err == "line 3: its row_id was imported with other content, which counts\n"
    assert balance_of(users[0]).available == 30
    conflicting = Postback.objects.filter(is_conflicting=True, conflicted_at__isnull=False)
    assert list(conflicting.values_list("external_id", flat=True)) == ([] if flags else ["r2"])


def test_a_long_import_shows_its_progress(
    tmp_path: Path, users: list[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "ROWS_AT_ONCE", 25)
    total = 51

    _, err = _import(tmp_path, *[f"r{number},{_reference(users[0])},1,," for number in range(total)])

    assert err == "25 of 51 rows\n50 of 51 rows\n"
    assert balance_of(users[0]).available == 2 * total


def test_a_row_of_an_unknown_reference_is_kept_for_staff(tmp_path: Path, users: list[User]) -> None:
    unknown = "0" * 32
    rows = [f"r1,{_reference(users[0])},10,,", f"r2,{unknown},7,,", f"r2,{unknown},-7,,"]

    out, err = _import(tmp_path, *rows)

    assert out == "3 rows imported, 0 had already been imported\n"
    assert [line for line in err.splitlines() if line.startswith("line")] == [
        f"line {number}: no user has this user_reference; staff can give it to a person" for number in (3, 4)
    ]
    assert balance_of(users[0]).available == 20
    unassigned = Postback.objects.filter(state="UNASSIGNED", user=None)
    assert sorted(unassigned.values_list("external_id", "kind")) == [("r2", "CREDIT"), ("r2", "REVERSAL")]
    assert ApprovalRequest.objects.get().amount == 20


def test_a_report_of_another_network_is_refused(tmp_path: Path) -> None:
    _, err = _import(tmp_path, f"r1,{'0' * 32},10,,", f"r2,{'1' * 32},10,,")

    assert err == "no line has a user_reference of this network"
    assert not Postback.objects.exists()
    assert not ApprovalRequest.objects.exists()


def test_an_open_quote_is_an_error_of_the_file(tmp_path: Path, users: list[User]) -> None:
    _, err = _import(tmp_path, f'r1,{_reference(users[0])},"10')

    assert "is not CSV" in err
    assert not Postback.objects.exists()


def test_many_users_are_read_in_one_query(users: list[User], django_assert_max_num_queries: Any) -> None:
    name = _reference(users[0])
    rows = [f"r{number},{name},1,," for number in range(300)]

    with django_assert_max_num_queries(4):
        assert check_report(slug="push-report", text="\n".join([HEADER, *rows])).new == 300
    assert NetworkUser.objects.count() == 1
