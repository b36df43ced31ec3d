"""Refusals in the API's description: grouped by status, one example per code, as problem documents."""

from gateway.common.errors import DomainError, InvalidRequest, NotAuthenticated, NotFound
from gateway.common.problems import description_of, document, problem_responses
from users.errors import AccessTokenExpired, RefreshTokenReused, SessionEnded

PROBLEM = "application/problem+json"


def _codes(*refusals: type[DomainError]) -> dict[int, list[str]]:
    return {
        status: [example.value["code"] for example in response.examples]
        for (status, _), response in problem_responses(*refusals).items()
    }


def test_every_error_response_in_the_schema_matches_the_real_problem_documents() -> None:
    responses = problem_responses(NotFound)

    assert {content for _, content in responses} == {PROBLEM}
    (example,) = responses[404, PROBLEM].examples
    real = document(NotFound("Nothing here."))
    assert set(example.value) == set(real)
    for member in ("type", "title", "status", "code"):
        assert example.value[member] == real[member]


def test_errors_are_grouped_by_status_with_those_common_to_all_requests() -> None:
    assert list(_codes(NotFound, InvalidRequest).items()) == [
        (400, ["invalid-request"]),
        (403, ["https-required"]),
        (404, ["not-found"]),
        (429, ["too-many-requests"]),
        (500, ["internal-error"]),
        (503, ["service-unavailable"]),
    ]


def test_an_error_named_twice_is_shown_once() -> None:
    assert _codes(NotFound, NotFound)[404] == ["not-found"]


def test_an_error_class_includes_its_subclasses() -> None:
    codes = _codes(NotAuthenticated)[401]

    assert {"not-authenticated", AccessTokenExpired.code, SessionEnded.code} <= set(codes)
    assert RefreshTokenReused.code not in codes


def test_the_example_has_the_first_paragraph_of_the_meaning_on_one_line() -> None:
    (example,) = problem_responses(RefreshTokenReused)[401, PROBLEM].examples

    assert "\n\n" in description_of(RefreshTokenReused)
    assert example.value["detail"] == " ".join(description_of(RefreshTokenReused).split("\n\n")[0].split())
    assert "\n" not in example.value["detail"]
