// What credits are worth: money at the service's own rate, and transactions at their typical cost.

import { credits, likelyCurrency, money, t, tn } from "./text.js";

const rates = new WeakMap();

/** Return what was asked for; null for what this service does not offer. */
export const ifOffered = (asked) =>
  asked.catch((error) => {
    if (error.status === 404 || error.code === "billing-unavailable") return null;
    throw error;
  });

/**
 * Return a function that shows credits as money in the account's own currency, at the price of credits; it returns ""
 * where none are sold. The rate is read once.
 */
export function pricing(session) {
  if (!rates.has(session)) {
    const offer = ifOffered(session.get("/api/payments/packs"));
    rates.set(
      session,
      offer.then((sold) => worthAt(sold && termsOf(sold))).catch(() => () => ""),
    );
  }
  return rates.get(session);
}

/** The terms of the account's own currency, or of the one in which the reader probably pays. */
export function termsOf({ currencies, ownCurrency }) {
  const code = ownCurrency ?? likelyCurrency(currencies.map(({ currency }) => currency));
  return currencies.find(({ currency }) => currency === code) ?? currencies[0];
}

/** Show credits as money at one currency's terms. */
export function worthAt(terms) {
  if (!terms) return () => "";
  const { currency, creditsPerMajorUnit: rate } = terms;
  return (amount) => {
    const minor = Math.round((Math.abs(amount) * 100) / rate);
    return minor || !amount
      ? money(minor, currency)
      : t("less than {amount}", { amount: money(1, currency) });
  };
}

/** Credits with their worth in brackets: "4,800 credits ($4.80)". */
export function valued(amount, worth) {
  const price = worth(amount);
  return price ? `${credits(amount)} (${price})` : credits(amount);
}

/** How many transactions an amount of credits pays for; empty if it pays for none, or no price is known. */
export function callsFor(amount, typicalCost) {
  const calls = typicalCost ? Math.floor(amount / typicalCost) : 0;
  return calls > 0 ? tn("about {count} transaction", "about {count} transactions", calls) : "";
}
