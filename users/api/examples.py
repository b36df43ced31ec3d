"""Real requests and answers for the API's description."""

from drf_spectacular.utils import OpenApiExample

NONCE_DESCRIPTION = """
Answers an EIP-4361 message for the profile. Have a controller of the profile sign it byte for byte with
`personal_sign` or `eth_sign` before `expiresAt`, then send `nonce` and signature to `/api/auth/verify`.
""".strip()
VERIFY_DESCRIPTION = """
The controller that signed must hold SIGN on the profile. A nonce is good for one attempt, whatever becomes of it,
except that a signature that is none at all is refused before.
""".strip()
REFRESH_DESCRIPTION = """
A refresh token is good for one exchange. A repeat within 10 seconds, for instance after a lost answer, gets the very
same next refresh token; a later one ends the session, because then two parties hold the token. The controller must
still hold SIGN. No refresh moves the end of the session.
""".strip()
LOGOUT_DESCRIPTION = """
Ends the session of the access token at once, for every token of it. `refresh` may name another session of the same
user, which then ends too.
""".strip()
ME_DESCRIPTION = "What the access token stands for."
KEYS_DESCRIPTION = """
The public keys of our access tokens (RFC 7517). While a key is being replaced there are two; choose by `kid`.
""".strip()
NONCE: list[OpenApiExample] = []
VERIFY: list[OpenApiExample] = []
REFRESH: list[OpenApiExample] = []
LOGOUT: list[OpenApiExample] = []
ME: list[OpenApiExample] = []
KEYS: list[OpenApiExample] = []
