/** Types of the API, generated from docs/openapi.yaml by `make schema`. */

/** Every code that a documented refusal can have. */
export type ProblemCode =
  | "access-token-algorithm-refused"
  | "access-token-audience-refused"
  | "access-token-expired"
  | "access-token-issuer-refused"
  | "access-token-key-unknown"
  | "access-token-kind-refused"
  | "access-token-malformed"
  | "access-token-signature-invalid"
  | "account-deleted"
  | "account-inactive"
  | "address-checksum"
  | "amount-too-large"
  | "amount-too-small"
  | "authentication-required"
  | "billing-in-progress"
  | "billing-refused"
  | "billing-unavailable"
  | "call-failed-before"
  | "call-not-allowed"
  | "card-declined"
  | "chain-unavailable"
  | "channel-busy"
  | "check-in-unavailable"
  | "check-ins-not-ready"
  | "check-ins-paused"
  | "controller-revoked"
  | "controller-without-permissions"
  | "currency-fixed"
  | "currency-not-supported"
  | "data-key-not-allowed"
  | "delegate-call-not-allowed"
  | "fees-too-high"
  | "fresh-sign-in-required"
  | "gas-limit-exceeded"
  | "https-required"
  | "insufficient-credits"
  | "internal-error"
  | "invalid-request"
  | "key-manager-call-not-allowed"
  | "key-manager-not-found"
  | "key-manager-not-owner"
  | "key-manager-of-another-profile"
  | "length-required"
  | "method-not-allowed"
  | "no-calls-allowed"
  | "no-data-keys-allowed"
  | "no-subscription"
  | "nonce-expired"
  | "nonce-foreign"
  | "nonce-unknown"
  | "nonce-used"
  | "not-authenticated"
  | "not-authorised"
  | "not-found"
  | "not-your-profile"
  | "payload-function-not-supported"
  | "payload-malformed"
  | "payment-method-required"
  | "profile-balance-too-low"
  | "profile-not-deployed"
  | "profile-not-registered"
  | "profile-refused"
  | "quota-signature-invalid"
  | "quote-expired"
  | "quote-for-other-call"
  | "quote-not-found"
  | "quote-outdated"
  | "quote-used"
  | "refresh-token-reused"
  | "refresh-token-unknown"
  | "relay-call-expired"
  | "relay-call-not-yet-valid"
  | "relay-nonce-gap"
  | "relay-nonce-refused"
  | "relay-nonce-taken"
  | "relay-nonce-used"
  | "relay-paused"
  | "relay-permission-missing"
  | "relay-share-used"
  | "relayers-busy"
  | "request-too-large"
  | "service-unavailable"
  | "session-ended"
  | "sign-permission-missing"
  | "signature-abi-encoded"
  | "signature-channel-missing"
  | "signature-legacy-0-10"
  | "signature-legacy-0-7"
  | "signature-legacy-0-9"
  | "signature-malformed"
  | "signature-not-by-controller"
  | "signature-other-chain"
  | "signature-other-nonce"
  | "signature-payload-only"
  | "signature-personal-sign-digest"
  | "signature-personal-sign-message"
  | "signature-personal-sign-text"
  | "signature-prefix-missing"
  | "signature-profile-as-validator"
  | "signature-unrecoverable"
  | "signature-validity-missing"
  | "signature-value-not-zero"
  | "signer-not-a-controller"
  | "signer-unavailable"
  | "target-reverted"
  | "timestamp-out-of-window"
  | "too-many-cancelled-calls"
  | "too-many-requests"
  | "transaction-not-found"
  | "unsupported-media-type"
  | "untrusted-code"
  | "validity-too-short";

export interface paths {
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The keys that verify access tokens
         * @description The public keys of our access tokens (RFC 7517). While a key is being replaced there are two; choose by `kid`.
         */
        get: operations["jwks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/ledger-roots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the signed roots of the ledger
         * @description What the service has signed over its ledger, newest first: at least one root an hour, each over all entries since the
         *     one before it. Keep roots and `keys` somewhere else, and nobody can change an entry under them unseen. Follow `next`
         *     until it is null.
         */
        get: operations["ledgerRoots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign out
         * @description Ends the session of the access token at once, for every token of it. `refresh` may name another session of the same
         *     user, which then ends too. A token of an external issuer is not ended: it is good until it expires, so sign out at its
         *     issuer as well.
         */
        post: operations["authLogout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who is signed in
         * @description What the access token stands for.
         */
        get: operations["authMe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/nonce": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Ask for a message to sign
         * @description Answers an EIP-4361 message for the profile. Have a controller of the profile sign it byte for byte with
         *     `personal_sign` or `eth_sign` before `expiresAt`, then send `nonce` and signature to `/api/auth/verify`.
         *
         *     An address without a profile's code is refused here already, if a node says so at once; otherwise `/api/auth/verify`
         *     refuses it.
         */
        post: operations["authNonce"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchange a refresh token for new tokens
         * @description A refresh token is good for one exchange. A repeat within 10 seconds, for instance after a lost answer, gets the very
         *     same next refresh token; a later one ends the session, because then two parties hold the token. The controller must
         *     still hold SIGN. No refresh moves the end of the session.
         */
        post: operations["authRefresh"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List where the profile is signed in
         * @description The sessions of the profile that have not ended, each of one signature of one controller. Tokens of an external issuer
         *     belong to no session.
         */
        get: operations["authSessions"];
        put?: never;
        post?: never;
        /**
         * Sign out everywhere
         * @description Ends every session of the profile at once, this one included: no access or refresh token of them is good any more. A
         *     token of an external issuer is not ended: it is good until it expires.
         */
        delete: operations["authLogoutEverywhere"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign in with the signed message
         * @description The controller that signed must hold SIGN on the profile. A nonce is good for one attempt, whatever becomes of it,
         *     except that a signature that is none at all is refused before. So after a 503 of this path, ask for a new nonce and sign
         *     its message; the same body would get 401 `nonce-used`.
         */
        post: operations["authVerify"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/ledger/proofs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the own entries with their proofs, page by page
         * @description The entries of the signed-in profile, newest first, each with a proof that it is under a signed root. Hash `leaf`, then
         *     go up along `path`, and you have `tree` of the root (RFC 6962). The page `docs/ledger.md` does it in 30 lines of
         *     JavaScript.
         */
        get: operations["ledgerProofs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/lsp15/execute": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Execute a relay transaction (LSP-15)
         * @description Answer the hash of the transaction that carries the call.
         */
        post: operations["lsp15Execute"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/lsp15/quota": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Read the quota in gas (LSP-15)
         * @description Answer what is left, as gas at 1 gwei.
         */
        post: operations["lsp15Quota"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/cancelSubscription": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Cancel the subscription
         * @description Ends the subscription, now or with the running period. Ending it now ends the period's allowance without a refund;
         *     credits stay. Where a proxy drops the body of a DELETE, send `?cancelImmediately=true` or `false`; where both are sent,
         *     they must agree.
         */
        delete: operations["cancelSubscription"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/cardPage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a page of Stripe's that captures a card
         * @description Answers a page of Stripe's that captures a card, for wallets that do not embed Stripe's library: send the browser there.
         *     It leads back to `returnUrl`, with or without a card; then `upsertSubscription`.
         */
        post: operations["createCardPage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/createCustomer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create the customer of the user's profile
         * @description Answers the customer; the same one however often it is asked for. No other path needs it first: each makes the
         *     customer where there is none.
         */
        post: operations["createCustomer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/getSetupIntent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a setup intent's client secret
         * @description Answers a fresh client secret of a setup intent of Stripe. The wallet confirms it with the user's card by Stripe's own
         *     libraries, for instance `stripe.confirmSetup`, under the operator's publishable key. The newest card so captured pays
         *     the subscription. The secret must not be stored or logged.
         */
        get: operations["getSetupIntent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/invoices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the invoices
         * @description Answers the person's invoices, newest first, with Stripe's page and PDF of each. Request the address in `next`,
         *     unchanged, until it is null. Anybody who has an invoice's address can open it.
         */
        get: operations["getInvoices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/portalPage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get a visit to Stripe's customer portal
         * @description Answers a page of Stripe's where the person sees cards and invoices, and cancels or resumes the subscription; what is
         *     changed there is seen here. It leads back to `returnUrl`.
         */
        post: operations["createPortalPage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/receiptEmail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get where receipts go
         * @description Where Stripe sends receipts and reminders. The address is kept at Stripe alone, never here, and forgotten there as soon
         *     as null is sent.
         */
        get: operations["getReceiptEmail"];
        put?: never;
        /**
         * Set where receipts go
         * @description Where Stripe sends receipts and reminders. The address is kept at Stripe alone, never here, and forgotten there as soon
         *     as null is sent.
         */
        post: operations["setReceiptEmail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/subscription": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get how the subscription stands
         * @description Answers how the subscription stands and what to do next: what the running period has cost, what the next one will, and
         *     what is open because a renewal was not collected. The secret must not be stored or logged.
         */
        get: operations["getSubscription"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/payments/upsertSubscription": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Insert or update the subscription
         * @description Begins the subscription, or changes the one that runs; a repeat with the same values changes nothing.
         *
         *     * A changed amount applies from the next period. Another currency needs a new subscription: cancel first.
         *     * `cancelAtEndOfBillingPeriod` true ends it with the running period; false, or nothing, lets it go on.
         *     * Where a renewal was not collected (`past_due`, `unpaid`), its open invoice is tried with the newest card.
         *     * 402 `payment-method-required`: no card yet. 402 `card-declined`: see `declineCode`. 402 `authentication-required`:
         *       the wallet confirms the payment with `clientSecret`, then repeats the request.
         */
        post: operations["upsertSubscription"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/postbacks/{network}/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Tell of an earning
         * @description For ad networks, which sign what they send; there is no access token. The path ends in the network's own token.
         *     Parameters, signature and the text of the answer are the network's; staff find them on the page about ad networks.
         *     A repeat is answered like the first one and credits nobody twice.
         */
        get: operations["postback"];
        put?: never;
        /**
         * Tell of an earning
         * @description For ad networks, which sign what they send; there is no access token. The path ends in the network's own token.
         *     Parameters, signature and the text of the answer are the network's; staff find them on the page about ad networks.
         *     A repeat is answered like the first one and credits nobody twice.
         */
        post: operations["postbackByPost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/relay/execute": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Execute a relay transaction
         * @description Sends the signed call through the profile's key manager, at the service's gas cost. Credits are held at once and
         *     charged when the chain has confirmed what the call really cost.
         *
         *     A repeat of the same call is charged once, so a lost answer may simply be asked for again. It returns the same hash,
         *     until a transaction with another fee has carried the call into the chain: then it returns that one's hash.
         *     `transactionStatus` knows every hash of a call. After `Failed`, `Cancelled` or `Expired` the same call is tried anew.
         *     A nonce ahead of the key manager's is accepted behind calls of the same channel that are in progress here, at most
         *     8 of them.
         *
         *     `docs/signing.md` of the repository shows how to compute the hash.
         */
        post: operations["execute"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/relay/prepare": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Prepare a relay transaction
         * @description Answers everything that a controller needs in order to sign a relay call: the key manager, the encoded call, the next
         *     nonce and the hash. Sign `hash` as it is, add the signature to `transaction`, and send both with `keyManagerAddress`
         *     to execute.
         *
         *     Nothing is held, stored or sent. `refusals` holds a problem document for each reason for which execute would refuse the
         *     call now; the answer is 200 all the same. The call is tried by its parts, without its signature, so `highestCost` is
         *     often some percent above what execute will hold.
         *
         *     With a `quote`, the call costs at most its `cost`, whatever gas comes to cost: send its `id` as the header `Relay-Quote`
         *     of execute before `expiresAt`. It is good for this very call, once. Each quote reserves a part of what the service may
         *     lose, so ask without one (`"quote": false`) where you only show a price.
         */
        post: operations["prepare"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/relay/quota": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Read the user's credit quota
         * @description `quota` is what can be spent now: the balance less what is held for calls in progress.
         *
         *     The message is signed by a controller with SIGN in one of these forms: the personal message of
         *     `keccak256(address ‖ uint256(timestamp))` (LSP-15), the personal message of the text `address:timestamp`, or the bare
         *     `keccak256(address ‖ uint256(timestamp))`.
         */
        post: operations["quota"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/relay/transactionStatus": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Read the status and cost of a relay transaction
         * @description `Pending` and `Submitted` are in progress: `creditsUsed` is then the expected cost. `Success`, `Failed` (reverted, the
         *     burned gas is charged), `Expired`, `Cancelled` and `ExecutedExternally` are final.
         */
        post: operations["transactionStatus"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/relay/transactions/{transaction_hash}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Wait for the status of a relay transaction
         * @description Answers as `transactionStatus` does. With `wait`, a transaction in progress is answered as soon as its status is another
         *     one than when the request came, or as it is when the time is over. Repeat the request until the status is final; a final
         *     one is answered at once.
         *
         *     A few requests of one user wait at a time (429 beyond), and so many of all users (503 beyond).
         */
        get: operations["transaction"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/service": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read which chain this service relays to
         * @description What a wallet has to know of this service before anybody signs in. It changes only when the operator changes the
         *     settings.
         */
        get: operations["service"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read balance, quota and badges in short
         * @description The account of the signed-in profile in short: what there is, what is held for relay transactions under way, what the
         *     running period has paid out and until when, the names of the badges, and what explains the dashboard: why the drop table
         *     of the check-in shows zeros, and from when a changed amount is charged.
         */
        get: operations["account"];
        put?: never;
        post?: never;
        /**
         * Delete the account
         * @description Deletes the account of the signed-in profile, for good: all sessions end at once, the subscription is cancelled without
         *     a refund, the customer with the cards is deleted at Stripe, and remaining credits are lost. Calls under way end first.
         *     Then everything that tells who it was is erased; amounts stay for accounting, and proofs of the ledger stay good.
         *
         *     Takes a token of a sign-in that is at most ten minutes old. Until everything is erased, within an hour as a rule, a
         *     sign-in of the profile gets 401 `account-deleted`; from then on it begins a new account.
         */
        delete: operations["deleteAccount"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/adNetworks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the ad networks and the user's name at each
         * @description A reference is opaque, differs from network to network and never changes. Earnings that a network reports for it are the user's.
         */
        get: operations["adNetworks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/checkInDrops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the possible check-in drops
         * @description The least and the largest value that each type may drop with: of the permanent badge's drop table, and of the
         *     subscriber badge's while a subscription runs. A type that cannot drop has 0 for both.
         *
         *     Until a payment was collected or an earning posted for the user, experience is all that can drop, and everything
         *     else is 0.
         */
        get: operations["checkInDrops"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/checkInFairness": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what recomputes the user's check-ins
         * @description The draws of a day are computed from a seed. Its SHA-256 is answered here before the day begins (`tomorrow`,
         *     `today`), the seed itself 48 hours after the day began (`revealed`, the last 14 days), together with the user's
         *     draws under these seeds and the tables they were drawn from. `docs/check-in.md` of the repository recomputes a
         *     draw in a few lines of Python.
         */
        get: operations["checkInFairness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/dashboardInfo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read everything a wallet shows of its user
         * @description Everything a wallet shows of its user, in one answer: credits, experience on both tracks, the current badges, active
         *     modifiers, the newest 100 earnings and relay transactions, and what a check-in may give now. Fractions are 0 to 1 where
         *     they are shares and may exceed 1 where they are bonuses. `credits` is what can be spent: balance less what is held, and
         *     below 0 in debt. Why `checkInDropTable` shows zeros, and from when a changed `subscriptionAmount` is charged, is at
         *     `/api/user/account`. Older history is at `/api/user/earnings` and `/api/user/transactions`.
         */
        get: operations["dashboardInfo"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/earnings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what was earned, page by page
         * @description Everything that changed the balance except relay charges, newest first; what was taken back is negative. Follow `next`
         *     until it is null. Pages hold `limit` rows, 100 unless told, 500 at most.
         */
        get: operations["earnings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/executeCheckIn": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Execute a check-in
         * @description Uses one attempt of the day and answers what dropped. Days are UTC dates; each has 1 attempt and those that the
         *     badges add. One drop is rolled for every item of the user's drop tables (`possibleResults`), and one of them is
         *     chosen by weight (`result`). It takes effect at once: experience on the permanent track (times the badge's
         *     growth rate), credits, or a bonus for `effectiveTimeInMinutes`.
         *
         *     GET and POST do the same and need no body; one that is posted must be JSON, and what it says does not matter. A
         *     lost answer costs the attempt, unless the request carried an `Idempotency-Key`: a repeat with the same key answers
         *     the same draw, at any time and also when no attempt is left.
         *
         *     `checkInFairness` lets anyone compute the draw again.
         */
        get: operations["executeCheckIn"];
        put?: never;
        /**
         * Execute a check-in
         * @description Uses one attempt of the day and answers what dropped. Days are UTC dates; each has 1 attempt and those that the
         *     badges add. One drop is rolled for every item of the user's drop tables (`possibleResults`), and one of them is
         *     chosen by weight (`result`). It takes effect at once: experience on the permanent track (times the badge's
         *     growth rate), credits, or a bonus for `effectiveTimeInMinutes`.
         *
         *     GET and POST do the same and need no body; one that is posted must be JSON, and what it says does not matter. A
         *     lost answer costs the attempt, unless the request carried an `Idempotency-Key`: a repeat with the same key answers
         *     the same draw, at any time and also when no attempt is left.
         *
         *     `checkInFairness` lets anyone compute the draw again.
         */
        post: operations["executeCheckInByPost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the name and picture of the profile
         * @description What the profile shows of itself (LSP-3), verified against the hash on the chain. It is read again at the first sign-in
         *     of a day, soon after it. Nothing is read where the operator has not switched it on.
         */
        get: operations["profile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/user/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read relay transactions, page by page
         * @description The relay transactions of the signed-in profile, newest first. Follow `next` until it is null. Pages hold `limit` rows,
         *     100 unless told, 500 at most.
         */
        get: operations["transactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AccountResponse: {
            profileAddress: string;
            /** @description All credits; negative when in debt. */
            balance: number;
            /** @description Credits that relay transactions under way may use. */
            held: number;
            /** @description `balance` less `held`. */
            available: number;
            /** @description Credits paid out for the running period; 0 without one. */
            totalQuota: number;
            /** @description End of the period in unix seconds; -1 without one. */
            resetDate: number;
            /** @description Its name. */
            permanentBadge: string;
            /** @description Its name; of the lowest one for users without a running period. */
            subscriberBadge: string;
            /**
             * @description Stripe's word for it; null where there never was a subscription.
             *
             *     * `incomplete` - Incomplete
             *     * `incomplete_expired` - Incomplete Expired
             *     * `trialing` - Trialing
             *     * `active` - Active
             *     * `past_due` - Past Due
             *     * `canceled` - Canceled
             *     * `unpaid` - Unpaid
             *     * `paused` - Paused
             */
            subscriptionStatus: components["schemas"]["SubscriptionStatusEnum"] | components["schemas"]["NullEnum"];
            /** @description From when the dashboard's `subscriptionAmount` is charged, in unix seconds: a changed amount counts from the next period. -1 where it counts already, or there is no subscription. */
            readonly subscriptionAmountFrom: number;
            /**
             * Format: double
             * @description Cashback that is no whole credit yet; it counts with what comes back next.
             */
            cashbackRemainder: number;
            /**
             * @description Why the check-in's drop table shows zeros. `nothing-earned`: until a payment was collected or an earning posted, experience is all that can drop. `no-drop-table`: the operator has published none for the badge. `nothing`: a type with zeros is in no table of the badges.
             *
             *     * `nothing` - nothing
             *     * `nothing-earned` - nothing-earned
             *     * `no-drop-table` - no-drop-table
             */
            checkInDropsLimitedBy: components["schemas"]["CheckInDropsLimitedByEnum"];
            /** @description The same as a sentence to show; empty for `nothing`. */
            readonly checkInDropsHint: string;
        };
        /** @description An ad network that rewards users here. */
        AdNetwork: {
            /** @description Name of the network. */
            network: string;
            /**
             * @description The credit source of its rewards.
             *
             *     * `PUSH_ADS` - PUSH_ADS
             *     * `VIDEO_ADS` - VIDEO_ADS
             *     * `OFFERWALL` - OFFERWALL
             *     * `SURVEYS` - SURVEYS
             */
            kind: components["schemas"]["KindEnum"];
            /** @description Give the network's SDK this as the user's id, and nothing else. */
            userReference: string;
        };
        /** @description The enabled ad networks; an object, so that it can grow. */
        AdNetworks: {
            networks: components["schemas"]["AdNetwork"][];
        };
        Badge: {
            exp_lower_bound: number;
            /** @description Where the next badge begins; 9007199254740991 at the top. */
            exp_upper_bound: number;
            /**
             * Format: double
             * @description Multiplies experience gained on this track.
             */
            exp_growth_rate: number;
            /** Format: double */
            bonus_creds_push_ads: number;
            /** Format: double */
            bonus_creds_video_ads: number;
            /** Format: double */
            bonus_creds_offerwall: number;
            /** Format: double */
            bonus_creds_surveys: number;
            bonus_daily_check_in_attempts: number;
            /** Format: double */
            credits_back_percent: number;
            acceptable_credit_debt: number;
            /** @description The drop table in force; 0 without one. */
            related_check_in_drops: number;
        };
        /** @description What the profile is to do: an encoded call of its own (`abi`), or a call to another address (`to`). */
        CallRequest: {
            /** @description Encoded call for the profile, such as setData or execute. */
            abi?: string | null;
            /** @description Whom the profile calls. Not with `abi`. */
            to?: string | null;
            /** @description The wei it sends along. Not with `abi`. Without it: 0. */
            value?: number | string | null;
            /** @description The calldata it sends along; by default none. Not with `abi`. */
            data?: string | null;
        };
        /** @description How to end the subscription. */
        CancelRequest: {
            /** @description True ends it now, false with the running period. */
            cancelImmediately: boolean;
        };
        /** @description What was cancelled, and when it ends. */
        Cancellation: {
            success: boolean;
            customerIdCancelledFor: string;
            cancelledInstantly: boolean;
        };
        /**
         * @description * `nothing` - nothing
         *     * `nothing-earned` - nothing-earned
         *     * `no-drop-table` - no-drop-table
         * @enum {string}
         */
        CheckInDropsLimitedByEnum: "nothing" | "nothing-earned" | "no-drop-table";
        /** @description The awarded drop, and all drops that were possible. */
        CheckInResult: {
            result: components["schemas"]["Drop"];
            possibleResults: components["schemas"]["Drop"][];
        };
        /** @description A promise: the SHA-256 of the day's seed in hex. */
        Commitment: {
            /** Format: date */
            day: string;
            commitment: string;
        };
        /**
         * @description * `SUBSCRIBED_PAYOUT` - Subscribed Payout
         *     * `PUSH_ADS` - Push Ads
         *     * `VIDEO_ADS` - Video Ads
         *     * `OFFERWALL` - Offerwall
         *     * `SURVEYS` - Surveys
         *     * `CHECK_IN` - Check In
         *     * `CREDITS_BACK` - Credits Back
         *     * `RELAY_REVERSAL` - Relay Reversal
         *     * `EARNING_REVERSAL` - Earning Reversal
         *     * `PAYOUT_CLAWBACK` - Payout Clawback
         *     * `STAFF_ADJUSTMENT` - Staff Adjustment
         * @enum {string}
         */
        CreditSourceEnum: "SUBSCRIBED_PAYOUT" | "PUSH_ADS" | "VIDEO_ADS" | "OFFERWALL" | "SURVEYS" | "CHECK_IN" | "CREDITS_BACK" | "RELAY_REVERSAL" | "EARNING_REVERSAL" | "PAYOUT_CLAWBACK" | "STAFF_ADJUSTMENT";
        /** @description The user's customer at the payment provider. */
        Customer: {
            walletAddress: string;
            paymentsCustomerId: string;
        };
        Dashboard: {
            userInfo: components["schemas"]["UserInfo"];
            permanentBadge: components["schemas"]["Badge"];
            /** @description The lowest one for users without a running period. */
            subscriberBadge: components["schemas"]["Badge"];
            /** @description Active ones. */
            modifiers: components["schemas"]["Modifier"][];
            /** @description The newest 100, newest first. */
            earningHistory: components["schemas"]["Earning"][];
            /** @description The newest 100, newest first. */
            transactionHistory: components["schemas"]["Transaction"][];
            checkInDropTable: components["schemas"]["DropRanges"];
        };
        /** @description An entry of the ledger other than a relay charge; what was taken back is negative. */
        DatedEarning: {
            readonly related_user: string;
            credit_source: components["schemas"]["CreditSourceEnum"];
            credits_earned: number;
            credits_before: number;
            credits_after: number;
            /** Format: date-time */
            created_at: string;
        };
        /** @description A relay transaction; until it is settled the balances are expected ones. */
        DatedTransaction: {
            transaction_hash: string;
            related_user: string;
            expected_cost: number;
            /** @description 0 until settled. */
            real_cost: number;
            readonly credits_before: number;
            readonly credits_after: number;
            status: components["schemas"]["StatusEnum"];
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            settled_at: string | null;
            /** @description Why it failed or was cancelled, such as `reverted`; else empty. */
            failure_code: string;
        };
        DeletionResponse: {
            /**
             * @description How far it has come; first `requested`.
             *
             *     * `requested` - Requested: the card's subscription and customer are being ended
             *     * `billing-ended` - Nothing is left at Stripe; calls end, then the person is erased
             *     * `erased` - Erased
             */
            status: components["schemas"]["DeletionResponseStatusEnum"];
            /** Format: date-time */
            requestedAt: string;
        };
        /**
         * @description * `requested` - Requested: the card's subscription and customer are being ended
         *     * `billing-ended` - Nothing is left at Stripe; calls end, then the person is erased
         *     * `erased` - Erased
         * @enum {string}
         */
        DeletionResponseStatusEnum: "requested" | "billing-ended" | "erased";
        /** @description A check-in of a day whose seed is public. */
        Draw: {
            result: components["schemas"]["Drop"];
            possibleResults: components["schemas"]["Drop"][];
            /** Format: date */
            day: string;
            attempt: number;
            /** @description Ids, in the order of their items. */
            tables: number[];
            /** @description Only items of experience were drawn from. */
            experienceOnly: boolean;
        };
        /** @description Something that dropped, or could have. */
        Drop: {
            type: components["schemas"]["TypeEnum"];
            /**
             * Format: double
             * @description Whole experience or credits; of a bonus a fraction.
             */
            value: number;
            /** @description How long a bonus lasts; absent for experience and credits. */
            effectiveTimeInMinutes?: number;
        };
        /** @description What may drop for the user now; 0 where a type cannot. */
        DropRanges: {
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            maxBonusCreditsPushAds: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            minBonusCreditsPushAds: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            maxBonusCreditsVideoAd: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            minBonusCreditsVideoAd: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            maxBonusCreditsOfferwall: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            minBonusCreditsOfferwall: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            maxBonusCreditsSurvey: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            minBonusCreditsSurvey: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            maxCreditsBackPercent: number;
            /**
             * Format: double
             * @description A fraction: 0.05 is 5 %.
             */
            minCreditsBackPercent: number;
            maxExperience: number;
            minExperience: number;
            maxCredits: number;
            minCredits: number;
        };
        /** @description An entry of the ledger other than a relay charge; what was taken back is negative. */
        Earning: {
            readonly related_user: string;
            credit_source: components["schemas"]["CreditSourceEnum"];
            credits_earned: number;
            credits_before: number;
            credits_after: number;
        };
        /** @description The body of execute. */
        ExecuteRequest: {
            /** @description The key manager that controls the signed-in profile. */
            keyManagerAddress: string;
            transaction: components["schemas"]["TransactionRequest"];
            /** @description The profile; if sent, it must be the signed-in one. */
            address?: string | null;
        };
        /** @description What lets anyone compute the user's draws again. */
        Fairness: {
            profileAddress: string;
            today: components["schemas"]["Commitment"];
            tomorrow: components["schemas"]["Commitment"];
            revealed: components["schemas"]["RevealedSeed"][];
            draws: components["schemas"]["Draw"][];
            tables: components["schemas"]["Table"][];
            howToRecompute: string;
        };
        /** @description A page of Stripe's for this person alone, good for a short while. */
        HostedPageAnswer: {
            /** Format: uri */
            url: string;
        };
        /** @description Where the browser goes when the person is done with Stripe's page. */
        HostedPageRequest: {
            /** @description An https address, or http of localhost. */
            returnUrl: string;
        };
        /** @description An invoice. Amounts are in minor units, times in unix seconds. */
        Invoice: {
            invoiceId: string;
            number: string;
            status: components["schemas"]["InvoiceStatusEnum"];
            currency: string;
            /** @description With tax. */
            total: number;
            /** @description What of it is tax. */
            tax: number;
            /** @description What is left to pay. */
            open: number;
            /** Format: int64 */
            createdAt: number;
            /** @description Stripe's page of it, where an open one can be paid. */
            pageUrl: string;
            pdfUrl: string;
        };
        /**
         * @description * `open` - open
         *     * `paid` - paid
         *     * `uncollectible` - uncollectible
         *     * `void` - void
         * @enum {string}
         */
        InvoiceStatusEnum: "open" | "paid" | "uncollectible" | "void";
        /** @description A page of invoices, newest first. */
        Invoices: {
            /**
             * Format: uri
             * @description Address of the page of older ones; null on the last one.
             */
            next: string | null;
            results: components["schemas"]["Invoice"][];
        };
        /** @description An item of a drop table. Values are decimal text, because they are compared to the digit. */
        Item: {
            type: components["schemas"]["TypeEnum"];
            weight: number;
            valueMin: string;
            valueMax: string;
            effectiveTimeInMinutes?: number;
        };
        KeyResponse: {
            /** @description Always `EC`. */
            kty: string;
            /** @description Always `P-256`. */
            crv: string;
            x: string;
            y: string;
            /** @description What the header of a token names; RFC 7638 thumbprint. */
            kid: string;
            /** @description Always `sig`. */
            use: string;
            /** @description Always `ES256`. */
            alg: string;
        };
        KeySetResponse: {
            keys: components["schemas"]["KeyResponse"][];
        };
        /**
         * @description * `PUSH_ADS` - PUSH_ADS
         *     * `VIDEO_ADS` - VIDEO_ADS
         *     * `OFFERWALL` - OFFERWALL
         *     * `SURVEYS` - SURVEYS
         * @enum {string}
         */
        KindEnum: "PUSH_ADS" | "VIDEO_ADS" | "OFFERWALL" | "SURVEYS";
        /** @description The shape of a request's body, or of an object in it; says in JSON's words what is none. */
        LogoutRequestRequest: {
            /** @description Another session of yours to end as well. */
            refresh?: string | null;
        };
        LogoutResponse: {
            /** @description Always true. */
            signedOut: boolean;
        };
        /** @description The body of execute as LSP-15 wallets send it. */
        Lsp15ExecuteRequest: {
            /** @description The profile whose key manager executes the call. */
            address: string;
            transaction: components["schemas"]["TransactionRequest"];
        };
        MeResponse: {
            /** @description The signed-in profile. */
            address: string;
            /** @description The key that signed in; null for external tokens. */
            controller: string | null;
            /**
             * Format: uuid
             * @description The session; null for external tokens.
             */
            sessionId: string | null;
            /**
             * Format: date-time
             * @description When it ends for good; no refresh moves it.
             */
            sessionExpiresAt: string | null;
            /**
             * Format: date-time
             * @description When this access token runs out.
             */
            accessExpiresAt: string;
            /** @description Who issued the access token. */
            issuer: string;
        };
        Modifier: {
            id: number;
            related_user: string;
            modifier_type: components["schemas"]["ModifierTypeEnum"];
            /**
             * Format: double
             * @description A fraction that is added to the badges'.
             */
            value: number;
            /** Format: date-time */
            expires_at: string;
            /** Format: date-time */
            created_at: string;
        };
        /**
         * @description * `BONUS_PUSH_ADS_CREDITS` - Bonus Push Ads Credits
         *     * `BONUS_VIDEO_ADS_CREDITS` - Bonus Video Ads Credits
         *     * `BONUS_OFFERWALL_CREDITS` - Bonus Offerwall Credits
         *     * `BONUS_SURVEYS_CREDITS` - Bonus Surveys Credits
         *     * `BONUS_CREDITS_BACK` - Bonus Credits Back
         * @enum {string}
         */
        ModifierTypeEnum: "BONUS_PUSH_ADS_CREDITS" | "BONUS_VIDEO_ADS_CREDITS" | "BONUS_OFFERWALL_CREDITS" | "BONUS_SURVEYS_CREDITS" | "BONUS_CREDITS_BACK";
        /**
         * @description * `nothing` - nothing
         *     * `subscribe` - subscribe
         *     * `capture-card` - capture-card
         *     * `confirm` - confirm
         *     * `pay` - pay
         * @enum {string}
         */
        NextStepEnum: "nothing" | "subscribe" | "capture-card" | "confirm" | "pay";
        /** @description The shape of a request's body, or of an object in it; says in JSON's words what is none. */
        NonceRequestRequest: {
            /** @description The Universal Profile that signs in, in any casing. */
            address: string;
        };
        NonceResponse: {
            /** @description Names the challenge; send it back with the signature. */
            nonce: string;
            /** @description The EIP-4361 text to sign, byte for byte. */
            message: string;
            /**
             * Format: date-time
             * @description Until when the signature is taken.
             */
            expiresAt: string;
        };
        NullEnum: null;
        PaginatedDatedEarningList: {
            /**
             * Format: uri
             * @description Address of the page of older rows; null on the last one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description Address of the page of newer rows, or null.
             */
            previous: string | null;
            results: components["schemas"]["DatedEarning"][];
        };
        PaginatedDatedTransactionList: {
            /**
             * Format: uri
             * @description Address of the page of older rows; null on the last one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description Address of the page of newer rows, or null.
             */
            previous: string | null;
            results: components["schemas"]["DatedTransaction"][];
        };
        PaginatedProofList: {
            /**
             * Format: uri
             * @description Address of the page of older rows; null on the last one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description Address of the page of newer rows, or null.
             */
            previous: string | null;
            results: components["schemas"]["Proof"][];
        };
        PaginatedRootList: {
            /**
             * Format: uri
             * @description Address of the page of older rows; null on the last one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description Address of the page of newer rows, or null.
             */
            previous: string | null;
            results: components["schemas"]["Root"][];
            /** @description JSON Web Keys (RFC 7517); a root names one by its `keyId`. */
            keys: {
                [key: string]: string;
            }[];
        };
        /** @description The body of prepare. */
        PrepareRequest: {
            transaction: components["schemas"]["CallRequest"];
            /** @description Below 2^128. Calls of one channel are executed one after the other. Without it: 0. */
            channel?: number | string | null;
            /** @description start << 128 | end, in unix seconds; 0 for always. Without it: 0. */
            validityTimestamps?: number | string | null;
            /** @description Who will sign; by default the controller who signed in. */
            controller?: string | null;
            /** @description The profile; if sent, it must be the signed-in one. */
            address?: string | null;
            /** @description Whether a quote is wanted. Without it: true. */
            quote?: boolean | null;
        };
        /** @description A relay call that lacks nothing but its signature, and what it would come to. */
        Prepared: {
            /** @description The key manager that controls the profile. */
            keyManagerAddress: string;
            /** @description Add `signature` and send it to execute. */
            transaction: components["schemas"]["UnsignedTransaction"];
            /** @description Who is to sign. */
            controller: string;
            /** @description What to sign, as it is: LSP-25 adds no further prefix. */
            hash: string;
            /** @description The chain that the hash is for. */
            chainId: number;
            /** @description The gas that the service would allow; null where the call reverts. */
            gasLimit: number | null;
            /** @description Credits that it costs at the current price; null where that is unknown. */
            expectedCost: number | null;
            /** @description Credits that would be held for it now; null where that is unknown. */
            highestCost: number | null;
            /** @description Why execute would refuse the call now; empty where it would accept it. */
            refusals: components["schemas"]["Problem"][];
            /** @description Null where none was wanted or can be given. */
            quote: components["schemas"]["Quote"] | null;
            /** @description Why there is no quote for a call that execute would accept. */
            quoteRefusal: components["schemas"]["Problem"] | null;
        };
        /** @description An RFC 9457 problem document. Some codes add further members, which their own page describes. */
        Problem: {
            /** @description Address of the page that describes the code. */
            type: string;
            /** @description What is refused, the same for every occurrence. */
            title: string;
            /** @description The HTTP status. */
            status: number;
            /** @description Stable name of the refusal; decide by this. */
            code: string;
            /** @description This occurrence, for a person. */
            detail: string;
            /** @description What to tell support; also in X-Request-ID. */
            requestId: string | null;
        };
        ProfileResponse: {
            /** @description At most 80 letters that anybody may have chosen; empty for none. */
            name: string;
            /** @description A `data:` address of a PNG, JPEG, GIF or WebP, at most 256 KiB; null for none. */
            picture: string | null;
        };
        Proof: {
            entry: number;
            /** @description The entry as it was hashed, JSON; null until a root is closed over it. */
            leaf: string | null;
            /** @description Hashes of the siblings from the leaf to the root, each by the side on which it stands. */
            readonly path: {
                left?: string;
                right?: string;
            }[];
            root: components["schemas"]["Root"] | null;
            /** @description `profile` and `reason` with their salts. SHA-256 of salt and text is what the leaf has of them. */
            readonly disclosed: {
                profile?: {
                    salt: string;
                    text: string;
                };
                reason?: {
                    salt: string;
                    text: string;
                };
            } | null;
        };
        /** @description What is left, and until when. */
        Quota: {
            /** @description Available credits; negative when in debt. */
            quota: number;
            /** @description `credits`; on the LSP-15 path `gas`. */
            unit: string;
            /** @description Credits paid out for the running period; 0 without one. */
            totalQuota: number;
            /** @description End of the period in unix seconds; -1 without one. */
            resetDate: number;
        };
        /** @description The body of quota. */
        QuotaRequestRequest: {
            /** @description The signed-in profile. */
            address: string;
            /**
             * Format: int64
             * @description Unix seconds, within 5 s of the service's clock.
             */
            timestamp: number;
            /** @description A controller with SIGN signs address and timestamp. */
            signature: string;
        };
        /** @description What the call costs at most, if it is sent with the header `Relay-Quote` in time. */
        Quote: {
            /**
             * Format: uuid
             * @description The value of the header `Relay-Quote` of execute.
             */
            id: string;
            /** @description Credits that the call costs at most, whatever gas comes to cost. */
            cost: number;
            /** @description Until when it is to be sent, in unix seconds. */
            expiresAt: number;
        };
        /** @description Where Stripe sends receipts. */
        ReceiptEmail: {
            /**
             * Format: email
             * @description Null for nowhere; the address is forgotten then.
             */
            email: string | null;
        };
        /** @description Where Stripe sends receipts. */
        ReceiptEmailRequest: {
            /**
             * Format: email
             * @description Null for nowhere; the address is forgotten then.
             */
            email: string | null;
        };
        /** @description The shape of a request's body, or of an object in it; says in JSON's words what is none. */
        RefreshRequestRequest: {
            /** @description The newest refresh token of the session. */
            refresh: string;
        };
        /** @description A promise that was kept: the seed in hex. */
        RevealedSeed: {
            /** Format: date */
            day: string;
            commitment: string;
            seed: string;
        };
        /** @description A root; each one names the hash of the one before it. */
        Root: {
            /** @description What is signed: JSON with `closedAt`, `entries`, `lastEntry`, `previous`, `root` and `tree`. */
            text: string;
            /** @description ES256 over the UTF-8 bytes of `text`: r and s in hex. */
            signature: string;
            /** @description The `kid` of the key. */
            keyId: string;
        };
        ServiceResponse: {
            /** @description The chain that is relayed to. */
            chainId: number;
            /** @description What gas is paid in there. */
            currency: string;
            /** @description Wei of gas that one credit pays for, as text. */
            creditWei: string;
            /** @description A block explorer; empty where there is none. */
            explorerUrl: string;
            /**
             * Format: uri
             * @description Where a wallet that speaks LSP-15 finds `/execute` and `/quota`.
             */
            relayerUrl: string;
            /** @description What subscriptions may be paid in. */
            billingCurrencies: string[];
        };
        SessionResponse: {
            /** Format: uuid */
            sessionId: string;
            /** @description The key that signed in. */
            controller: string;
            /** Format: date-time */
            signedInAt: string;
            /**
             * Format: date-time
             * @description When it last got new tokens.
             */
            refreshedAt: string;
            /**
             * Format: date-time
             * @description When it ends for good.
             */
            expiresAt: string;
            /** @description Whether the access token is of this session. */
            readonly isCurrent: boolean;
        };
        SessionsEndedResponse: {
            /** @description How many ended by this request, its own among them. */
            sessionsEnded: number;
        };
        SessionsResponse: {
            /** @description The one used last first. */
            sessions: components["schemas"]["SessionResponse"][];
        };
        /** @description What the wallet captures a card with. */
        SetupIntent: {
            clientSecret: string;
        };
        /**
         * @description * `Pending` - Pending
         *     * `Submitted` - Submitted
         *     * `Success` - Success
         *     * `Failed` - Failed
         *     * `Expired` - Expired
         *     * `Cancelled` - Cancelled
         *     * `ExecutedExternally` - Executed Externally
         * @enum {string}
         */
        StatusEnum: "Pending" | "Submitted" | "Success" | "Failed" | "Expired" | "Cancelled" | "ExecutedExternally";
        /** @description The subscription that runs. */
        Subscription: {
            subscriptionId: string;
            /** @description The customer's id. */
            subscriptionFor: string;
            /** @description Monthly amount as text, such as $25.50. */
            subscriptionAmount: string;
        };
        /** @description How the subscription stands. Amounts are in minor units, times in unix seconds. */
        SubscriptionReport: {
            subscriptionId: string;
            /**
             * @description Stripe's word for it.
             *
             *     * `incomplete` - Incomplete
             *     * `incomplete_expired` - Incomplete Expired
             *     * `trialing` - Trialing
             *     * `active` - Active
             *     * `past_due` - Past Due
             *     * `canceled` - Canceled
             *     * `unpaid` - Unpaid
             *     * `paused` - Paused
             */
            status: components["schemas"]["SubscriptionStatusEnum"];
            currency: string;
            /** @description What the running period has cost; null while it is unpaid. */
            paidCost: number | null;
            /** @description What the next period will cost; null where there is none. */
            nextCost: number | null;
            /**
             * Format: int64
             * @description From when `nextCost` is charged.
             */
            currentPeriodEnd: number;
            cancelAtEndOfBillingPeriod: boolean;
            /** @description What waits to be paid; 0 for nothing. */
            openCost: number;
            /** @description Confirms what is open, by Stripe's library; else empty. */
            clientSecret: string;
            /** @description Why the card was declined last; else empty. */
            declineCode: string;
            /**
             * @description `nothing`; `confirm` with `clientSecret`; `capture-card` by a setup intent, then upsertSubscription; `pay` by upsertSubscription; `subscribe` anew.
             *
             *     * `nothing` - nothing
             *     * `subscribe` - subscribe
             *     * `capture-card` - capture-card
             *     * `confirm` - confirm
             *     * `pay` - pay
             */
            nextStep: components["schemas"]["NextStepEnum"];
        };
        /**
         * @description * `incomplete` - Incomplete
         *     * `incomplete_expired` - Incomplete Expired
         *     * `trialing` - Trialing
         *     * `active` - Active
         *     * `past_due` - Past Due
         *     * `canceled` - Canceled
         *     * `unpaid` - Unpaid
         *     * `paused` - Paused
         * @enum {string}
         */
        SubscriptionStatusEnum: "incomplete" | "incomplete_expired" | "trialing" | "active" | "past_due" | "canceled" | "unpaid" | "paused";
        /** @description A drop table that draws were made from. */
        Table: {
            id: number;
            version: number;
            items: components["schemas"]["Item"][];
        };
        TokenPairResponse: {
            /** @description For the header `Authorization: Bearer <JWT>`. */
            access: string;
            /** @description For one exchange at `/api/auth/refresh`. */
            refresh: string;
            /** @description Seconds that `access` is good for. */
            expiresIn: number;
            /** @description The signed-in profile. */
            address: string;
        };
        /** @description A relay transaction; until it is settled the balances are expected ones. */
        Transaction: {
            transaction_hash: string;
            related_user: string;
            expected_cost: number;
            /** @description 0 until settled. */
            real_cost: number;
            readonly credits_before: number;
            readonly credits_after: number;
            status: components["schemas"]["StatusEnum"];
        };
        /** @description A transaction's hash, as answered by execute. */
        TransactionHash: {
            transactionHash: string;
        };
        /** @description A transaction's hash, as answered by execute. */
        TransactionHashRequest: {
            transactionHash: string;
        };
        /** @description The signed LSP-25 relay call. */
        TransactionRequest: {
            /** @description Encoded call for the profile, such as setData or execute. */
            abi: string;
            /** @description The controller's signature over the LSP-25 hash. */
            signature: string;
            /** @description The controller's nonce from the key manager's getNonce: channel << 128 | sequence. */
            nonce: number | string;
            /** @description start << 128 | end, in unix seconds; 0 for always. Without it: 0. */
            validityTimestamps?: number | string | null;
        };
        /** @description The status record of a relay transaction. */
        TransactionStatus: {
            status: components["schemas"]["StatusEnum"];
            /** @description The profile that acted. */
            transactionSenderAddress: string;
            /** @description The expected cost while in progress, then the real one. */
            creditsUsed: number;
            /** @description The balance; while in progress, of when it was accepted. */
            creditsBefore: number;
            /** @description creditsBefore less creditsUsed. */
            creditsAfter: number;
        };
        /**
         * @description * `EXPERIENCE` - Experience
         *     * `CREDITS` - Credits
         *     * `BONUS_PUSH_ADS_CREDITS` - Bonus Push Ads Credits
         *     * `BONUS_VIDEO_ADS_CREDITS` - Bonus Video Ads Credits
         *     * `BONUS_OFFERWALL_CREDITS` - Bonus Offerwall Credits
         *     * `BONUS_SURVEYS_CREDITS` - Bonus Surveys Credits
         *     * `BONUS_CREDITS_BACK` - Bonus Credits Back
         * @enum {string}
         */
        TypeEnum: "EXPERIENCE" | "CREDITS" | "BONUS_PUSH_ADS_CREDITS" | "BONUS_VIDEO_ADS_CREDITS" | "BONUS_OFFERWALL_CREDITS" | "BONUS_SURVEYS_CREDITS" | "BONUS_CREDITS_BACK";
        /** @description The `transaction` of execute, without its signature. */
        UnsignedTransaction: {
            /** @description The encoded call for the profile. */
            abi: string;
            /** @description The next nonce of the channel, behind the calls in progress here. */
            nonce: number | string;
            /** @description As it was sent; 0 for always. */
            validityTimestamps: number | string;
        };
        /** @description The subscription that is asked for. */
        UpsertRequest: {
            /**
             * Format: int64
             * @description Monthly amount in minor units: 25.50 is 2550.
             */
            subscriptionCost: number;
            /** @description ISO code, such as usd or eur. Without it: "usd". */
            currency?: string | null;
            /** @description True ends the subscription after the running period; false lets it go on. Without it: false. */
            cancelAtEndOfBillingPeriod?: boolean | null;
        };
        UserInfo: {
            /** @description Available credits; negative when in debt. */
            credits: number;
            /**
             * Format: double
             * @description Monthly amount in major units; 0 while `isSubscriber` is false.
             */
            subscriptionAmount: number;
            permanentExp: number;
            subscriptionExp: number;
            /**
             * Format: double
             * @description 0 to 1, how much of the badge's range is done; 1 at the top badge.
             */
            percentToNextPermanentBadge: number;
            /**
             * Format: double
             * @description The same for the subscriber badge. It never exceeds 1, also where a user without a running period is shown the lowest badge and has more experience than that needs.
             */
            percentToNextSubscriberBadge: number;
            isSubscriber: boolean;
            /** @description An attempt is left today, check-ins are not paused, and something may drop. */
            canCheckIn: boolean;
        };
        /** @description The shape of a request's body, or of an object in it; says in JSON's words what is none. */
        VerifyRequestRequest: {
            /** @description The `nonce` of the challenge. */
            nonce: string;
            /** @description `personal_sign` of the message by a controller: 65 bytes. */
            signature: string;
            /** @description The profile; where it is sent, it must be the challenge's. */
            address?: string | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type AccountResponse = components['schemas']['AccountResponse'];
export type AdNetwork = components['schemas']['AdNetwork'];
export type AdNetworks = components['schemas']['AdNetworks'];
export type Badge = components['schemas']['Badge'];
export type CallRequest = components['schemas']['CallRequest'];
export type CancelRequest = components['schemas']['CancelRequest'];
export type Cancellation = components['schemas']['Cancellation'];
export type CheckInDropsLimitedByEnum = components['schemas']['CheckInDropsLimitedByEnum'];
export type CheckInResult = components['schemas']['CheckInResult'];
export type Commitment = components['schemas']['Commitment'];
export type CreditSourceEnum = components['schemas']['CreditSourceEnum'];
export type Customer = components['schemas']['Customer'];
export type Dashboard = components['schemas']['Dashboard'];
export type DatedEarning = components['schemas']['DatedEarning'];
export type DatedTransaction = components['schemas']['DatedTransaction'];
export type DeletionResponse = components['schemas']['DeletionResponse'];
export type DeletionResponseStatusEnum = components['schemas']['DeletionResponseStatusEnum'];
export type Draw = components['schemas']['Draw'];
export type Drop = components['schemas']['Drop'];
export type DropRanges = components['schemas']['DropRanges'];
export type Earning = components['schemas']['Earning'];
export type ExecuteRequest = components['schemas']['ExecuteRequest'];
export type Fairness = components['schemas']['Fairness'];
export type HostedPageAnswer = components['schemas']['HostedPageAnswer'];
export type HostedPageRequest = components['schemas']['HostedPageRequest'];
export type Invoice = components['schemas']['Invoice'];
export type InvoiceStatusEnum = components['schemas']['InvoiceStatusEnum'];
export type Invoices = components['schemas']['Invoices'];
export type Item = components['schemas']['Item'];
export type KeyResponse = components['schemas']['KeyResponse'];
export type KeySetResponse = components['schemas']['KeySetResponse'];
export type KindEnum = components['schemas']['KindEnum'];
export type LogoutRequestRequest = components['schemas']['LogoutRequestRequest'];
export type LogoutResponse = components['schemas']['LogoutResponse'];
export type Lsp15ExecuteRequest = components['schemas']['Lsp15ExecuteRequest'];
export type MeResponse = components['schemas']['MeResponse'];
export type Modifier = components['schemas']['Modifier'];
export type ModifierTypeEnum = components['schemas']['ModifierTypeEnum'];
export type NextStepEnum = components['schemas']['NextStepEnum'];
export type NonceRequestRequest = components['schemas']['NonceRequestRequest'];
export type NonceResponse = components['schemas']['NonceResponse'];
export type NullEnum = components['schemas']['NullEnum'];
export type PaginatedDatedEarningList = components['schemas']['PaginatedDatedEarningList'];
export type PaginatedDatedTransactionList = components['schemas']['PaginatedDatedTransactionList'];
export type PaginatedProofList = components['schemas']['PaginatedProofList'];
export type PaginatedRootList = components['schemas']['PaginatedRootList'];
export type PrepareRequest = components['schemas']['PrepareRequest'];
export type Prepared = components['schemas']['Prepared'];
export type Problem = components['schemas']['Problem'];
export type ProfileResponse = components['schemas']['ProfileResponse'];
export type Proof = components['schemas']['Proof'];
export type Quota = components['schemas']['Quota'];
export type QuotaRequestRequest = components['schemas']['QuotaRequestRequest'];
export type Quote = components['schemas']['Quote'];
export type ReceiptEmail = components['schemas']['ReceiptEmail'];
export type ReceiptEmailRequest = components['schemas']['ReceiptEmailRequest'];
export type RefreshRequestRequest = components['schemas']['RefreshRequestRequest'];
export type RevealedSeed = components['schemas']['RevealedSeed'];
export type Root = components['schemas']['Root'];
export type ServiceResponse = components['schemas']['ServiceResponse'];
export type SessionResponse = components['schemas']['SessionResponse'];
export type SessionsEndedResponse = components['schemas']['SessionsEndedResponse'];
export type SessionsResponse = components['schemas']['SessionsResponse'];
export type SetupIntent = components['schemas']['SetupIntent'];
export type StatusEnum = components['schemas']['StatusEnum'];
export type Subscription = components['schemas']['Subscription'];
export type SubscriptionReport = components['schemas']['SubscriptionReport'];
export type SubscriptionStatusEnum = components['schemas']['SubscriptionStatusEnum'];
export type Table = components['schemas']['Table'];
export type TokenPairResponse = components['schemas']['TokenPairResponse'];
export type Transaction = components['schemas']['Transaction'];
export type TransactionHash = components['schemas']['TransactionHash'];
export type TransactionHashRequest = components['schemas']['TransactionHashRequest'];
export type TransactionRequest = components['schemas']['TransactionRequest'];
export type TransactionStatus = components['schemas']['TransactionStatus'];
export type TypeEnum = components['schemas']['TypeEnum'];
export type UnsignedTransaction = components['schemas']['UnsignedTransaction'];
export type UpsertRequest = components['schemas']['UpsertRequest'];
export type UserInfo = components['schemas']['UserInfo'];
export type VerifyRequestRequest = components['schemas']['VerifyRequestRequest'];
export type $defs = Record<string, never>;
export interface operations {
    jwks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeySetResponse"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ledgerRoots: {
        parameters: {
            query?: {
                /** @description Stands in `next` and `previous`. */
                cursor?: string;
                /** @description Rows of a page. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaginatedRootList"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    authLogout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["LogoutRequestRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogoutResponse"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    authMe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MeResponse"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    authNonce: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NonceRequestRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NonceResponse"];
                };
            };
            /**
             * @description - `address-checksum`: The address is mistyped.
             *     - `invalid-request`: The request is not valid.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `https-required`: Only https is served.
             *     - `untrusted-code`: The contract code is not trusted here.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `profile-not-deployed`: The profile is not deployed. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    authRefresh: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RefreshRequestRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenPairResponse"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `account-inactive`: The account is closed.
             *     - `controller-revoked`: The controller may no longer sign.
             *     - `refresh-token-reused`: The refresh token was used before.
             *     - `refresh-token-unknown`: The refresh token is not known.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `chain-unavailable`: The chain cannot be reached.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    authSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionsResponse"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    authLogoutEverywhere: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionsEndedResponse"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    authVerify: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["VerifyRequestRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenPairResponse"];
                };
            };
            /**
             * @description - `address-checksum`: The address is mistyped.
             *     - `invalid-request`: The request is not valid.
             *     - `signature-malformed`: The signature is malformed.
             *     - `signature-other-chain`: The signature is for another chain.
             *     - `signature-unrecoverable`: The signature belongs to no key.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `nonce-expired`: The nonce has expired.
             *     - `nonce-foreign`: The nonce belongs to another message.
             *     - `nonce-unknown`: The nonce is not known.
             *     - `nonce-used`: The nonce was used before.
             *     - `signature-not-by-controller`: The signature is not a controller's.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `https-required`: Only https is served.
             *     - `sign-permission-missing`: The controller may not sign.
             *     - `untrusted-code`: The contract code is not trusted here.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `profile-not-deployed`: The profile is not deployed. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `chain-unavailable`: The chain cannot be reached.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    ledgerProofs: {
        parameters: {
            query?: {
                /** @description Stands in `next` and `previous`. */
                cursor?: string;
                /** @description Rows of a page. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaginatedProofList"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    lsp15Execute: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Lsp15ExecuteRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionHash"];
                };
            };
            /**
             * @description - `address-checksum`: The address is mistyped.
             *     - `invalid-request`: The request is not valid.
             *     - `signature-abi-encoded`: The message was encoded with abi.encode.
             *     - `signature-channel-missing`: The nonce was signed without its channel.
             *     - `signature-legacy-0-10`: The call was signed with version 6.
             *     - `signature-legacy-0-7`: The call was signed in the form of 2022.
             *     - `signature-legacy-0-9`: The call was signed with version 6 and without validity.
             *     - `signature-malformed`: The signature is malformed.
             *     - `signature-other-chain`: The signature is for another chain.
             *     - `signature-other-nonce`: The call was signed with another nonce.
             *     - `signature-payload-only`: Only the payload was signed.
             *     - `signature-personal-sign-digest`: The LSP-25 hash was signed as a personal message.
             *     - `signature-personal-sign-message`: The inner message was signed as a personal message.
             *     - `signature-personal-sign-text`: The hash was signed as text.
             *     - `signature-prefix-missing`: The EIP-191 prefix is missing.
             *     - `signature-profile-as-validator`: The profile was used as the validator.
             *     - `signature-unrecoverable`: The signature belongs to no key.
             *     - `signature-validity-missing`: The validity timestamps were not signed.
             *     - `signature-value-not-zero`: The call was signed with a value.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `insufficient-credits`: Not enough credits. */
            402: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `https-required`: Only https is served.
             *     - `key-manager-not-owner`: The profile is not owned by this key manager.
             *     - `key-manager-of-another-profile`: The key manager controls another profile.
             *     - `relay-permission-missing`: The controller may not use relayers.
             *     - `signer-not-a-controller`: The signer is no controller of the profile.
             *     - `untrusted-code`: The contract code is not trusted here.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `profile-not-registered`: The profile is not registered. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `call-failed-before`: The call has failed before.
             *     - `relay-nonce-gap`: A preceding nonce is missing.
             *     - `relay-nonce-taken`: Another call holds this nonce.
             *     - `relay-nonce-used`: The nonce is used up.
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `call-not-allowed`: The controller may not make this call.
             *     - `controller-without-permissions`: The controller has no permissions on the profile.
             *     - `data-key-not-allowed`: The controller may not set this data key.
             *     - `delegate-call-not-allowed`: Delegate calls cannot be relayed.
             *     - `gas-limit-exceeded`: The call needs too much gas.
             *     - `key-manager-call-not-allowed`: A profile may not call its key manager.
             *     - `key-manager-not-found`: No key manager at this address.
             *     - `no-calls-allowed`: The controller has no allowed calls.
             *     - `no-data-keys-allowed`: The controller has no allowed data keys.
             *     - `not-authorised`: The controller lacks a permission.
             *     - `payload-function-not-supported`: The payload's function cannot be relayed.
             *     - `payload-malformed`: The payload is malformed.
             *     - `profile-balance-too-low`: The profile has too little LYX.
             *     - `profile-refused`: The profile refuses the call.
             *     - `relay-call-expired`: The relay call has expired.
             *     - `relay-call-not-yet-valid`: The relay call is not valid yet.
             *     - `relay-nonce-refused`: The relay nonce is not the next one.
             *     - `target-reverted`: The called contract reverts.
             *     - `validity-too-short`: The call would expire before it is mined.
             */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `too-many-cancelled-calls`: Too many calls ended without effect.
             *     - `too-many-requests`: Too many requests.
             */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `chain-unavailable`: The chain cannot be reached.
             *     - `channel-busy`: The channel is full.
             *     - `fees-too-high`: The chain is too expensive right now.
             *     - `relay-paused`: The relay is paused.
             *     - `relay-share-used`: Too many of your calls wait to be mined.
             *     - `relayers-busy`: All relayers are busy.
             *     - `service-unavailable`: Temporarily unavailable.
             *     - `signer-unavailable`: The call cannot be signed now.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    lsp15Quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QuotaRequestRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Quota"];
                };
            };
            /**
             * @description - `address-checksum`: The address is mistyped.
             *     - `invalid-request`: The request is not valid.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `quota-signature-invalid`: The signature is not a controller's.
             *     - `timestamp-out-of-window`: The timestamp is too far from now.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `https-required`: Only https is served.
             *     - `sign-permission-missing`: The controller may not sign.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `profile-not-registered`: The profile is not registered. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `chain-unavailable`: The chain cannot be reached.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    cancelSubscription: {
        parameters: {
            query?: {
                /** @description Instead of the body, where a proxy drops it; both must agree. */
                cancelImmediately?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Cancellation"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `no-subscription`: There is no subscription. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-in-progress`: Another change is under way. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createCardPage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostedPageRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostedPageAnswer"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-in-progress`: Another change is under way. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createCustomer: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Customer"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-in-progress`: Another change is under way. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getSetupIntent: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SetupIntent"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-in-progress`: Another change is under way. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getInvoices: {
        parameters: {
            query?: {
                /** @description Stands in `next`: the invoice before the page. */
                after?: string;
                /** @description Rows of a page. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invoices"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    createPortalPage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["HostedPageRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostedPageAnswer"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-in-progress`: Another change is under way. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getReceiptEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptEmail"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    setReceiptEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReceiptEmailRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptEmail"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-in-progress`: Another change is under way. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    getSubscription: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscriptionReport"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `no-subscription`: There is no subscription. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    upsertSubscription: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpsertRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Subscription"];
                };
            };
            /**
             * @description - `amount-too-large`: The amount is too large.
             *     - `amount-too-small`: The amount is too small.
             *     - `currency-not-supported`: The currency is not supported.
             *     - `invalid-request`: The request is not valid.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `authentication-required`: The card holder must confirm.
             *     - `card-declined`: The card was declined.
             *     - `payment-method-required`: A card is needed first.
             */
            402: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-in-progress`: Another change is under way.
             *     - `currency-fixed`: The currency cannot change now.
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `billing-refused`: The payment provider refuses. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `billing-unavailable`: The payment provider is away.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    postback: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                network: string;
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Handled, now or before. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused for good; some networks are told so by 403. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused for good. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `not-found`: Not found. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `method-not-allowed`: Method not allowed. */
            405: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Cannot be judged now; send it again. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    postbackByPost: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                network: string;
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Handled, now or before. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused for good; some networks are told so by 403. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description Refused for good. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `not-found`: Not found. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `method-not-allowed`: Method not allowed. */
            405: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description Cannot be judged now; send it again. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    execute: {
        parameters: {
            query?: never;
            header?: {
                /** @description The `id` of a quote that prepare gave for this call: the call then costs no more than that. */
                "Relay-Quote"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExecuteRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionHash"];
                };
            };
            /**
             * @description - `address-checksum`: The address is mistyped.
             *     - `invalid-request`: The request is not valid.
             *     - `signature-abi-encoded`: The message was encoded with abi.encode.
             *     - `signature-channel-missing`: The nonce was signed without its channel.
             *     - `signature-legacy-0-10`: The call was signed with version 6.
             *     - `signature-legacy-0-7`: The call was signed in the form of 2022.
             *     - `signature-legacy-0-9`: The call was signed with version 6 and without validity.
             *     - `signature-malformed`: The signature is malformed.
             *     - `signature-other-chain`: The signature is for another chain.
             *     - `signature-other-nonce`: The call was signed with another nonce.
             *     - `signature-payload-only`: Only the payload was signed.
             *     - `signature-personal-sign-digest`: The LSP-25 hash was signed as a personal message.
             *     - `signature-personal-sign-message`: The inner message was signed as a personal message.
             *     - `signature-personal-sign-text`: The hash was signed as text.
             *     - `signature-prefix-missing`: The EIP-191 prefix is missing.
             *     - `signature-profile-as-validator`: The profile was used as the validator.
             *     - `signature-unrecoverable`: The signature belongs to no key.
             *     - `signature-validity-missing`: The validity timestamps were not signed.
             *     - `signature-value-not-zero`: The call was signed with a value.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `insufficient-credits`: Not enough credits. */
            402: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `https-required`: Only https is served.
             *     - `key-manager-not-owner`: The profile is not owned by this key manager.
             *     - `key-manager-of-another-profile`: The key manager controls another profile.
             *     - `not-your-profile`: This is another profile.
             *     - `relay-permission-missing`: The controller may not use relayers.
             *     - `signer-not-a-controller`: The signer is no controller of the profile.
             *     - `untrusted-code`: The contract code is not trusted here.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `quote-expired`: The quote has expired.
             *     - `quote-for-other-call`: The quote is for another call.
             *     - `quote-not-found`: No such quote.
             *     - `quote-outdated`: The call needs more gas than quoted.
             *     - `quote-used`: The quote is used up.
             *     - `relay-nonce-gap`: A preceding nonce is missing.
             *     - `relay-nonce-taken`: Another call holds this nonce.
             *     - `relay-nonce-used`: The nonce is used up.
             */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `call-not-allowed`: The controller may not make this call.
             *     - `controller-without-permissions`: The controller has no permissions on the profile.
             *     - `data-key-not-allowed`: The controller may not set this data key.
             *     - `delegate-call-not-allowed`: Delegate calls cannot be relayed.
             *     - `gas-limit-exceeded`: The call needs too much gas.
             *     - `key-manager-call-not-allowed`: A profile may not call its key manager.
             *     - `key-manager-not-found`: No key manager at this address.
             *     - `no-calls-allowed`: The controller has no allowed calls.
             *     - `no-data-keys-allowed`: The controller has no allowed data keys.
             *     - `not-authorised`: The controller lacks a permission.
             *     - `payload-function-not-supported`: The payload's function cannot be relayed.
             *     - `payload-malformed`: The payload is malformed.
             *     - `profile-balance-too-low`: The profile has too little LYX.
             *     - `profile-refused`: The profile refuses the call.
             *     - `relay-call-expired`: The relay call has expired.
             *     - `relay-call-not-yet-valid`: The relay call is not valid yet.
             *     - `relay-nonce-refused`: The relay nonce is not the next one.
             *     - `target-reverted`: The called contract reverts.
             *     - `validity-too-short`: The call would expire before it is mined.
             */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `too-many-cancelled-calls`: Too many calls ended without effect.
             *     - `too-many-requests`: Too many requests.
             */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `chain-unavailable`: The chain cannot be reached.
             *     - `channel-busy`: The channel is full.
             *     - `fees-too-high`: The chain is too expensive right now.
             *     - `relay-paused`: The relay is paused.
             *     - `relay-share-used`: Too many of your calls wait to be mined.
             *     - `relayers-busy`: All relayers are busy.
             *     - `service-unavailable`: Temporarily unavailable.
             *     - `signer-unavailable`: The call cannot be signed now.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    prepare: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PrepareRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Prepared"];
                };
            };
            /**
             * @description - `address-checksum`: The address is mistyped.
             *     - `invalid-request`: The request is not valid.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `https-required`: Only https is served.
             *     - `not-your-profile`: This is another profile.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `key-manager-not-found`: No key manager at this address. */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `chain-unavailable`: The chain cannot be reached.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    quota: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QuotaRequestRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Quota"];
                };
            };
            /**
             * @description - `address-checksum`: The address is mistyped.
             *     - `invalid-request`: The request is not valid.
             */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `quota-signature-invalid`: The signature is not a controller's.
             *     - `session-ended`: The session has ended.
             *     - `timestamp-out-of-window`: The timestamp is too far from now.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `https-required`: Only https is served.
             *     - `not-your-profile`: This is another profile.
             *     - `sign-permission-missing`: The controller may not sign.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `chain-unavailable`: The chain cannot be reached.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    transactionStatus: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TransactionHashRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionStatus"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `transaction-not-found`: No such transaction. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    transaction: {
        parameters: {
            query?: {
                /** @description Seconds to wait for another status; the service waits at most 20. */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description Any hash of the transaction, as answered by execute. */
                transaction_hash: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionStatus"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `transaction-not-found`: No such transaction. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    service: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServiceResponse"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    account: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccountResponse"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    deleteAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletionResponse"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `fresh-sign-in-required`: Sign in again for this.
             *     - `https-required`: Only https is served.
             */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    adNetworks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdNetworks"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    checkInDrops: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DropRanges"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    checkInFairness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Fairness"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    dashboardInfo: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Dashboard"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    earnings: {
        parameters: {
            query?: {
                /** @description Stands in `next` and `previous`. */
                cursor?: string;
                /** @description Rows of a page. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaginatedDatedEarningList"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    executeCheckIn: {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters, new for every attempt; a repeat answers the same draw. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckInResult"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `check-in-unavailable`: No check-in is left today. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `check-ins-not-ready`: Check-ins are not ready.
             *     - `check-ins-paused`: Check-ins are paused.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    executeCheckInByPost: {
        parameters: {
            query?: never;
            header?: {
                /** @description 1 to 128 visible ASCII characters, new for every attempt; a repeat answers the same draw. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckInResult"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `check-in-unavailable`: No check-in is left today. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `length-required`: Tell the body's length. */
            411: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `request-too-large`: The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `unsupported-media-type`: Send JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `check-ins-not-ready`: Check-ins are not ready.
             *     - `check-ins-paused`: Check-ins are paused.
             *     - `service-unavailable`: Temporarily unavailable.
             */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    profile: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProfileResponse"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
    transactions: {
        parameters: {
            query?: {
                /** @description Stands in `next` and `previous`. */
                cursor?: string;
                /** @description Rows of a page. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PaginatedDatedTransactionList"];
                };
            };
            /** @description - `invalid-request`: The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /**
             * @description - `access-token-algorithm-refused`: The token's algorithm is not accepted.
             *     - `access-token-audience-refused`: The token is for another service.
             *     - `access-token-expired`: The access token has expired.
             *     - `access-token-issuer-refused`: The token's issuer is not accepted.
             *     - `access-token-key-unknown`: The token's key is not known.
             *     - `access-token-kind-refused`: This is not an access token.
             *     - `access-token-malformed`: The access token cannot be read.
             *     - `access-token-signature-invalid`: The token's signature is wrong.
             *     - `account-deleted`: The account is being deleted.
             *     - `account-inactive`: The account is closed.
             *     - `not-authenticated`: Sign in first.
             *     - `session-ended`: The session has ended.
             */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `https-required`: Only https is served. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `too-many-requests`: Too many requests. */
            429: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `internal-error`: Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
            /** @description - `service-unavailable`: Temporarily unavailable. */
            503: {
                headers: {
                    /** @description Seconds to wait before the next attempt. */
                    "Retry-After"?: number;
                    [name: string]: unknown;
                };
                content: {
                    "application/problem+json": components["schemas"]["Problem"];
                };
            };
        };
    };
}
