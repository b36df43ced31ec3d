"""The account and the settings of the tests of payments."""

from tests.payments.conftest import (
    _no_stripe_request_in_a_transaction,
    _own_settings,
    double,
    impatient,
    rates,
)

__all__ = ["_no_stripe_request_in_a_transaction", "_own_settings", "double", "impatient", "rates"]
