// Display names of the API's codes.

export const SOURCES = {
  SUBSCRIBED_PAYOUT: "Subscription",
  CREDIT_PURCHASE: "Bought",
  PUSH_ADS: "Push ads",
  VIDEO_ADS: "Videos",
  OFFERWALL: "Offers",
  SURVEYS: "Surveys",
  CHECK_IN: "Check-in",
  CREDITS_BACK: "Cashback",
  RELAY_REVERSAL: "Transaction reverted by a chain reorganization",
  EARNING_REVERSAL: "Reversed by the ad network",
  PAYOUT_CLAWBACK: "Payment refunded",
  STAFF_ADJUSTMENT: "Adjusted by support",
};

export const MODIFIERS = {
  BONUS_PUSH_ADS_CREDITS: "Push ad bonus",
  BONUS_VIDEO_ADS_CREDITS: "Video bonus",
  BONUS_OFFERWALL_CREDITS: "Offer bonus",
  BONUS_SURVEYS_CREDITS: "Survey bonus",
  CREDITS_BACK_PERCENT: "Cashback",
};

export const DROPS = {
  EXPERIENCE: "experience",
  CREDITS: "credits",
  ...MODIFIERS,
};

// Other codes are shown with spaces.
export const FAILURES = {
  reverted: "the contract reverted the call",
  "predecessor-failed": "an earlier call failed",
  "relay-nonce-used": "another call used its nonce first",
  "account-nonce-lost": "our relayer's nonce was used elsewhere",
  "overtaken-by-reopened-call": "after a chain reorganization, an earlier call went first",
};

export const SUBSCRIPTION_STATES = {
  incomplete: "waiting for the first payment",
  incomplete_expired: "never paid",
  trialing: "on trial",
  active: "active",
  past_due: "last payment failed",
  unpaid: "unpaid",
  paused: "paused",
  canceled: "ended",
};

export const nameOf = (names, code) => names[code] ?? code.toLowerCase().replaceAll(/[_-]/g, " ");
