"""Sign-in: the keys of our tokens, their lifetimes, and an external issuer."""

from datetime import timedelta

from gateway.common import env
from gateway.settings.process import PUBLIC_URL

# PEM private keys (EC P-256), one after the other: the first signs; all of them verify.
AUTH_SIGNING_KEYS = env.secret("AUTH_SIGNING_KEYS")
AUTH_REFRESH_SECRET = env.secret("AUTH_REFRESH_SECRET")
AUTH_DOMAIN = env.required("AUTH_DOMAIN")
AUTH_ISSUER = env.optional("AUTH_ISSUER", PUBLIC_URL)
AUTH_AUDIENCE = env.optional("AUTH_AUDIENCE", PUBLIC_URL)
AUTH_ACCESS_LIFETIME = timedelta(seconds=env.integer("AUTH_ACCESS_SECONDS", default=600, minimum=30))
AUTH_REFRESH_LIFETIME = timedelta(days=env.integer("AUTH_REFRESH_DAYS", default=30, minimum=1))
AUTH_REFRESH_GRACE = timedelta(seconds=10)
AUTH_CHALLENGE_LIFETIME = timedelta(minutes=5)
AUTH_EXTERNAL_JWKS_URL = env.url("AUTH_EXTERNAL_JWKS_URL", default="")
AUTH_EXTERNAL_ISSUER = env.optional("AUTH_EXTERNAL_ISSUER")
AUTH_EXTERNAL_AUDIENCE = env.optional("AUTH_EXTERNAL_AUDIENCE")
AUTH_EXTERNAL_ALGORITHMS = env.listing("AUTH_EXTERNAL_ALGORITHMS", default=("ES256", "RS256"))
AUTH_EXTERNAL_ADDRESS_CLAIM = env.optional("AUTH_EXTERNAL_ADDRESS_CLAIM", "address")
