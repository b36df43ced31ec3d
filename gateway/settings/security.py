"""Security of the transport and in browsers: https, cookies, framing, content policy."""

from gateway.settings.process import PUBLIC_URL, TRUSTED_PROXY_COUNT

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS = 31_536_000 if PUBLIC_URL.startswith("https://") else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = bool(SECURE_HSTS_SECONDS)
SECURE_SSL_REDIRECT = PUBLIC_URL.startswith("https://")
# Only pages for people are redirected. An API call over plain http must fail, so that its sender notices.
SECURE_REDIRECT_EXEMPT = [r"^(?!(admin|problems)(/|$))"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXY_COUNT else None
X_FRAME_OPTIONS = "DENY"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "gateway.staff.refusals.csrf_failed"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "worker-src": ["'self'", "blob:"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
        "object-src": ["'none'"],
    }
}
