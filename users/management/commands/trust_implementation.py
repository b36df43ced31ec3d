"""`manage.py trust_implementation KIND --address 0x… --name …`: request trust in contract code."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from gateway.common.errors import DomainError
from gateway.common.fields import checksum
from gateway.staff import approvals
from users.management.approval_command import ApprovalCommand
from users.models import TrustedImplementation
from users.services import trusted_code


class Command(ApprovalCommand):
    help = "Request trust in a contract implementation that profiles or key managers delegate to."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("kind", choices=TrustedImplementation.Kind.values)
        parser.add_argument("--address", required=True, help="Address of the implementation contract.")
        parser.add_argument("--name", required=True, help="Which release this is.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            address = checksum(options["address"])
        except ValueError as error:
            raise CommandError("--address must be a 20-byte hex address.") from error
        try:
            approval = trusted_code.request(
                kind=options["kind"],
                address=address,
                name=options["name"],
                actor=self.actor(options),
                reason=options["reason"],
            )
        except DomainError as refusal:
            raise CommandError(refusal.detail) from refusal
        if approval is None:
            self.stdout.write(f"There is a row for {options['kind']} {address}; the admin changes it.")
        else:
            self.stdout.write(
                f"{options['kind']} {address}: {approvals.outcome_of(approval, 'It is trusted.')}"
            )
