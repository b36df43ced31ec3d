"""The entries that postbacks have caused, and the rules of their credits, for the nightly comparison."""

from earnings.networks import ADAPTERS
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.common.statements import Statements


class Sql(
    Statements,
    file=__file__,
    sources=", ".join(f"('{slug}', '{adapter.kind}')" for slug, adapter in ADAPTERS.items()),
    largest=str(SAFE_INTEGER_MAX),
):
    caused: str
    rules: str
