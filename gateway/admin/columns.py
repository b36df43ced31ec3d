"""
Formatting of values in lists and on rows: right-aligned numbers with separators, coins for wei, labels and colours for
codes.

Apps register labels and tones of their codes; a page then formats each field by its type.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.html import format_html, strip_tags
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from gateway.chain.config import chain_of, home
from gateway.chain.types import Chain
from gateway.common.fields import AddressField, HashField, Uint256Field

Tone = Literal["good", "bad", "waiting", "quiet"]
# Shown in place of an empty value.
NOTHING = "-"
_GWEI = 10**9
# Columns whose numbers are identifiers, so that they are shown without separators.
_NAMES = ("nonce", "block_number", "channel", "chain_id")
_PLAIN = {"True": "yes", "False": "no", "None": ""}
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")
# Python's text form of an aware datetime.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)")
# Columns with status codes, which are shown in colour.
_STATES = ("status", "state", "outcome", "terminal_status")
# Columns with codes that have no list of choices.
_CODES = ("_code", "_reason", "rule", "outcome")
_words: dict[str, str] = {}
_tones: dict[str, Tone] = {}


def describe(words: Mapping[str, str]) -> None:
    """Register labels for codes, used in all lists and rows."""
    _words.update({str(code): word for code, word in words.items()})


def colour(tone: Tone, *codes: str) -> None:
    """Register the tone of these codes, which determines their colour."""
    _tones.update({str(code): tone for code in codes})


def word_of(code: str, label: str = "") -> str:
    """Return the registered label of a code, else the code with spaces. Names in a label stay as they are written."""
    spaced = str(code).replace("_", " ").replace("-", " ").lower()
    shown = _words.get(str(code)) or (label if label.lower() != spaced else "") or spaced
    return shown[:1].upper() + shown[1:]


def badge(code: str, label: str = "") -> SafeString:
    tone = _tones.get(str(code), "quiet")
    return format_html('<span class="tone {}">{}</span>', tone, word_of(code, label))


def yes_or_no(value: bool | None) -> str:
    """Return a flag as a word and not as Django's red or green icon: whether "no" is bad depends on the flag."""
    return NOTHING if value is None else "yes" if value else "no"


def number(value: Decimal | int | None) -> SafeString | str:
    """Return a right-aligned number with separators and without trailing zeros."""
    if value is None:
        return NOTHING
    plain = f"{value:,}" if isinstance(value, int) else f"{Decimal(value):,f}"
    shown = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return format_html('<span class="number">{}</span>', shown)


def percent(fraction: Decimal | None) -> SafeString | str:
    """Return a bonus fraction as a percentage: 0.15 is +15 %."""
    if fraction is None:
        return NOTHING
    shown = f"{(fraction * 100).normalize():+,f}"
    return format_html('<span class="number">{} %</span>', "0" if not fraction else shown)


def wei(amount: int | None, *, chain: Chain | None = None, is_price: bool = False) -> SafeString | str:
    """Return an amount of wei in the coins of the chain, by default home; with `is_price`, a gas price in gwei."""
    if amount is None:
        return NOTHING
    shown = f"{Decimal(amount) / _GWEI:,f} gwei" if is_price else (chain or home()).amount(amount, places=6)
    return format_html('<span class="number" title="{} wei">{}</span>', f"{amount:,}", shown)


def money(amount_minor: int | None, currency: str) -> SafeString | str:
    """Return an amount of minor units in a currency with 100 of them."""
    if amount_minor is None:
        return NOTHING
    shown = f"{Decimal(amount_minor) / 100:,.2f} {currency.upper()}"
    return format_html('<span class="number">{}</span>', shown)


def shown_once(what: str, secret: str) -> SafeString:
    """Return a message with a secret that no page shows again, and a button that copies it."""
    return format_html(
        '{} Copy it now; it is shown only once: <code class="once">{}</code> '
        '<button type="button" class="once" data-copy>Copy</button>',
        what,
        secret,
    )


def lines(model: type[models.Model] | None, pairs: Mapping[str, Sequence[object]]) -> list[str]:
    """Return one line for each change; it shows only the new value if there is no old one."""
    return [
        f"{name}: {before} → {after or 'nothing'}" if before else f"{name}: {after}"
        for name, before, after in changes(model, pairs)
    ]


def changes(
    model: type[models.Model] | None, pairs: Mapping[str, Sequence[object]]
) -> list[tuple[str, str, str]]:
    """Return logged changes for display: name, old value, new value."""
    percents = getattr(admin.site._registry.get(model), "percents", ()) if model else ()
    rows: list[tuple[str, str, str]] = []
    for name, pair in pairs.items():
        field = _field(model, name) if model else None
        title = str(field.verbose_name) if field else name.replace("_", " ")
        before, after = (_readable(str(value), field, is_percent=name in percents) for value in pair)
        rows.append((title, before, after))
    return rows


def _readable(text: str, field: models.Field[Any, Any] | None, *, is_percent: bool) -> str:
    """Return a logged value for display: codes as labels, flags as yes or no, times formatted."""
    choices = {str(code): str(label) for code, label in getattr(field, "flatchoices", ())}
    if text in choices or text in _words:
        return word_of(text, choices.get(text, ""))
    if is_percent and _DECIMAL.fullmatch(text):
        return strip_tags(percent(Decimal(text)))
    if _MOMENT.fullmatch(text) and (moment := parse_datetime(text)):
        return date_format(localtime(moment), "DATETIME_FORMAT")
    return _PLAIN.get(text, _separated(text))


def _separated(text: str) -> str:
    is_whole = text.lstrip("+-").isdecimal()
    return re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", text) if is_whole else text


def short(text: str) -> SafeString | str:
    """Return an address or hash shortened as in wallets; the full value is its title."""
    if len(text) <= 16:
        return text or NOTHING
    return format_html('<span class="short" title="{}">{}…{}</span>', text, text[:8], text[-6:])


def long_number(value: int | None) -> SafeString | str:
    """Return an identifier; a random one of 128 bits is shortened like a hash."""
    return NOTHING if value is None else short(str(value))


def structure(value: Any) -> SafeString | str:
    """Return a JSON value as lines, and an empty one as nothing."""
    return format_html("<pre>{}</pre>", json.dumps(value, indent=2, ensure_ascii=False)) if value else NOTHING


def worded(
    field: str,
    codes: Callable[[], Iterable[str]],
    *,
    title: str = "",
    within: Mapping[str, Any] | None = None,
) -> type[admin.SimpleListFilter]:
    """
    Return a filter for the column `field` that offers these codes, shown by their labels.

    `within` is a condition that all rows with these codes fulfil; it lets PostgreSQL use a partial index.
    """

    class Worded(admin.SimpleListFilter):
        parameter_name = f"{field}__exact"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            return [(str(code), word_of(code)) for code in codes()]

        def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
            chosen = self.value()
            return queryset.filter(**{field: chosen}, **(within or {})) if chosen else queryset

    Worded.title = title or field.replace("_", " ")
    return Worded


class Shown:
    """The display of a field in lists and rows; Django reads its name, label and ordering."""

    def __init__(self, field: models.Field[Any, Any], show: Callable[[Any], SafeString | str]) -> None:
        self.__name__ = self.admin_order_field = field.name
        self.short_description = str(field.verbose_name).removesuffix(" minor").removesuffix(" wei")
        self._show = show

    def __call__(self, row: Any) -> SafeString | str:
        return self._show(row)

    def __str__(self) -> str:
        return self.__name__


def shown(model: type[models.Model], name: Any, *, in_list: bool, percents: Collection[str] = ()) -> Any:
    """Return the display of the field `name`; the name itself for Django's default."""
    field = _field(model, name)
    show = field and _how(field, in_list=in_list, is_percent=name in percents)
    return Shown(field, show) if field and show else name


def _field(model: type[models.Model], name: Any) -> models.Field[Any, Any] | None:
    if not isinstance(name, str):
        return None
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return field if isinstance(field, models.Field) and not field.primary_key else None


_Show = Callable[[Any], SafeString | str]


def _how(field: models.Field[Any, Any], *, in_list: bool, is_percent: bool) -> _Show | None:
    name, of_chain = field.attname, hasattr(field.model, "chain_id")

    def value(row: Any) -> Any:
        return getattr(row, name)

    if isinstance(field, models.CharField | models.JSONField):
        return _text(field, in_list=in_list)
    if isinstance(field, models.BooleanField):
        return lambda row: yes_or_no(value(row))
    if name == "chain_id":
        return lambda row: chain_of(value(row)).name
    if name.endswith("_minor") and hasattr(field.model, "currency"):
        return lambda row: money(value(row), row.currency)
    if name.endswith("_wei"):
        is_price = "price" in name or "fee_per_gas" in name
        return lambda row: wei(
            value(row), chain=chain_of(row.chain_id) if of_chain else None, is_price=is_price
        )
    if is_percent:
        return lambda row: percent(value(row))
    if isinstance(field, models.IntegerField | models.DecimalField | Uint256Field) and not field.is_relation:
        show = long_number if name.endswith(_NAMES) else number
        return lambda row: show(value(row))
    return None


def _text(field: models.Field[Any, Any], *, in_list: bool) -> _Show | None:
    """Return the display of a text or of JSON; codes are shown in words."""
    name = field.attname

    def value(row: Any) -> Any:
        return getattr(row, name)

    if isinstance(field, models.JSONField):
        return lambda row: structure(value(row))
    if isinstance(field, AddressField | HashField):
        return (lambda row: short(value(row) or "")) if in_list else None
    if field.choices:
        show = badge if name in _STATES else word_of
        return lambda row: show(value(row), getattr(row, f"get_{name}_display")()) if value(row) else NOTHING
    if name == "currency":
        return lambda row: str(value(row)).upper() or NOTHING
    if name.endswith(_CODES):
        return lambda row: _with_code(value(row))
    return None


def _with_code(code: str) -> SafeString | str:
    """Return the registered label of a code, with the code as its title; other texts as they are."""
    return (
        format_html('<span title="{}">{}</span>', code, word_of(code)) if code in _words else code or NOTHING
    )
