"""The process: its address, apps, middleware and templates."""

from pathlib import Path

import django_stubs_ext

from gateway.common import env

# Allows annotations such as ModelAdmin[Relayer] at run time.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parents[2]

SECRET_KEY = env.secret("SECRET_KEY")
DEBUG = env.flag("DEBUG", default=False)
ALLOWED_HOSTS = env.listing("ALLOWED_HOSTS")
PUBLIC_URL = env.base_url("PUBLIC_URL")
ROOT_URLCONF = "gateway.urls"
WSGI_APPLICATION = "gateway.wsgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "gateway.staff.formats"
APPEND_SLASH = False
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
TRUSTED_PROXY_COUNT = env.integer("TRUSTED_PROXY_COUNT", default=0)

INSTALLED_APPS = [
    # Before the theme, and the theme before Django's admin: the first app that has a template or static file wins.
    "gateway.staff",
    "unfold.apps.BasicAppConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.staticfiles",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "axes",
    "corsheaders",
    "csp",
    "django_structlog",
    "pgtrigger",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "credits",
    "relay",
    "payments",
    "checkin",
    "users",
    "gateway.apps.SecondFactorAdminConfig",
]

MIDDLEWARE = [
    "gateway.health.probes",
    "django_structlog.middlewares.RequestMiddleware",
    "gateway.common.request_ids.request_id_header",
    "django.middleware.security.SecurityMiddleware",
    "gateway.common.transport.https_only",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    # After CORS, so that a web page may read why its body was refused.
    "gateway.common.transport.lengths_told",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "gateway.staff.sessions.staff_sessions",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "gateway.staff.policy.policies",
    "axes.middleware.AxesMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "/static/"
# Serve from the packages' own folders, so that a bare checkout needs no collectstatic.
WHITENOISE_USE_FINDERS = True
