"""Staff: how they log in, for how long, and what one of them may do alone."""

from datetime import timedelta

from gateway.common import env
from gateway.staff.theme import THEME

AUTH_USER_MODEL = "users.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AXES_VERBOSE = False
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_CALLABLE = "gateway.staff.refusals.locked_out"
# Behind a proxy, do not lock a name for everybody because of the proxy's address.
AXES_CLIENT_IP_CALLABLE = "gateway.common.callers.client_ip_if_known"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
# The first limit counts from the login, the second from the last click.
SESSION_COOKIE_AGE = env.integer("STAFF_SESSION_HOURS", default=8, minimum=1) * 3600
STAFF_IDLE_SECONDS = env.integer("STAFF_IDLE_MINUTES", default=30, minimum=1) * 60
# How long the front page's figures are cached.
STAFF_FIGURES_SECONDS = env.integer("STAFF_FIGURES_SECONDS", default=60)
# The text of the admin's badge; by default the name of the chain.
STAFF_ENVIRONMENT = env.optional("STAFF_ENVIRONMENT")
UNFOLD = THEME
# Nobody may read the key of somebody else's second factor.
OTP_ADMIN_HIDE_SENSITIVE_DATA = True
ADJUSTMENT_APPROVAL_LIMIT = env.integer("ADJUSTMENT_APPROVAL_LIMIT", default=10_000, minimum=0)
