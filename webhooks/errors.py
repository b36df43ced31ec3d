"""The errors of webhooks, which staff and members of sponsors see, and of e-mails."""

from gateway.common.errors import DomainError


class EndpointRefused(DomainError):
    """Messages cannot be posted to this URL: it is not https, or not public."""

    code, title, status = "endpoint-refused", "The endpoint cannot be used", 400


class EndpointDisabled(DomainError):
    """The endpoint is disabled; staff must enable it first."""

    code, title, status = "endpoint-disabled", "The endpoint is disabled", 409


class TooManyEndpoints(DomainError):
    """A sponsor has a limited number of endpoints. Delete one first."""

    code, title, status = "too-many-endpoints", "There are too many endpoints", 409


class WebhooksNotConfigured(DomainError):
    """No key is configured to encrypt the secrets of endpoints."""

    code, title, status = "webhooks-not-configured", "Webhooks are not configured", 409


class EmailUnavailable(DomainError):
    """The operator of this service has set up no mail server, so it sends no notices by e-mail."""

    code, title, status = "email-unavailable", "There are no e-mails", 409
