"""Forms with bracketed names, as Stripe's clients write them."""

import re
from typing import Any
from urllib.parse import parse_qsl

from devstack.stripe.wire.refusals import Malformed

_NAME = re.compile(r"^([^\[\]]+)((?:\[[^\[\]]*\])*)$")
Form = dict[str, Any]


def read_form(text: str) -> Form:
    """Return the nested values of `a[b][0]=c`; numbered and unnumbered lists become objects with digit names."""
    form: Form = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        found = _NAME.match(name)
        if found is None:
            raise Malformed(f"Invalid parameter name: {name}")
        _put(form, [found[1], *re.findall(r"\[([^\[\]]*)\]", found[2])], value, name)
    return form


def _put(form: Form, path: list[str], value: str, name: str) -> None:
    node = form
    for step in path[:-1]:
        node = node.setdefault(step or str(len(node)), {})
        if not isinstance(node, dict):
            raise Malformed(f"Invalid parameter: {name} is both a value and an object.", param=path[0])
    node[path[-1] or str(len(node))] = value
