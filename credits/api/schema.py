"""Descriptions, error responses and examples of the ledger's paths for the OpenAPI document."""

from gateway.common.errors import InvalidRequest, NotAuthenticated, TooManyRequests
from gateway.common.problems import problem_responses

ROOTS = problem_responses(InvalidRequest, TooManyRequests)
PROOFS = problem_responses(InvalidRequest, NotAuthenticated)
ROOTS_DESCRIPTION = """
What the service has signed over its ledger, newest first: at least one root an hour, each over all entries since the
one before it. Keep roots and `keys` somewhere else, and nobody can change an entry under them unseen. Follow `next`
until it is null.
""".strip()
PROOFS_DESCRIPTION = """
The entries of the signed-in profile, newest first, each with a proof that it is under a signed root. Hash `leaf`, then
go up along `path`, and you have `tree` of the root (RFC 6962). The page `docs/ledger.md` does it in 30 lines of
JavaScript.
""".strip()
