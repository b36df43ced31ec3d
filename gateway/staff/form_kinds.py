"""Kinds of approval requests that write fields of one row, such as those made by forms of the admin."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Field, Model

from gateway.staff import approval_kinds
from gateway.staff.approval_kinds import Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest

Values = dict[str, str | None]


def save(row: Model, values: Values) -> Model:
    row.full_clean()
    row.save()
    return row


def form_kind(
    *,
    name: str,
    title: str,
    model: type[Model],
    asks: str,
    decides: str,
    check: Callable[[Any], None] = lambda row: None,
    save: Callable[[Any, Values], Model] = save,
    after: Callable[[ApprovalRequest, Any], str] = lambda approval, row: "",
) -> Kind:
    """
    Register a kind of request that writes fields of a row of the model.

    `check` gets the row with the requested values and raises `AboveCeiling`; `save` validates and stores the row;
    `after` returns further text for the approver.
    """

    def carry_out(approval: ApprovalRequest) -> Done:
        row = _locked(model, approval)
        if values_of(row, approval.payload["before"]) != approval.payload["before"]:
            raise RequestOutdated(
                "The row has changed since the request. Reject the request and make a new one."
            )
        _write(row, approval.payload["values"])
        try:
            saved = save(row, approval.payload["values"])
        except ValidationError as error:
            raise RequestOutdated(" ".join(error.messages)) from error
        for name in _relations(saved, approval.payload["values"]):
            getattr(saved, name).set((approval.payload["values"][name] or "").split())
        return Done(f"{saved} is saved. {after(approval, saved)}".strip(), saved)

    def check_row(approval: ApprovalRequest) -> None:
        row = model._default_manager.get(pk=approval.object_id) if approval.object_id else model()
        _write(row, approval.payload["values"])
        check(row)

    return approval_kinds.register(
        Kind(name=name, title=title, asks=asks, decides=decides, carry_out=carry_out, check=check_row)
    )


def _locked(model: type[Model], approval: ApprovalRequest) -> Model:
    if not approval.object_id:
        return model()
    return model._default_manager.select_for_update(of=("self",)).get(pk=approval.object_id)


def _field(row: Model, name: str) -> "Field[Any, Any]":
    field: Field[Any, Any] = row._meta.get_field(name)  # type: ignore[assignment]
    return field


def _relations(row: Model, values: Values) -> list[str]:
    return [name for name in values if _field(row, name).many_to_many]


def values_of(row: Model, names: Any) -> Values:
    """Return the named fields as text, related rows by their keys; `_write` sets them from this form."""
    return {name: _text(row, _field(row, name)) for name in names}


def _text(row: Model, field: "Field[Any, Any]") -> str | None:
    value = field.value_from_object(row)
    if field.many_to_many:
        return " ".join(sorted(str(related.pk) for related in value))
    return None if value is None else field.value_to_string(row)


def _write(row: Model, values: Values) -> None:
    """Set the row's own fields; many-to-many relations are set after it is stored."""
    for name in values.keys() - set(_relations(row, values)):
        field = _field(row, name)
        setattr(row, field.attname, field.to_python(values[name]))
