"""The errors of webhooks, which staff alone meet."""

from gateway.common.errors import DomainError


class EndpointRefused(DomainError):
    """Messages can never be posted to this address: it is not https, or not public."""

    code, title, status = "endpoint-refused", "The endpoint cannot be used", 400


class EndpointDisabled(DomainError):
    """Nothing is sent to the endpoint until staff enable it again."""

    code, title, status = "endpoint-disabled", "The endpoint is disabled", 409


class WebhooksNotConfigured(DomainError):
    """No key is set that the secrets of endpoints could be encrypted with."""

    code, title, status = "webhooks-not-configured", "Webhooks are not configured", 409
