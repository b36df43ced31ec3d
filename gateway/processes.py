"""
The processes of the service, and the secrets that each of them uses.

`gateway.env` refuses secrets that are not in a process's list. `make chart` writes the files for `compose.yaml`
and the Helm chart from these lists.
"""

# `build` is the image's build, which loads the settings but uses no secret.
PROCESSES = ("web", "admin", "worker-relay", "worker-default", "beat", "eraser", "migrate", "build")
# The only processes that sign with relayer keys.
SIGNING = ("web", "admin", "worker-relay")
# The processes that use each secret. SECRET_KEY and the connections, which every process uses, are not in the list.
USED_BY = {
    "AUTH_SIGNING_KEYS": ("web", "migrate"),
    "AUTH_REFRESH_SECRET": ("web", "migrate"),
    "CHECKIN_SEED_SECRETS": ("web", "worker-default", "migrate"),
    "AD_NETWORK_SECRET_KEYS": ("web", "admin", "migrate"),
    # The eraser stores digests of deleted accounts' addresses, and sign-in looks them up.
    "DEBT_DIGEST_KEYS": ("web", "eraser", "migrate"),
    "WEBHOOK_SECRET_KEYS": ("web", "admin", "worker-default", "migrate"),
    # Beat schedules the payment tasks only if the key is set.
    "STRIPE_SECRET_KEY": ("web", "admin", "worker-default", "beat", "migrate"),
    "STRIPE_WEBHOOK_SECRETS": ("web", "migrate"),
    "METRICS_TOKEN": ("web", "migrate"),
    "LEDGER_SIGNING_KEY": ("worker-default",),
}

# Secrets that can be any random text of at least 32 characters. Tests and development stacks generate them.
RANDOM = (
    "AUTH_REFRESH_SECRET",
    "CHECKIN_SEED_SECRETS",
    "AD_NETWORK_SECRET_KEYS",
    "WEBHOOK_SECRET_KEYS",
    "DEBT_DIGEST_KEYS",
)


def withheld(process: str) -> list[str]:
    """Return the secrets that a process must not be given; none for a process without a name."""
    return [name for name, users in USED_BY.items() if process and process not in users]
