// Payments that may lead over Stripe's pages, and continue by themselves when the user comes back.

import { isSignedOut } from "./session.js";
import { credits, money, t, unixDate } from "./text.js";

const WANTED = "credit-relay.wanted-payment";
const LASTS_MS = 3_600_000;
// Steps at which saving an amount buys a month at once.
export const BUYS = ["refunded", "disputed", "not-paid"];

export const openInvoice = (invoices) => invoices.find(({ status, pageUrl }) => status === "open" && pageUrl);

/** Start, change or resume the monthly payment; leaves to Stripe where a card or a confirmation is missing. */
export const payMonthly = (monthly, context, state) =>
  pay({ monthly, isChange: isLive(state), until: state?.currentPeriodEnd }, context);

/** Buy a pack or an amount, once for each press: every repeat of it carries the same key. */
export const buy = (purchase, context) => pay({ purchase, key: crypto.randomUUID() }, context);

const isLive = (state) =>
  Boolean(state) && ["active", "trialing"].includes(state.status) && !BUYS.includes(state.nextStep);

async function pay(wanted, context) {
  const done = await attempt(wanted, context, { maySendAway: true }).catch(async (error) => {
    // The plan now waits for another card, which the page shows.
    if (wanted.monthly && error.code === "card-declined") await context.again();
    throw error;
  });
  if (!done) return;
  await context.again();
  context.report(done);
}

/**
 * Continue the action for which the user went to Stripe; return the outcome to show, if any, as {text} or {error}.
 * An error that a sign-in does not remove leaves the page as it is.
 */
export async function resumed(context) {
  const kept = JSON.parse(sessionStorage.getItem(WANTED) ?? "null");
  sessionStorage.removeItem(WANTED);
  if (!kept || Date.now() - kept.at > LASTS_MS) return null;
  try {
    return { text: await attempt(kept.wanted, context, { maySendAway: false }) };
  } catch (error) {
    if (isSignedOut(error)) throw error;
    return { error };
  }
}

async function attempt(wanted, context, { maySendAway }) {
  const { session } = context;
  const leave = (go) => {
    sessionStorage.setItem(WANTED, JSON.stringify({ wanted, at: Date.now() }));
    return go();
  };
  try {
    return wanted.monthly ? await payByMonth(wanted, session) : await payOnce(wanted, session);
  } catch (error) {
    if (error.code === "payment-method-required") {
      return maySendAway
        ? leave(() => atStripe(context, "card"))
        : t("No card was saved at Stripe, so nothing was charged. Choose again when you are ready.");
    }
    if (error.code !== "authentication-required") throw error;
    const open = openInvoice((await session.get("/api/payments/invoices")).results);
    if (!open) throw error;
    if (!maySendAway && wanted.purchase)
      return t(
        "The payment is not confirmed yet. Nothing was charged; open the invoice below to complete it.",
      );
    return wanted.purchase ? leave(() => location.assign(open.pageUrl)) : location.assign(open.pageUrl);
  }
}

async function payByMonth({ monthly, isChange, until }, session) {
  await session.post("/api/payments/upsertSubscription", monthly);
  const price = money(monthly.subscriptionCost, monthly.currency);
  return isChange
    ? t("Saved. From {date} you pay {price} a month; nothing was charged now.", {
        date: unixDate(until),
        price,
      })
    : t(
        "Thank you. Your plan is {price} a month; the credits arrive when the payment is confirmed, usually within a minute.",
        { price },
      );
}

async function payOnce({ purchase, key }, session) {
  const done = await session.post("/api/payments/purchaseCredits", purchase, { "Idempotency-Key": key });
  return t("Thank you. {credits} for {price} were added to your account.", {
    credits: credits(done.credits),
    price: money(done.cost, done.currency),
  });
}

/** Open a page of Stripe that leads back to this one. */
export async function atStripe({ session }, page) {
  const { url } = await session.post(`/api/payments/${page}Page`, {
    returnUrl: `${location.origin}/account#plan`,
  });
  location.assign(url);
}
