"""Types of the API, generated from docs/openapi.yaml by `make schema`."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

# Every documented problem code.
ProblemCode: TypeAlias = Literal[
    "access-token-algorithm-refused",
    "access-token-audience-refused",
    "access-token-expired",
    "access-token-issuer-refused",
    "access-token-key-unknown",
    "access-token-kind-refused",
    "access-token-malformed",
    "access-token-signature-invalid",
    "account-banned",
    "account-deleted",
    "account-inactive",
    "address-checksum",
    "address-required",
    "amount-too-large",
    "amount-too-small",
    "answer-too-large",
    "authentication-required",
    "billing-in-progress",
    "billing-refused",
    "billing-unavailable",
    "call-failed-before",
    "call-not-allowed",
    "call-too-expensive",
    "card-declined",
    "chain-price-outdated",
    "chain-takes-no-calls",
    "chain-unavailable",
    "chain-unknown",
    "channel-busy",
    "check-in-credits-spent",
    "check-in-unavailable",
    "check-ins-not-ready",
    "check-ins-paused",
    "controller-revoked",
    "controller-without-permissions",
    "copy-at-home",
    "copy-needs-removal",
    "copy-taken",
    "copy-unsafe",
    "creation-key-used",
    "currency-fixed",
    "currency-not-supported",
    "customer-balance",
    "data-key-not-allowed",
    "delegate-call-not-allowed",
    "deployment-refused",
    "email-unavailable",
    "endpoint-disabled",
    "endpoint-refused",
    "fees-too-high",
    "first-deployment-unknown",
    "fresh-sign-in-required",
    "gas-limit-exceeded",
    "home-permission-missing",
    "https-required",
    "insufficient-credits",
    "internal-error",
    "invalid-request",
    "key-manager-call-not-allowed",
    "key-manager-not-found",
    "key-manager-not-owner",
    "key-manager-of-another-profile",
    "length-required",
    "method-not-allowed",
    "no-calls-allowed",
    "no-data-keys-allowed",
    "no-subscription",
    "nonce-expired",
    "nonce-foreign",
    "nonce-unknown",
    "nonce-used",
    "not-authenticated",
    "not-authorised",
    "not-found",
    "not-your-profile",
    "paid-credits-needed",
    "payload-function-not-supported",
    "payload-malformed",
    "payment-method-required",
    "payment-processing",
    "permission-denied",
    "profile-balance-too-low",
    "profile-creation-off",
    "profile-data-refused",
    "profile-not-deployed",
    "profile-not-registered",
    "profile-not-requested",
    "profile-not-there",
    "profile-refused",
    "purchase-closed",
    "purchase-differs",
    "quota-signature-invalid",
    "quote-expired",
    "quote-for-other-call",
    "quote-not-found",
    "quote-outdated",
    "quote-used",
    "rate-missing",
    "refresh-token-reused",
    "refresh-token-unknown",
    "registrations-used",
    "relay-call-expired",
    "relay-call-not-yet-valid",
    "relay-nonce-gap",
    "relay-nonce-refused",
    "relay-nonce-taken",
    "relay-nonce-used",
    "relay-paused",
    "relay-permission-missing",
    "relay-share-used",
    "relayers-busy",
    "relayers-empty",
    "request-too-large",
    "service-unavailable",
    "session-ended",
    "sign-permission-missing",
    "signature-abi-encoded",
    "signature-channel-missing",
    "signature-channel-not-sent",
    "signature-legacy-0-10",
    "signature-legacy-0-7",
    "signature-legacy-0-9",
    "signature-malformed",
    "signature-not-by-controller",
    "signature-other-chain",
    "signature-other-nonce",
    "signature-payload-only",
    "signature-personal-sign-digest",
    "signature-personal-sign-message",
    "signature-personal-sign-text",
    "signature-prefix-missing",
    "signature-profile-as-validator",
    "signature-unrecoverable",
    "signature-validity-missing",
    "signature-value-not-zero",
    "signer-not-a-controller",
    "signer-unavailable",
    "sponsor-budget",
    "sponsor-busy",
    "sponsor-chain",
    "sponsor-ended",
    "sponsor-frozen",
    "sponsor-gas-price",
    "sponsor-holding",
    "sponsor-holding-unknown",
    "sponsor-invitation",
    "sponsor-key",
    "sponsor-key-network",
    "sponsor-last-owner",
    "sponsor-limit-call",
    "sponsor-limit-campaign",
    "sponsor-limit-campaign-calls",
    "sponsor-limit-origin",
    "sponsor-limit-user-calls",
    "sponsor-limit-user-day",
    "sponsor-limit-user-total",
    "sponsor-limit-verifier",
    "sponsor-limit-voucher",
    "sponsor-limit-window",
    "sponsor-limit-window-calls",
    "sponsor-mail-failed",
    "sponsor-member-unknown",
    "sponsor-name-taken",
    "sponsor-no-mail",
    "sponsor-no-policy",
    "sponsor-not-started",
    "sponsor-openings-used",
    "sponsor-origin-missing",
    "sponsor-profile",
    "sponsor-purpose",
    "sponsor-self-service-off",
    "sponsor-session-ended",
    "sponsor-sign-in",
    "sponsor-staff-decide",
    "sponsor-target",
    "sponsor-terms",
    "sponsor-too-many",
    "sponsor-too-many-keys",
    "sponsor-unknown",
    "sponsor-unreadable",
    "sponsor-verifier",
    "sponsor-verifier-unknown",
    "sponsor-voucher",
    "sponsor-voucher-missing",
    "sponsor-voucher-used",
    "sponsor-without-credits",
    "target-reverted",
    "timestamp-out-of-window",
    "too-many-cancelled-calls",
    "too-many-endpoints",
    "too-many-requests",
    "transaction-not-found",
    "undo-refused",
    "unknown-pack",
    "unknown-purchase",
    "unsupported-media-type",
    "untrusted-code",
    "validity-too-short",
    "webhooks-not-configured",
]


class AcceptRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    token: str
    code: str
    password: str


class Accepted(TypedDict):
    """The phone to set up. The first sign-in with its code proves it."""

    sponsor: str
    email: str
    key: str
    picture: str


class AccountResponse(TypedDict):
    profileAddress: str
    balance: int
    held: int
    available: int
    debtLimit: int
    totalQuota: int
    resetDate: int
    permanentBadge: str
    subscriberBadge: str
    subscriptionStatus: "SubscriptionStatusEnum | None"
    subscriptionAmountFrom: int
    cashbackRemainder: float
    checkInDropsLimitedBy: "CheckInDropsLimitedByEnum"
    checkInDropsHint: str


class Action(TypedDict):
    """One thing that a relay call does."""

    action: "ActionEnum"
    to: str | None
    valueWei: str
    method: str
    recipient: str | None


ActionEnum: TypeAlias = Literal["send", "call", "write", "deploy", "manage", "create"]


class ActionRequest(TypedDict):
    """A contract and function that the call calls."""

    contract: str
    function: NotRequired[str]


class AdNetwork(TypedDict):
    """An enabled ad network."""

    network: str
    networkName: str
    kind: "AdNetworkKindEnum"
    userReference: str
    offersUrl: str | None
    holdHours: int
    typicalCredits: int | None


AdNetworkKindEnum: TypeAlias = Literal["PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS"]


class AdNetworks(TypedDict):
    """The enabled ad networks; an object, so that it can grow."""

    networks: "list[AdNetwork]"


class Alarm(TypedDict):
    """The alarm of a sponsor."""

    credits: int | None


class AlarmRequestRequest(TypedDict):
    """The new alarm of a sponsor."""

    credits: int | None


class Arriving(TypedDict):
    """The earnings that are held."""

    count: int
    credits: int
    earnings: "list[HeldEarning]"


class Badge(TypedDict):
    exp_lower_bound: int
    exp_upper_bound: int
    exp_growth_rate: float
    bonus_creds_push_ads: float
    bonus_creds_video_ads: float
    bonus_creds_offerwall: float
    bonus_creds_surveys: float
    bonus_daily_check_in_attempts: int
    credits_back_percent: float
    acceptable_credit_debt: int
    related_check_in_drops: int


class Budget(TypedDict):
    period: "PeriodEnum"
    limit: int
    used: int
    resets: str


class Calendar(TypedDict):
    """The user's check-ins as a habit."""

    canCheckIn: bool
    attemptsLeft: int
    nextCheckInAt: str | None
    streak: int
    days: "list[CalendarDay]"
    chances: "list[Chance]"
    nextDrop: "NextDrop | None"


class CalendarDay(TypedDict):
    day: str
    checkIns: int


class CallRequest(TypedDict):
    """
    The call that the profile should execute: encoded (`abi`), or a call to another address
    (`to`).
    """

    abi: NotRequired[str | None]
    to: NotRequired[str | None]
    value: NotRequired[str | None]
    data: NotRequired[str | None]


class CallWarning(TypedDict):
    """A consequence of the call that execute does not refuse it for."""

    code: "CodeEnum"
    detail: str


class Called(TypedDict):
    """A contract and function that a call calls."""

    contract: str
    function: str


class CancelRequest(TypedDict):
    """How to end the subscription."""

    cancelImmediately: bool


class Cancellation(TypedDict):
    """The cancelled subscription's customer, and whether the subscription has already ended."""

    success: bool
    customerIdCancelledFor: str
    cancelledInstantly: bool


class Card(TypedDict):
    """The card that the next payment uses."""

    card: "SavedCard | None"


class Chance(TypedDict):
    """A drop that the next check-in can give."""

    type: "TypeEnum"
    least: float
    most: float
    effectiveTimeInMinutes: int | None
    probability: float


CheckInDropsLimitedByEnum: TypeAlias = Literal["nothing", "nothing-earned", "no-drop-table"]


class CheckInResult(TypedDict):
    """The awarded drop, and all drops that were possible."""

    result: "Drop"
    possibleResults: "list[Drop]"


CodeEnum: TypeAlias = Literal["ownership-transfer"]


class Commitment(TypedDict):
    """A commitment: the SHA-256 of the day's seed in hex."""

    day: str
    commitment: str


class Contracts(TypedDict):
    contracts: "list[SpentOnContract]"


class Controller(TypedDict):
    """A controller of the new profile, and its permissions as LSP-6 encodes them."""

    address: str
    permissions: str


class Copy(TypedDict):
    """A profile on another chain."""

    universalProfileAddress: str
    keyManagerAddress: str
    chainId: int
    status: "StatusEnum"
    transactionHash: str | None
    controllers: "list[Controller]"


class CopyRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    chainId: int
    firstDeployment: NotRequired["FirstDeploymentRequest | None"]
    removalSignature: NotRequired[str]


class CreationFigures(TypedDict):
    """The profiles that a sponsor requested."""

    created: int
    registered: int
    inProgress: int
    failed: int
    credits: int
    firstCredits: int
    acted: int


CreditLevelEnum: TypeAlias = Literal["enough", "low", "depleted"]

CreditSourceEnum: TypeAlias = Literal[
    "SUBSCRIBED_PAYOUT",
    "CREDIT_PURCHASE",
    "PUSH_ADS",
    "VIDEO_ADS",
    "OFFERWALL",
    "SURVEYS",
    "CHECK_IN",
    "CREDITS_BACK",
    "RELAY_REVERSAL",
    "EARNING_REVERSAL",
    "PAYOUT_CLAWBACK",
    "STAFF_ADJUSTMENT",
    "CREDIT_EXPIRY",
    "FIRST_CREDITS",
    "DEBT_TRANSFER",
]


class Customer(TypedDict):
    """The user's customer at the payment provider."""

    walletAddress: str
    paymentsCustomerId: str


class Dashboard(TypedDict):
    userInfo: "UserInfo"
    permanentBadge: "Badge"
    subscriberBadge: "Badge"
    modifiers: "list[Modifier]"
    earningHistory: "list[Earning]"
    transactionHistory: "list[Transaction]"
    checkInDropTable: "DropRanges"


class DatedEarning(TypedDict):
    """An entry of the ledger other than a relay charge; reversals are negative."""

    related_user: str
    credit_source: "CreditSourceEnum"
    credits_earned: int
    credits_before: int
    credits_after: int
    created_at: str


class DatedTransaction(TypedDict):
    """A relay transaction; until it is settled, the balances are expected ones."""

    transaction_hash: str
    related_user: str
    expected_cost: int
    real_cost: int
    credits_before: int
    credits_after: int
    status: "StatusEnum"
    created_at: str
    settled_at: str | None
    failure_code: str
    paidBy: str
    chainId: int


class DeletionResponse(TypedDict):
    status: "DeletionResponseStatusEnum"
    requestedAt: str
    kept: str


DeletionResponseStatusEnum: TypeAlias = Literal["requested", "billing-ended", "erased"]


class Draw(TypedDict):
    """A check-in of a day whose seed is public."""

    result: "Drop"
    possibleResults: "list[Drop]"
    day: str
    attempt: int
    tables: list[int]
    experienceOnly: bool
    streak: int | None


class Drop(TypedDict):
    """A drop, awarded or possible."""

    type: "TypeEnum"
    value: float
    effectiveTimeInMinutes: NotRequired[int]


class DropRanges(TypedDict):
    """The possible values of each type for the user now; 0 if a type cannot drop."""

    maxBonusCreditsPushAds: float
    minBonusCreditsPushAds: float
    maxBonusCreditsVideoAd: float
    minBonusCreditsVideoAd: float
    maxBonusCreditsOfferwall: float
    minBonusCreditsOfferwall: float
    maxBonusCreditsSurvey: float
    minBonusCreditsSurvey: float
    maxCreditsBackPercent: float
    minCreditsBackPercent: float
    maxExperience: int
    minExperience: int
    maxCredits: int
    minCredits: int


class Earning(TypedDict):
    """An entry of the ledger other than a relay charge; reversals are negative."""

    related_user: str
    credit_source: "CreditSourceEnum"
    credits_earned: int
    credits_before: int
    credits_after: int


EntrySourceEnum: TypeAlias = Literal[
    "SUBSCRIBED_PAYOUT",
    "CREDIT_PURCHASE",
    "PUSH_ADS",
    "VIDEO_ADS",
    "OFFERWALL",
    "SURVEYS",
    "CHECK_IN",
    "CREDITS_BACK",
    "RELAY_TRANSACTION",
    "RELAY_REVERSAL",
    "EARNING_REVERSAL",
    "PAYOUT_CLAWBACK",
    "STAFF_ADJUSTMENT",
    "CREDIT_EXPIRY",
    "FIRST_CREDITS",
    "DEBT_TRANSFER",
]

EventsEnum: TypeAlias = Literal[
    "sponsor.low",
    "sponsor.recovered",
    "sponsor.profiles-low",
    "sponsor.posted",
    "sponsor.call-settled",
    "sponsor.call-reopened",
    "sponsor.profile-created",
    "sponsor.profile-failed",
]


class ExecuteRequest(TypedDict):
    """The body of execute."""

    keyManagerAddress: str
    transaction: "TransactionRequest"
    address: NotRequired[str | None]
    chainId: NotRequired[int | None]


class Expiring(TypedDict):
    """Given credits that expire unless they are used; bought ones never do."""

    credits: int
    entrySource: "EntrySourceEnum"
    expiresAt: str


class Fairness(TypedDict):
    """The data to recompute the user's draws."""

    profileAddress: str
    today: "Commitment"
    tomorrow: "Commitment"
    revealed: "list[RevealedSeed]"
    draws: "list[Draw]"
    tables: "list[Table]"
    howToRecompute: str


class FirstCredits(TypedDict):
    """Credits that the new profile gets from the sponsor that pays for its deployment."""

    credits: int
    days: int
    expiresAt: str | None


class FirstDeploymentRequest(TypedDict):
    """The salt and the data with which the profile was deployed first."""

    salt: str
    postDeploymentCallData: str


class FirstSteps(TypedDict):
    """What a newcomer has done already."""

    hadCredits: bool
    relayedCall: bool


class Happening(TypedDict):
    """A relay call, a check-in, or another change of the balance."""

    kind: "HappeningKindEnum"
    at: str
    credits: int
    balanceAfter: int | None
    entrySource: "EntrySourceEnum"
    network: str
    amountMinor: int | None
    currency: str
    status: "StatusEnumOrEmpty"
    failureCode: str
    transactionHash: str | None
    cashback: int
    sponsor: str
    actions: "list[Action]"
    hasMoreActions: bool
    drop: "Drop | None"


HappeningKindEnum: TypeAlias = Literal["call", "entry", "check-in"]

HeldBecauseEnum: TypeAlias = Literal["network-hold", "earlier-reversals", "review", "network-paused"]


class HeldEarning(TypedDict):
    """An earning that is held: its credits cannot be spent yet."""

    network: str
    networkName: str
    credits: int
    receivedAt: str
    arrivesAt: str | None
    heldBecause: "HeldBecauseEnum"


class Home(TypedDict):
    """The rest of the first screen, without the account."""

    creditLevel: "CreditLevelEnum"
    dailyUse: int
    daysLeft: int | None
    expiring: "list[Expiring]"
    typicalCost: int | None
    spending: "list[Spent]"
    checkIn: "Calendar"
    firstSteps: "FirstSteps"


class HostedPageAnswer(TypedDict):
    """A page at Stripe for this user only, valid for a short time."""

    url: str


class HostedPageRequest(TypedDict):
    """The URL to which Stripe's page returns the browser."""

    returnUrl: str


class Invitation(TypedDict):
    """An invitation."""

    code: str


class InvitationRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    email: str
    role: "RoleEnum"


class Invoice(TypedDict):
    """An invoice. Amounts are in minor units, times in unix seconds."""

    invoiceId: str
    number: str
    status: "InvoiceStatusEnum"
    currency: str
    total: int
    tax: int
    open: int
    createdAt: int
    pageUrl: str
    pdfUrl: str


InvoiceStatusEnum: TypeAlias = Literal["open", "paid", "uncollectible", "void"]


class Invoices(TypedDict):
    """A page of invoices, newest first."""

    next: str | None
    results: "list[Invoice]"


class Item(TypedDict):
    """An item of a drop table. Values are decimal text, so that they compare exactly."""

    type: "TypeEnum"
    weight: int
    valueMin: str
    valueMax: str
    effectiveTimeInMinutes: NotRequired[int]
    streakDays: NotRequired[int]


class Key(TypedDict):
    """A valid key. Its text was shown only when it was created."""

    key: int
    name: str
    hint: str
    scopes: "list[ScopesEnum]"
    networks: list[str]
    createdAt: str
    createdBy: str | None
    expiresAt: str | None
    lastUsedAt: str | None


class KeyRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    name: str
    scopes: "list[ScopesEnum]"
    networks: NotRequired[list[str]]


class KeyResponse(TypedDict):
    kty: str
    crv: str
    x: str
    y: str
    kid: str
    use: str
    alg: str


class KeySetResponse(TypedDict):
    keys: "list[KeyResponse]"


class Keys(TypedDict):
    keys: "list[Key]"


LatestInvoiceEnumOrEmpty: TypeAlias = Literal[
    "waiting",
    "address-missing",
    "stuck",
    "collected",
    "balance",
    "credit-note",
    "off-stripe",
    "carried",
    "free",
    "void",
    "uncollectible",
    "",
]


class LogoutRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    refresh: NotRequired[str | None]


class LogoutResponse(TypedDict):
    signedOut: bool


class Lsp15ExecuteRequest(TypedDict):
    """The body of execute as LSP-15 wallets send it."""

    address: str
    transaction: "TransactionRequest"
    keyManagerAddress: NotRequired[str | None]
    sponsor: NotRequired[str | None]
    sponsorFallback: NotRequired["SponsorFallbackEnum | None"]
    sponsorVoucher: NotRequired[str | None]


class Lsp15Quota(TypedDict):
    """The available credits as gas; the last two members only during a paid period."""

    quota: int
    unit: str
    totalQuota: NotRequired[int]
    resetDate: NotRequired[int]


class MeResponse(TypedDict):
    address: str
    controller: str | None
    sessionId: str | None
    sessionExpiresAt: str | None
    accessExpiresAt: str
    issuer: str


class Member(TypedDict):
    """A member of a sponsor."""

    id: int
    address: str | None
    email: str | None
    isInvited: bool
    role: "RoleEnum"
    since: str


class MemberRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    address: str
    role: "RoleEnum"


class MemberSession(TypedDict):
    """A session of a member without a profile."""

    token: str
    expiresAt: str


class MemberSignInRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    sponsor: str
    email: str
    password: str
    code: str


class Members(TypedDict):
    members: "list[Member]"


class Membership(TypedDict):
    """A sponsor of the signed-in profile."""

    name: str
    displayName: str
    role: "RoleEnum"
    since: str


class Memberships(TypedDict):
    sponsors: "list[Membership]"
    selfService: "SelfService"


class Modifier(TypedDict):
    id: int
    related_user: str
    modifier_type: "ModifierTypeEnum"
    value: float
    expires_at: str
    created_at: str


ModifierTypeEnum: TypeAlias = Literal[
    "BONUS_PUSH_ADS_CREDITS",
    "BONUS_VIDEO_ADS_CREDITS",
    "BONUS_OFFERWALL_CREDITS",
    "BONUS_SURVEYS_CREDITS",
    "BONUS_CREDITS_BACK",
]


class NewKey(TypedDict):
    """A new key."""

    secret: str
    key: "Key"


class NewPurchaseRequest(TypedDict):
    """The item of a purchase: a pack, or an amount."""

    pack: NotRequired[str]
    amount: NotRequired[int]
    currency: NotRequired[str | None]


class NextDrop(TypedDict):
    """A drop that becomes possible with a longer streak."""

    type: "TypeEnum"
    least: float
    most: float
    effectiveTimeInMinutes: int | None
    inDays: int


NextStepEnum: TypeAlias = Literal[
    "nothing",
    "subscribe",
    "capture-card",
    "confirm",
    "wait",
    "pay",
    "complete-address",
    "pay-invoice",
    "refunded",
    "disputed",
    "not-paid",
]


class NonceRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    address: str


class NonceResponse(TypedDict):
    nonce: str
    message: str
    expiresAt: str


class Note(TypedDict):
    text: str
    writtenAt: str


class Notes(TypedDict):
    """What staff wrote about the account, newest first."""

    notes: "list[Note]"


class NoticeEmailRequest(TypedDict):
    """The address for notices."""

    email: str | None


class NoticeEmailResponse(TypedDict):
    """The address for notices, and whether its owner has confirmed it."""

    email: str | None
    isConfirmed: bool
    isAvailable: bool


OfEnum: TypeAlias = Literal["own", "public"]


class OpeningRequest(TypedDict):
    """A new sponsor."""

    name: str
    displayName: str


class OtherSubscription(TypedDict):
    """Another live subscription. Amounts are in minor units, times in unix seconds."""

    subscriptionId: str
    status: "SubscriptionStatusEnum"
    currency: str
    subscriptionCost: int
    currentPeriodEnd: int


class Overview(TypedDict):
    """A sponsor's credits, and your rights."""

    name: str
    displayName: str
    isFrozen: bool
    rights: "list[RightsEnum]"
    balance: int
    held: int
    available: int
    budget: "list[Budget]"
    mayChangePolicies: bool
    dailyUse: int
    daysLeft: int | None


class Pack(TypedDict):
    """A pack: credits for a fixed price, in minor units with tax."""

    pack: str
    currency: str
    cost: int
    amount: str
    credits: int
    bonusCredits: int


class Packs(TypedDict):
    """The packs that are offered, and the currencies for other amounts."""

    packs: "list[Pack]"
    currencies: "list[SoldCurrency]"
    ownCurrency: str | None
    undoMinutes: int


class PaginatedDatedEarningList(TypedDict):
    next: str | None
    previous: str | None
    results: "list[DatedEarning]"


class PaginatedDatedTransactionList(TypedDict):
    next: str | None
    previous: str | None
    results: "list[DatedTransaction]"


class PaginatedProofList(TypedDict):
    next: str | None
    previous: str | None
    results: "list[Proof]"


class PaginatedRootList(TypedDict):
    next: str | None
    previous: str | None
    results: "list[Root]"
    keys: list[dict[str, Any]]


class PaginatedSponsorInvoiceList(TypedDict):
    next: str | None
    previous: str | None
    results: "list[SponsorInvoice]"


PausedReasonEnumOrEmpty: TypeAlias = Literal[
    "card-declined",
    "authentication-required",
    "payment-method-required",
    "currency-fixed",
    "address-required",
    "billing-refused",
    "no-credits",
    "pack-changed",
    "",
]

PeriodEnum: TypeAlias = Literal["day", "month"]


class Policies(TypedDict):
    policies: "list[Policy]"


class Policy(TypedDict):
    """
    A policy. The service checks policies in this order; the first whose terms fit a call pays
    for it.
    """

    name: str
    isEnabled: bool
    terms: "Terms | None"
    use: "PolicyUse"


class PolicyRefusal(TypedDict):
    """The rule of a policy that refuses the call."""

    policy: str
    code: str
    detail: str


class PolicyUse(TypedDict):
    """Usage that counts towards the limits: credits charged, or held by calls in progress."""

    credits: int
    calls: int
    windowCredits: int
    windowEndsAt: str | None


class PrepareRequest(TypedDict):
    """The body of prepare."""

    transaction: "CallRequest"
    channel: NotRequired[str | None]
    validityTimestamps: NotRequired[str | None]
    controller: NotRequired[str | None]
    address: NotRequired[str | None]
    chainId: NotRequired[int | None]
    quote: NotRequired[bool | None]
    sponsor: NotRequired[str | None]
    sponsorFallback: NotRequired["SponsorFallbackEnum | None"]
    sponsorVoucher: NotRequired[str | None]


class Prepared(TypedDict):
    """A relay call that is complete except for its signature, and its expected cost."""

    keyManagerAddress: str
    transaction: "UnsignedTransaction"
    controller: str
    hash: str
    chainId: int
    gasLimit: int | None
    expectedCost: int | None
    highestCost: int | None
    refusals: "list[Problem]"
    quote: "Quote | None"
    warnings: "list[CallWarning]"
    quoteRefusal: "Problem | None"
    sponsor: "PreparedSponsor | None"
    sponsorRefusal: "Problem | None"


class PreparedSponsor(TypedDict):
    """The sponsor that would pay for the call, and how its highest cost is divided."""

    name: str
    policy: str
    credits: int
    userCredits: int


class Preview(TypedDict):
    """What the terms would have done with past calls, had they begun with the first of them."""

    of: "OfEnum"
    calls: int
    paid: int
    credits: int
    undecided: int
    assumed: bool
    refusals: "list[PreviewRefusal]"


class PreviewRefusal(TypedDict):
    rule: str
    calls: int


class Problem(TypedDict):
    """
    An RFC 9457 problem document. Some codes add further members, which their own page
    describes.
    """

    type: str
    title: str
    status: int
    code: str
    detail: str
    requestId: str | None


class Profile(TypedDict):
    """
    A profile that a sponsor asked for. Its status is that of a relay transaction.
    `ExecutedExternally`: somebody else deployed exactly this profile, or it existed before.
    The first member of `chains` is the home chain; `status` and `transactionHash` are its.
    """

    universalProfileAddress: str
    keyManagerAddress: str
    status: "StatusEnum"
    transactionHash: str | None
    statusPath: str
    controllers: "list[Controller]"
    chains: "list[ProfileChain]"
    firstCredits: "FirstCredits | None"


class ProfileChain(TypedDict):
    """The deployment on one chain."""

    chainId: int
    status: "StatusEnum"
    transactionHash: str | None
    failureCode: str
    credits: int
    paidBy: str | None


class ProfileRequestRequest(TypedDict):
    """Either the controllers of the new profile, or the salt and the data of its deployment."""

    lsp6ControllerAddress: NotRequired[list[str]]
    lsp3Profile: NotRequired[str | None]
    salt: NotRequired[str]
    postDeploymentCallData: NotRequired[str]
    chainIds: NotRequired[list[int] | None]
    sponsorVoucher: NotRequired[str | None]
    origin: NotRequired[str]


class ProfileResponse(TypedDict):
    name: str
    picture: str | None


class Proof(TypedDict):
    entry: int
    leaf: str | None
    path: list[dict[str, Any]]
    root: "Root | None"
    disclosed: dict[str, Any] | None


class Purchase(TypedDict):
    """A paid purchase, whose credits are posted."""

    purchaseId: str
    status: "PurchaseStatusEnum"
    pack: str | None
    cost: int
    currency: str
    credits: int
    createdAt: int
    undoUntil: int | None
    undo: "UndoEnumOrEmpty"


PurchaseStatusEnum: TypeAlias = Literal["paid"]


class Purchases(TypedDict):
    """The newest purchases."""

    results: "list[Purchase]"


class Quota(TypedDict):
    """The available credits, and the current paid period."""

    quota: int
    unit: str
    totalQuota: int
    resetDate: int


class QuotaRequestRequest(TypedDict):
    """The body of quota."""

    address: str
    timestamp: int
    signature: str


class Quote(TypedDict):
    """
    The highest cost of the call, if it is sent with the header `Relay-Quote` before the quote
    expires.
    """

    id: str
    cost: int
    expiresAt: int


class ReceiptEmail(TypedDict):
    """The address to which Stripe sends receipts."""

    email: str | None


class ReceiptEmailRequest(TypedDict):
    """The address to which Stripe sends receipts."""

    email: str | None


class RefreshRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    refresh: str


class Refusals(TypedDict):
    refusals: "list[Refused]"


class Refused(TypedDict):
    rule: str
    requests: int


class RegisterRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    universalProfileAddress: str


class RevealedSeed(TypedDict):
    """A revealed seed in hex."""

    day: str
    commitment: str
    seed: str


RightsEnum: TypeAlias = Literal["read", "simulate", "create", "manage", "own"]

RoleEnum: TypeAlias = Literal["viewer", "manager", "owner"]


class RoleRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    role: "RoleEnum"


class Root(TypedDict):
    """A root; each one names the hash of the one before it."""

    text: str
    signature: str
    keyId: str


class SavedCard(TypedDict):
    """A card as its holder recognises it."""

    brand: str
    last4: str
    expiresMonth: int
    expiresYear: int


ScopesEnum: TypeAlias = Literal["read", "simulate", "create", "manage"]


class SelfService(TypedDict):
    """The sponsor that people open without the operator's staff."""

    isOn: bool
    dayCredits: int
    monthCredits: int


class ServedChain(TypedDict):
    chainId: int
    name: str
    currency: str
    creditWei: str
    creditWeiFrom: int
    explorerUrl: str
    relayerUrl: str
    state: "StateEnum"


class ServiceResponse(TypedDict):
    chainId: int
    currency: str
    creditWei: str
    creditWeiFrom: int
    explorerUrl: str
    relayerUrl: str
    chains: "list[ServedChain]"
    billingCurrencies: list[str]


class SessionResponse(TypedDict):
    sessionId: str
    controller: str
    signedInAt: str
    refreshedAt: str
    expiresAt: str
    isCurrent: bool


class SessionsEndedResponse(TypedDict):
    sessionsEnded: int


class SessionsResponse(TypedDict):
    sessions: "list[SessionResponse]"


class SetupIntent(TypedDict):
    """The client secret with which the wallet captures a card."""

    clientSecret: str


class Signer(TypedDict):
    address: str
    since: str


class SignerRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    address: str


class Signers(TypedDict):
    """The addresses whose vouchers are accepted."""

    signers: "list[Signer]"


class Simulated(TypedDict):
    """The policy that would pay, and the most that each side would pay."""

    policy: str | None
    sponsorCredits: int
    userCredits: int
    refusals: "list[PolicyRefusal]"
    code: str | None
    detail: str | None


class SimulationRequest(TypedDict):
    """A call, described by its profile, actions and cost, or by the hash of a transaction."""

    transactionHash: NotRequired[str]
    profile: NotRequired[str]
    actions: NotRequired["list[ActionRequest]"]
    credits: NotRequired[int]
    gasPriceWei: NotRequired[str]
    chainId: NotRequired[int | None]
    voucherFor: NotRequired[str]


class SoldCurrency(TypedDict):
    """A currency in which any amount can be bought, within these limits in minor units."""

    currency: str
    minimum: int
    maximum: int
    creditsPerMajorUnit: int


class Spend(TypedDict):
    """Credits that the sponsor has paid, or that are held for calls in progress."""

    days: "list[SpentOnDay]"
    policies: "list[SpentByPolicy]"
    users: "list[SpentOnUser]"
    userCount: int


class Spent(TypedDict):
    day: str
    credits: int


class SpentByPolicy(TypedDict):
    policy: str
    credits: int
    calls: int


class SpentOnContract(TypedDict):
    contract: str
    credits: int
    calls: int


class SpentOnDay(TypedDict):
    day: str
    credits: int
    calls: int


class SpentOnUser(TypedDict):
    user: str
    credits: int
    calls: int


class SponsorCall(TypedDict):
    """A call that the sponsor paid, or did not pay."""

    at: str
    chainId: int
    actions: "list[Called]"
    policy: str
    credits: int
    transactionHash: str | None
    status: "StatusEnum | None"
    rule: str | None
    serverResponse: str
    requests: int


class SponsorCalls(TypedDict):
    calls: "list[SponsorCall]"


SponsorFallbackEnum: TypeAlias = Literal["user"]


class SponsorInvoice(TypedDict):
    """
    A paid invoice of a purchase for a sponsor. Amounts are in minor units, times in unix
    seconds.
    """

    invoiceId: str
    number: str
    payer: str | None
    currency: str
    total: int
    tax: int
    returned: int
    credits: int
    creditsTakenBack: int
    createdAt: int


class SponsorMessage(TypedDict):
    """A message to an endpoint of a sponsor."""

    id: str
    type: str
    status: "SponsorMessageStatusEnum"
    attempts: int
    createdAt: str
    nextAttemptAt: str | None
    responseStatus: int | None
    error: str


SponsorMessageStatusEnum: TypeAlias = Literal["waiting", "delivered", "given-up"]


class SponsorMessages(TypedDict):
    messages: "list[SponsorMessage]"


class SponsorWebhook(TypedDict):
    """An endpoint of a sponsor."""

    id: int
    url: str
    events: "list[EventsEnum]"
    isEnabled: bool


class SponsorWebhookRequestRequest(TypedDict):
    """A new endpoint."""

    url: str
    events: "list[EventsEnum]"


class SponsorWebhookSecret(TypedDict):
    """An endpoint of a sponsor with its secret, which is shown only once."""

    id: int
    url: str
    events: "list[EventsEnum]"
    isEnabled: bool
    secret: str


class SponsorWebhooks(TypedDict):
    """The endpoints of a sponsor."""

    webhooks: "list[SponsorWebhook]"


StateEnum: TypeAlias = Literal["accepting", "paused", "away"]


class StateRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    isEnabled: bool


StatusEnum: TypeAlias = Literal[
    "Pending", "Submitted", "Success", "Failed", "Expired", "Cancelled", "ExecutedExternally"
]

StatusEnumOrEmpty: TypeAlias = Literal[
    "Pending", "Submitted", "Success", "Failed", "Expired", "Cancelled", "ExecutedExternally", ""
]


class Subscription(TypedDict):
    """The current subscription."""

    subscriptionId: str
    subscriptionFor: str
    subscriptionAmount: str


class SubscriptionReport(TypedDict):
    """The state of the subscription. Amounts are in minor units, times in unix seconds."""

    subscriptionId: str
    status: "SubscriptionStatusEnum"
    currency: str
    subscriptionCost: int
    interval: str
    isInvoiced: bool
    paidCost: int | None
    nextCost: int | None
    nextCostAt: int | None
    currentPeriodEnd: int
    cancelAtEndOfBillingPeriod: bool
    openCost: int | None
    clientSecret: str
    declineCode: str
    nextStep: "NextStepEnum"
    latestInvoice: "LatestInvoiceEnumOrEmpty"
    isResting: bool
    endsAt: int | None
    otherSubscriptions: "list[OtherSubscription]"


SubscriptionStatusEnum: TypeAlias = Literal[
    "incomplete", "incomplete_expired", "trialing", "active", "past_due", "canceled", "unpaid", "paused"
]


class Table(TypedDict):
    """A drop table that was used for draws."""

    id: int
    version: int
    items: "list[Item]"


class Target(TypedDict):
    """A contract that a policy pays for."""

    contract: str
    functions: list[str]


class TargetRequestRequest(TypedDict):
    """A contract, and its functions if not all."""

    contract: str
    functions: NotRequired[list[str]]


class Terms(TypedDict):
    """
    A version of a policy; versions never change. Limits are in credits of the sponsor's part;
    null: no limit.
    """

    version: int
    purpose: "TermsPurposeEnum"
    chainId: int | None
    startsAt: str | None
    endsAt: str | None
    targets: "list[Target]"
    profiles: "TermsProfilesEnum"
    listedProfiles: int
    newSince: str | None
    counterpart: str | None
    leastBalance: str | None
    gasPriceCeilingWei: str | None
    sharePercent: int
    callCredits: int
    userDayCredits: int | None
    userCredits: int | None
    userCalls: int | None
    windowSeconds: int | None
    windowCredits: int | None
    windowCalls: int | None
    campaignCredits: int | None
    campaignCalls: int | None
    originCalls: int | None
    firstCredits: int | None
    firstDays: int | None
    firstChainIds: list[int]


TermsProfilesEnum: TypeAlias = Literal[
    "all", "listed", "new", "vouched", "holding", "followed", "follower", "verified"
]

TermsPurposeEnum: TypeAlias = Literal["calls", "profiles", "welcome"]

TermsRequestProfilesEnum: TypeAlias = Literal[
    "all", "listed", "new", "vouched", "holding", "followed", "follower"
]

TermsRequestPurposeEnum: TypeAlias = Literal["calls", "profiles"]


class TermsRequestRequest(TypedDict):
    """
    The terms of a policy. Limits are in credits of the sponsor's part; null: no limit but the
    sponsor's budget.
    """

    purpose: NotRequired["TermsRequestPurposeEnum"]
    chainId: NotRequired[int | None]
    targets: NotRequired["list[TargetRequestRequest]"]
    profiles: NotRequired["TermsRequestProfilesEnum"]
    listed: NotRequired[list[str]]
    newSince: NotRequired[str | None]
    counterpart: NotRequired[str | None]
    leastBalance: NotRequired[str | None]
    startsAt: NotRequired[str | None]
    endsAt: NotRequired[str | None]
    gasPriceCeilingWei: NotRequired[str | None]
    sharePercent: NotRequired[int]
    callCredits: int
    userDayCredits: NotRequired[int | None]
    userCredits: NotRequired[int | None]
    userCalls: NotRequired[int | None]
    windowSeconds: NotRequired[int | None]
    windowCredits: NotRequired[int | None]
    windowCalls: NotRequired[int | None]
    campaignCredits: NotRequired[int | None]
    campaignCalls: NotRequired[int | None]
    originCalls: NotRequired[int | None]
    firstCredits: NotRequired[int | None]
    firstDays: NotRequired[int | None]
    firstChainIds: NotRequired[list[int]]


class Timeline(TypedDict):
    next: str | None
    results: "list[Happening]"


class TokenPairResponse(TypedDict):
    access: str
    refresh: str
    expiresIn: int
    address: str


class TopUp(TypedDict):
    """
    Automatic top-up, with the terms of the last consent; amounts are in minor units, times in
    unix seconds.
    """

    status: "TopUpStatusEnum"
    threshold: int
    pack: str
    cost: int
    currency: str
    monthlyLimit: int
    spentThisMonth: int
    consent: str
    consentedAt: int | None
    pausedReason: "PausedReasonEnumOrEmpty"
    declineCode: str
    lastPurchaseAt: int | None


TopUpStatusEnum: TypeAlias = Literal["off", "on", "paused"]


class TopUpTermsRequest(TypedDict):
    """
    Whether a pack is bought automatically, and on which terms. Without `enabled`, the other
    fields are ignored.
    """

    enabled: bool
    threshold: NotRequired[int]
    pack: NotRequired[str]
    monthlyLimit: NotRequired[int]
    consent: NotRequired[str]


class Transaction(TypedDict):
    """A relay transaction; until it is settled, the balances are expected ones."""

    transaction_hash: str
    related_user: str
    expected_cost: int
    real_cost: int
    credits_before: int
    credits_after: int
    status: "StatusEnum"


class TransactionHash(TypedDict):
    """A transaction's hash, as returned by execute."""

    transactionHash: str


class TransactionHashRequest(TypedDict):
    """A transaction's hash, as returned by execute."""

    transactionHash: str


class TransactionRequest(TypedDict):
    """The signed LSP-25 relay call."""

    abi: str
    signature: str
    nonce: str
    validityTimestamps: NotRequired[str | None]


class TransactionStatus(TypedDict):
    """The status record of a relay transaction."""

    status: "StatusEnum"
    transactionSenderAddress: str
    creditsUsed: int
    creditsBefore: int
    creditsAfter: int
    failureCode: str
    failureDetail: str
    paidBy: str
    chainId: int


TypeEnum: TypeAlias = Literal[
    "EXPERIENCE",
    "CREDITS",
    "BONUS_PUSH_ADS_CREDITS",
    "BONUS_VIDEO_ADS_CREDITS",
    "BONUS_OFFERWALL_CREDITS",
    "BONUS_SURVEYS_CREDITS",
    "BONUS_CREDITS_BACK",
]

UndoEnumOrEmpty: TypeAlias = Literal["pending", "done", "refused", "failed", ""]


class UndoRequest(TypedDict):
    """The purchase to undo."""

    purchaseId: str


class UnsignedTransaction(TypedDict):
    """The `transaction` of execute, without its signature."""

    abi: str
    nonce: str
    validityTimestamps: str


class UpsertRequest(TypedDict):
    """The requested subscription."""

    subscriptionCost: int
    currency: NotRequired[str | None]
    cancelAtEndOfBillingPeriod: NotRequired[bool | None]


class UserInfo(TypedDict):
    credits: int
    subscriptionAmount: float
    permanentExp: int
    subscriptionExp: int
    percentToNextPermanentBadge: float
    percentToNextSubscriberBadge: float
    isSubscriber: bool
    canCheckIn: bool


class VerifyRequestRequest(TypedDict):
    """The schema of a request's body or of an object in it; errors use JSON's terms."""

    nonce: str
    signature: str
    address: NotRequired[str | None]
