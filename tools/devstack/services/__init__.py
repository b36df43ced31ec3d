"""The servers of the dev stack and the one way to start them."""

from devstack.services.server import ServerFailed
from devstack.services.stack import Services, start_services

__all__ = ["ServerFailed", "Services", "start_services"]
