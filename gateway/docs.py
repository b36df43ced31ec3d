"""
Documentation for integrators: the OpenAPI document, Swagger UI from local static files, and a page for each error code,
made from the docstrings.
"""

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, re_path
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.gzip import gzip_page
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.renderers import TemplateHTMLRenderer

from gateway.common.errors import DomainError, all_errors
from gateway.common.problems import CONTENT_TYPE, description_of, only_methods

_PUBLIC = {"authentication_classes": (), "permission_classes": (AllowAny,)}
_FILE = {
    "Content-Disposition": 'inline; filename="openapi.json"',
    "Cache-Control": "public, max-age=300",
}
_WITH_RETRY_AFTER = {"429", "503"}
_RETRY_AFTER = {
    "description": "Seconds to wait before the next attempt.",
    "schema": {"type": "integer", "minimum": 1},
}
# drf-spectacular's schemas for a choice that may be empty or null.
_EMPTY, _NULL = ({"$ref": f"#/components/schemas/{name}"} for name in ("BlankEnum", "NullEnum"))
_PAGE = {**_PUBLIC, "renderer_classes": (TemplateHTMLRenderer,)}


@gzip_page
def description(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document. Building it is expensive, so each process builds it once."""
    return HttpResponse(_document(), content_type=OpenApiJsonRenderer.media_type, headers=_FILE)


@functools.cache
def _document() -> bytes:
    generator: Any = SchemaGenerator
    schema = generator().get_schema(request=None, public=True)
    return json.dumps(schema, separators=(",", ":")).encode()


def paths_as_documented(endpoints: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Remove the optional trailing slash from all paths; a hook of drf-spectacular."""
    return [(path.rstrip("/") or "/", *others) for path, *others in endpoints]


def ready_for_generators(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """
    Adapt the document for client generators; a hook of drf-spectacular.

    Adds the header Retry-After to every 429 and 503, and declares operations that need no token. Defaults of request
    members move into their descriptions, because generators treat a member with a default as always present. Integers
    get the format of 64 bits, because without a format the generators of Kotlin, Rust and Java use 32.
    """
    for operations in result["paths"].values():
        for operation in operations.values():
            operation.setdefault("security", [])
            for status in _WITH_RETRY_AFTER & set(operation["responses"]):
                operation["responses"][status]["headers"] = {"Retry-After": _RETRY_AFTER}
    for name, schema in result["components"]["schemas"].items():
        for member in schema["properties"].values() if name.endswith("Request") else ():
            if "default" in member:
                without = f"Without it: {json.dumps(member.pop('default'))}."
                member["description"] = f"{member['description']} {without}"
    schemas = result["components"]["schemas"]
    for part in list(_objects(result)):
        if part.get("oneOf", [])[1:] == [_EMPTY]:
            # For a union of enumerations, the Kotlin generator produces code that does not compile.
            name = part.pop("oneOf")[0]["$ref"].rpartition("/")[2]
            schemas[f"{name}OrEmpty"] = {**schemas[name], "enum": [*schemas[name]["enum"], ""]}
            part["allOf"] = [{"$ref": f"#/components/schemas/{name}OrEmpty"}]
        if part.get("oneOf", [])[1:] == [_NULL]:
            part["oneOf"][1] = {"type": "null"}
        if part.get("type") in ("integer", ["integer", "null"]):
            part.setdefault("format", "int64")
    referenced = {part.get("$ref") for part in _objects(result)}
    result["components"]["schemas"] = {
        name: schema
        for name, schema in sorted(schemas.items())
        if f"#/components/schemas/{name}" in referenced
    }
    return result


def share_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Move examples of errors, which most operations repeat, to the components; a hook of drf-spectacular."""
    shared: dict[str, Any] = {}
    for part in list(_objects(result["paths"])):
        examples = part.get("examples", {})
        for name, example in examples.items() if isinstance(examples, dict) else ():
            value = example.get("value")
            is_error = isinstance(value, dict) and "requestId" in value
            if is_error and shared.setdefault(value["code"], example) == example:
                examples[name] = {"$ref": f"#/components/examples/{value['code']}"}
    result["components"]["examples"] = dict(sorted(shared.items()))
    return result


def share_error_responses(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """
    Move the responses of errors to the components; a hook of drf-spectacular.

    A response is named after its errors (`NotFoundOrUnknownPack`). With more than three errors, or other content than a
    problem document, it is named after the status and the operation with the shortest name (`Execute403`).
    """
    names: dict[str, str] = {}
    shared: dict[str, Any] = {}
    operations = [operation for path in result["paths"].values() for operation in path.values()]
    for operation in sorted(operations, key=lambda each: (len(each["operationId"]), each["operationId"])):
        responses = operation["responses"]
        for status in filter(_is_error, responses):
            content = json.dumps(responses[status])
            name = names.setdefault(
                content, _response_name(operation["operationId"], status, responses[status])
            )
            shared[name], responses[status] = responses[status], {"$ref": f"#/components/responses/{name}"}
    result["components"]["responses"] = dict(sorted(shared.items()))
    return result


def _is_error(status: str) -> bool:
    return status >= "400"


def _response_name(operation: str, status: str, response: dict[str, Any]) -> str:
    (content_type, content), *others = response["content"].items()
    codes = [example["$ref"].rpartition("/")[2] for example in content.get("examples", {}).values()]
    kinds = {error.code: error for error in all_errors() if error.code in codes}
    bases = [
        code for code, error in kinds.items() if not any(base in kinds.values() for base in error.__mro__[1:])
    ]
    if others or content_type != CONTENT_TYPE or len(bases) > 3:
        return f"{operation[0].upper()}{operation[1:]}{status}"
    return "Or".join(code.title().replace("-", "") for code in sorted(bases))


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    """Return every object in the document."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _objects(child)


_CODE_SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Entry:
    code: str
    title: str
    status: int
    phrase: str
    is_retryable: bool
    paragraphs: list[SafeString]


def catalogue() -> list[Entry]:
    """Return all errors of the routes, by status and code."""
    return sorted(map(_entry, all_errors()), key=lambda entry: (entry.status, entry.code))


def _entry(error: type[DomainError]) -> Entry:
    paragraphs = [_marked_up(" ".join(text.split())) for text in description_of(error).split("\n\n")]
    phrase = HTTPStatus(error.status).phrase
    return Entry(error.code, error.title, error.status, phrase, error.retryable, paragraphs)


def _marked_up(text: str) -> SafeString:
    return mark_safe(_CODE_SPAN.sub(r"<code>\1</code>", escape(text)))  # noqa: S308 - escaped just before


@only_methods("GET", "HEAD")
def problem_index(request: HttpRequest) -> HttpResponse:
    return render(request, "problems/index.html", {"entries": catalogue()})


@only_methods("GET", "HEAD")
def problem_detail(request: HttpRequest, code: str) -> HttpResponse:
    entry = next((entry for entry in catalogue() if entry.code == code), None)
    if entry is None:
        raise Http404
    return render(request, "problems/detail.html", {"entry": entry})


urlpatterns: list[URLPattern] = [
    re_path(r"^api/openapi\.json$", description, name="schema"),
    re_path(r"^api/docs/?$", SpectacularSwaggerSplitView.as_view(url_name="schema", **_PAGE)),
    re_path(r"^problems/?$", problem_index),
    re_path(r"^problems/(?P<code>[a-z0-9-]+)/?$", problem_detail),
]
