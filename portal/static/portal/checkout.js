// Payments that may lead over Stripe's pages, and continue by themselves when the user comes back.

import { money, t, unixDate } from "./text.js";

const WANTED = "credit-relay.wanted-subscription";
const LASTS_MS = 3_600_000;
// Steps at which saving an amount buys a month at once.
export const BUYS = ["refunded", "disputed", "not-paid"];

export const openInvoice = (invoices) => invoices.find(({ status, pageUrl }) => status === "open" && pageUrl);

/** Start, change or resume the monthly payment; leaves to Stripe where a card or a confirmation is missing. */
export async function payMonthly(wanted, context, state) {
  const { again, report } = context;
  const done = await attempt(wanted, context, state, { maySendAway: true });
  if (!done) return;
  await again();
  report(done);
}

/** Continue what was wanted before the user left for Stripe's page of cards; returns what to tell, if anything. */
export async function resumed(context) {
  const kept = JSON.parse(sessionStorage.getItem(WANTED) ?? "null");
  sessionStorage.removeItem(WANTED);
  if (!kept || Date.now() - kept.at > LASTS_MS) return null;
  return attempt(kept.wanted, context, null, { maySendAway: false });
}

async function attempt(wanted, context, state, { maySendAway }) {
  const { session } = context;
  try {
    await session.post("/api/payments/upsertSubscription", wanted);
  } catch (error) {
    if (error.code === "payment-method-required") {
      if (!maySendAway) return t("No card was saved at Stripe, so nothing was charged. Choose your plan again when you are ready.");
      sessionStorage.setItem(WANTED, JSON.stringify({ wanted, at: Date.now() }));
      return atStripe(context, "card");
    }
    if (error.code === "authentication-required") return confirmAtBank(error, session);
    throw error;
  }
  const price = money(wanted.subscriptionCost, wanted.currency);
  const isLive = state && ["active", "trialing"].includes(state.status) && !BUYS.includes(state.nextStep);
  return isLive
    ? t("Saved. From {date} you pay {price} a month; nothing was charged now.", { date: unixDate(state.currentPeriodEnd), price })
    : t("Thank you. Your plan is {price} a month; the credits arrive when the payment is confirmed, usually within a minute.", { price });
}

async function confirmAtBank(error, session) {
  const open = openInvoice((await session.get("/api/payments/invoices")).results);
  if (!open) throw error;
  location.assign(open.pageUrl);
}

/** Open a page of Stripe that leads back to this one. */
export async function atStripe({ session }, page) {
  const { url } = await session.post(`/api/payments/${page}Page`, { returnUrl: `${location.origin}/account#plan` });
  location.assign(url);
}
