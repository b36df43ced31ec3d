// Words for the rules with which a sponsor refuses, for the roles of its members, and for its webhooks.

import { t } from "./text.js";

export const RULES = {
  "sponsor-no-policy": t("No policy in force"),
  "sponsor-purpose": t("A policy for other things"),
  "sponsor-limit-window-calls": t("Number in the time window"),
  "sponsor-limit-campaign-calls": t("Number in total"),
  "sponsor-target": t("Contract or function not listed"),
  "sponsor-unreadable": t("The call cannot be read"),
  "sponsor-profile": t("Profile not included"),
  "sponsor-voucher-missing": t("No voucher"),
  "sponsor-voucher": t("Voucher not valid"),
  "sponsor-voucher-used": t("Voucher already used"),
  "sponsor-holding": t("Token or follow missing"),
  "sponsor-holding-unknown": t("Token or follow not readable"),
  "sponsor-verifier": t("Your server refused"),
  "sponsor-verifier-unknown": t("Your server gave no valid response"),
  "sponsor-limit-verifier": t("Limit set by your server"),
  "sponsor-not-started": t("Not started yet"),
  "sponsor-ended": t("Ended"),
  "sponsor-gas-price": t("Gas price too high"),
  "sponsor-limit-call": t("Limit per call"),
  "sponsor-limit-voucher": t("Limit of the voucher"),
  "sponsor-limit-user-day": t("Daily limit per user"),
  "sponsor-limit-user-total": t("Total limit per user"),
  "sponsor-limit-user-calls": t("Calls per user"),
  "sponsor-limit-window": t("Limit of the time window"),
  "sponsor-limit-campaign": t("Total limit"),
  "sponsor-frozen": t("Sponsor frozen, or policy switched off"),
  "sponsor-without-credits": t("Sponsor without credits"),
  "sponsor-budget": t("Budget of the sponsor"),
  "sponsor-busy": t("Policies changed at that moment"),
};

export const ROLES = {
  viewer: t("Viewer: reads everything"),
  manager: t("Manager: also manages keys and funds"),
  owner: t("Owner: also manages members, and policies within a budget"),
};

export const EVENTS = {
  "sponsor.low": t("Credits are below the alarm"),
  "sponsor.recovered": t("Credits are above the alarm again"),
  "sponsor.profiles-low": t("The new profiles of a policy are used up, or nearly"),
  "sponsor.posted": t("Credits were added or taken, except for calls"),
  "sponsor.call-settled": t("A paid call has ended"),
  "sponsor.call-reopened": t("The chain undid the end of a paid call"),
  "sponsor.profile-created": t("A profile that your server requested exists"),
  "sponsor.profile-failed": t("A profile that your server requested was not created"),
};

export const MESSAGES = { ...EVENTS, "webhook.test": t("Test") };

export const MESSAGE_STATES = {
  waiting: t("waiting"),
  delivered: t("delivered"),
  "given-up": t("given up"),
};
