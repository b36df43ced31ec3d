// The page's own words for the codes of the API.

import { credits, lasting, number, percent, t } from "./text.js";

export const SOURCES = {
  SUBSCRIBED_PAYOUT: t("Subscription"),
  CREDIT_PURCHASE: t("Credits bought"),
  CREDIT_EXPIRY: t("Expired"),
  PUSH_ADS: t("Push ads"),
  VIDEO_ADS: t("Videos"),
  OFFERWALL: t("Offers"),
  SURVEYS: t("Surveys"),
  CHECK_IN: t("Check-in"),
  CREDITS_BACK: t("Cashback"),
  RELAY_REVERSAL: t("Transaction undone by a chain reorganization"),
  EARNING_REVERSAL: t("Taken back by the ad network"),
  PAYOUT_CLAWBACK: t("Refund or dispute"),
  STAFF_ADJUSTMENT: t("Corrected by support"),
  FIRST_CREDITS: t("First credits"),
  DEBT_TRANSFER: t("Owed by an earlier account"),
};

export const BONUSES = {
  BONUS_PUSH_ADS_CREDITS: t("Push ad bonus"),
  BONUS_VIDEO_ADS_CREDITS: t("Video bonus"),
  BONUS_OFFERWALL_CREDITS: t("Offer bonus"),
  BONUS_SURVEYS_CREDITS: t("Survey bonus"),
  BONUS_CREDITS_BACK: t("Cashback"),
};

export const DROPS = { EXPERIENCE: t("Experience"), CREDITS: t("Credits"), ...BONUSES };

export const CALL_STATES = {
  Pending: t("waiting to be sent"),
  Submitted: t("sent, not confirmed yet"),
  Success: t("done"),
  Failed: t("failed"),
  Expired: t("expired"),
  Cancelled: t("cancelled"),
  ExecutedExternally: t("sent by another relayer"),
};

// Why a call did not succeed, for its owner.
export const FAILURES = {
  reverted: t("The contract refused the call without a reason. The gas that it burned was charged."),
  "target-reverted": t("The contract that you called refused it. Check what you asked it to do."),
  "profile-refused": t("Your profile refused the call. Check its settings, or ask the maker of your wallet."),
  "predecessor-failed": t("This call waited for an earlier one, which failed. Send it again."),
  "refused-by-node": t("The network did not take the call. It cost nothing; send it again."),
  "not-mined-in-time": t("Gas was too expensive for too long. It cost nothing; send it again later."),
  "cancelled-by-staff": t("Our support cancelled the call before it was sent. Ask them why."),
  "relay-call-expired": t("The time that your wallet gave the call ran out. Send it again."),
  "relay-nonce-used": t("Another call of yours took its place first. Send it again."),
  "account-nonce-lost": t("A fault on our side stopped the call. It cost nothing; send it again."),
  "overtaken-by-reopened-call": t(
    "The chain was reorganized, and an earlier call of yours went first. Send it again.",
  ),
  "deployed-by-somebody-else": t(
    "Somebody else deployed exactly this profile first. It exists and is yours.",
  ),
  "copy-taken": t(
    "Somebody else deployed the copy first, and a removed key can act there. Ask your wallet to remove it.",
  ),
  "copy-taken-charged": t(
    "Somebody else deployed the copy first, and a removed key can act there. Ask your wallet to remove it.",
  ),
  "deployment-reverted": t("The profile could not be deployed. Ask who created it for you."),
  "relay-nonce-refused": t("Another call of yours took its place first. Send it again."),
  "relay-call-not-yet-valid": t("Your wallet allowed the call only from a later time. Send it again then."),
  "controller-without-permissions": t("The key of your wallet has no permissions on this profile."),
  "not-authorised": t(
    "The key of your wallet may not do this. Grant it the permission in your profile's settings.",
  ),
  "call-not-allowed": t(
    "The key of your wallet may not call this contract. Allow the contract in your profile's settings.",
  ),
  "no-calls-allowed": t(
    "The key of your wallet may not call any contract. Allow the contract in your profile's settings.",
  ),
  "data-key-not-allowed": t("The key of your wallet may not change this data of the profile."),
  "no-data-keys-allowed": t("The key of your wallet may not change any data of the profile."),
  "payload-function-not-supported": t("Your profile does not support this kind of call."),
  "payload-malformed": t(
    "Your wallet sent a call that the profile cannot read. Tell the maker of your wallet.",
  ),
  "key-manager-call-not-allowed": t("A profile may not call its own key manager."),
  "delegate-call-not-allowed": t("Your profile forbids calls that run foreign code as the profile."),
  "profile-balance-too-low": t("Your profile did not hold enough coins for this."),
  "answer-too-large": t("The contract that you called answered too much to be relayed."),
};

export const SUBSCRIPTION_STATES = {
  incomplete: t("waiting for the first payment"),
  incomplete_expired: t("never paid"),
  trialing: t("on trial"),
  active: t("active"),
  past_due: t("last payment failed"),
  unpaid: t("unpaid"),
  paused: t("paused"),
  canceled: t("ended"),
};

export const INVOICE_STATES = {
  open: t("open"),
  paid: t("paid"),
  uncollectible: t("written off"),
  void: t("voided"),
};

export const HELD_BECAUSE = {
  "network-hold": t("held by the network"),
  "earlier-reversals": t("held longer because earlier earnings were taken back"),
  review: t("under review"),
  "network-paused": t("the network is paused"),
};

// Sentences for the API's errors; all other errors are shown with the API's own English sentence.
export const PROBLEMS = {
  "access-token-expired": t("You are signed out. Sign in again."),
  "account-deleted": t("This account is being deleted. You can open a new one in about an hour."),
  "account-banned": t("This account is banned. Please contact the operator's support."),
  "account-inactive": t("Support has closed this account. Please contact them."),
  "address-required": t(
    "Tax depends on your address, and Stripe has none that it knows. Enter a card with your full address, then try again.",
  ),
  "amount-too-small": t("This amount is below the minimum."),
  "amount-too-large": t("This amount is above the maximum."),
  "authentication-required": t("Your bank wants you to confirm the payment."),
  "customer-balance": t(
    "Stripe keeps a balance for you, which would change this payment. Ask support to settle it.",
  ),
  "payment-processing": t(
    "Your bank is still deciding about the payment. This can take a day; do not pay again.",
  ),
  "billing-in-progress": t("A payment is already being made. Try again in a moment."),
  "billing-unavailable": t(
    "The payment service does not answer right now. Nothing was charged; try again later.",
  ),
  "card-declined": t("Your bank declined the card. Use another card."),
  "check-in-unavailable": t("You have already checked in. Come back tomorrow."),
  "check-ins-paused": t("Check-ins are paused at the moment."),
  "currency-fixed": t(
    "You pay in another currency while your plan runs. Choose that one, or cancel the plan first.",
  ),
  "endpoint-disabled": t("This endpoint is disabled. Delete it and add it anew."),
  "endpoint-refused": t(
    "Messages cannot be sent to this address. It has to begin with https:// and be reachable from the internet, without a user, a password or a fragment.",
  ),
  "insufficient-credits": t("You do not have enough credits for this."),
  "payment-method-required": t("No card is saved yet."),
  "profile-not-deployed": t(
    "This wallet holds no Universal Profile. Choose a wallet with a Universal Profile, such as the Universal Profile extension.",
  ),
  "purchase-closed": t("This purchase was voided: refused, unpaid for a day, or replaced. Buy again."),
  "sponsor-invitation": t(
    "This link or code is wrong, used or expired. Ask an owner of the sponsor to invite you again.",
  ),
  "sponsor-last-owner": t("A sponsor needs an owner. Make another member an owner first."),
  "sponsor-mail-failed": t("The invitation could not be sent. Invite the member again."),
  "sponsor-member-unknown": t(
    "This profile has no account here, or is not a member. People must sign in once before they can become members.",
  ),
  "sponsor-name-taken": t("A sponsor has this name in requests already. Choose another one."),
  "sponsor-no-mail": t("This service sends no e-mail. Add members by their profiles instead."),
  "sponsor-openings-used": t("As many sponsors were opened today as this service allows. Try again later."),
  "sponsor-self-service-off": t("Ask the operator of this service to open a sponsor for you."),
  "sponsor-sign-in": t("The sponsor's name, the e-mail address, the password or the code is wrong."),
  "sponsor-staff-decide": t("The operator's staff decide about this. Ask them."),
  "sponsor-too-many": t("You have opened as many sponsors as you can. Ask the operator for another one."),
  "sponsor-too-many-keys": t("The sponsor has as many keys as it can have. Revoke one first."),
  "too-many-endpoints": t("The sponsor has as many endpoints as it can have. Delete one first."),
  "unknown-pack": t("This pack is not sold any more. Choose another one."),
  "too-many-requests": t("Too many attempts. Wait a moment, then try again."),
  "sign-permission-missing": t("The key of your wallet may not sign for this profile."),
  "signature-not-by-controller": t("The key that signed does not belong to this profile."),
  "untrusted-code": t(
    "Your profile runs a contract that this service does not know. Please contact support.",
  ),
  "webhooks-not-configured": t("This service cannot send messages yet. Ask its operator to set up webhooks."),
};

export const nameOf = (names, code) => names[code] ?? code.toLowerCase().replaceAll(/[_-]/g, " ");

/** A drop of a check-in in words. */
export function describe({ type, value, effectiveTimeInMinutes: minutes }) {
  if (type === "CREDITS") return credits(value);
  if (type === "EXPERIENCE") return t("{number} experience", { number: number(value) });
  return t("{bonus}: +{percent} for {time}", {
    bonus: nameOf(DROPS, type),
    percent: percent(value),
    time: lasting(minutes),
  });
}
