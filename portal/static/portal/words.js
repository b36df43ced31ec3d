// What the codes of the API are called on the page.

export const SOURCES = {
  SUBSCRIBED_PAYOUT: "Subscription",
  PUSH_ADS: "Push ads",
  VIDEO_ADS: "Videos",
  OFFERWALL: "Offers",
  SURVEYS: "Surveys",
  CHECK_IN: "Check-in",
  CREDITS_BACK: "Cashback",
  RELAY_REVERSAL: "Transaction undone by the chain",
  EARNING_REVERSAL: "Taken back by the ad network",
  PAYOUT_CLAWBACK: "Payment refunded",
  STAFF_ADJUSTMENT: "Adjusted by support",
};

export const MODIFIERS = {
  BONUS_PUSH_ADS_CREDITS: "More credits for push ads",
  BONUS_VIDEO_ADS_CREDITS: "More credits for videos",
  BONUS_OFFERWALL_CREDITS: "More credits for offers",
  BONUS_SURVEYS_CREDITS: "More credits for surveys",
  CREDITS_BACK_PERCENT: "Cashback",
};

export const DROPS = {
  EXPERIENCE: "experience",
  CREDITS: "credits",
  ...MODIFIERS,
};

// Other codes are plain enough with spaces.
export const FAILURES = {
  reverted: "the contract refused the call",
  "predecessor-failed": "a call before it failed",
  "relay-nonce-used": "another call used its nonce first",
  "account-nonce-lost": "our relayer's nonce was used elsewhere",
  "overtaken-by-reopened-call": "the chain undid a block, and an earlier call went first",
};

export const SUBSCRIPTION_STATES = {
  incomplete: "waits for its first payment",
  incomplete_expired: "was never paid",
  trialing: "on trial",
  active: "active",
  past_due: "the last payment failed",
  unpaid: "unpaid",
  paused: "paused",
  canceled: "ended",
};

export const nameOf = (names, code) => names[code] ?? code.toLowerCase().replaceAll(/[_-]/g, " ");
