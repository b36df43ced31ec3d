// What a relay call did, in one sentence: for its owner on the account page, and for staff.

import { coins, short, t } from "./text.js";

/** The actions of a call in words; `currency` is that of its chain. */
export function deedsOf({ actions, hasMoreActions }, currency) {
  const titles = actions.map((action) => actionTitle(action, currency));
  return [titles.join(", ") || t("Transaction"), hasMoreActions ? t("and more") : ""].join(" ").trim();
}

const METHODS = {
  transfer: (to) => t("Sent tokens to {to}", { to }),
  transferFrom: (to) => t("Sent tokens to {to}", { to }),
  safeTransferFrom: (to) => t("Sent a token to {to}", { to }),
  transferBatch: () => t("Sent tokens to several receivers"),
  mint: (to) => t("Minted for {to}", { to }),
  burn: () => t("Burned tokens"),
  approve: (to) => t("Allowed {to} to use tokens", { to }),
  setApprovalForAll: (to) => t("Changed what {to} may do with tokens", { to }),
  authorizeOperator: (to) => t("Allowed {to} to use tokens", { to }),
  revokeOperator: (to) => t("Withdrew the right of {to} to use tokens", { to }),
  follow: (to) => t("Followed {to}", { to }),
  unfollow: (to) => t("Unfollowed {to}", { to }),
  transferOwnership: (to) => t("Offered the ownership to {to}", { to }),
};

function actionTitle({ action, to, valueWei, method, recipient }, currency) {
  if (action === "send")
    return t("Sent {amount} to {to}", { amount: coins(valueWei, currency), to: short(to) });
  if (action === "write") return t("Changed the profile's data");
  if (action === "deploy") return t("Created a contract");
  if (action === "create") return t("Your profile was created");
  if (action === "manage")
    return method ? t("Called {method} of the profile", { method }) : t("Called a function of the profile");
  const named = METHODS[method]?.(recipient ? short(recipient) : "?");
  const called =
    named ??
    (method
      ? t("Called {method} of {to}", { method, to: short(to) })
      : t("Called the contract {to}", { to: short(to) }));
  return valueWei === "0"
    ? called
    : t("{action} with {amount}", { action: called, amount: coins(valueWei, currency) });
}
