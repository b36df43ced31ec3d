"""Which refusals each payment path may answer, for the API's description."""

from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.schema import BODY, problem_responses
from payments import errors

_ALWAYS: tuple[type[DomainError], ...] = (
    common.NotAuthenticated,
    errors.BillingUnavailable,
    errors.BillingInProgress,
    errors.BillingRefused,
)
CUSTOMER = problem_responses(*_ALWAYS, *BODY)
SETUP_INTENT = problem_responses(*_ALWAYS)
UPSERT = problem_responses(
    *_ALWAYS,
    *BODY,
    errors.CurrencyNotSupported,
    errors.AmountTooSmall,
    errors.AmountTooLarge,
    errors.CurrencyFixed,
    errors.PaymentMethodRequired,
    errors.CardDeclined,
    errors.AuthenticationRequired,
)
CANCEL = problem_responses(*_ALWAYS, *BODY, errors.NoSubscription)
