"""Which refusals each relay path may answer, for the API's description."""

from credits.errors import InsufficientCredits
from gateway.chain import errors as chain
from gateway.chain.fees import FeesTooHigh
from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.schema import BODY, problem_responses
from relay import errors as relay

_WITH_TOKEN: tuple[type[DomainError], ...] = (*BODY, common.NotAuthenticated)
CALL: tuple[type[DomainError], ...] = (
    InsufficientCredits,
    FeesTooHigh,
    *(refusal for refusal in common.all_refusals() if refusal.__module__.startswith("gateway.chain.")),
    relay.KeyManagerNotFound,
    relay.ForeignKeyManager,
    relay.KeyManagerNotOwner,
    relay.UntrustedCode,
    relay.SignerNotController,
    relay.RelayPermissionMissing,
    relay.RelayNonceUsed,
    relay.RelayNonceGap,
    relay.RelayNonceTaken,
    relay.ValidityTooShort,
    relay.GasLimitExceeded,
    relay.ChannelBusy,
    relay.RelayersBusy,
    relay.RelayShareUsed,
    relay.TooManyDeadEnds,
    relay.RelayPaused,
)

EXECUTE = problem_responses(*_WITH_TOKEN, *CALL, relay.NotYourProfile)
QUOTA = problem_responses(
    *_WITH_TOKEN,
    chain.NodeUnavailable,
    relay.TimestampOutOfWindow,
    relay.QuotaSignatureInvalid,
    relay.SignPermissionMissing,
    relay.NotYourProfile,
)
STATUS = problem_responses(*_WITH_TOKEN, relay.TransactionNotFound)
LSP15_EXECUTE = problem_responses(*BODY, *CALL, relay.ProfileNotRegistered, relay.CallFailedBefore)
LSP15_QUOTA = problem_responses(
    *BODY,
    chain.NodeUnavailable,
    relay.TimestampOutOfWindow,
    relay.QuotaSignatureInvalid,
    relay.SignPermissionMissing,
    relay.ProfileNotRegistered,
)
