"""Which refusals each payment path may answer, for the API's description."""

from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.schema import problem_responses
from payments import errors

_ALWAYS: tuple[type[DomainError], ...] = (
    common.InvalidRequest,
    common.NotAuthenticated,
    common.UnsupportedMediaType,
    common.TooManyRequests,
    common.ServiceUnavailable,
    errors.BillingUnavailable,
    errors.BillingInProgress,
    errors.BillingRefused,
)
CUSTOMER = problem_responses(*_ALWAYS)
UPSERT = problem_responses(
    *_ALWAYS,
    errors.CurrencyNotSupported,
    errors.AmountTooSmall,
    errors.AmountTooLarge,
    errors.CurrencyFixed,
    errors.PaymentMethodRequired,
    errors.CardDeclined,
    errors.AuthenticationRequired,
)
CANCEL = problem_responses(*_ALWAYS, errors.NoSubscription)
