// Payments that may lead over Stripe's pages, and continue by themselves when the user comes back.

import { actionButton, confirmed, definitions, h, quiet } from "./dom.js";
import { isSignedOut } from "./session.js";
import { credits, money, t, timeOfDay, unixDate } from "./text.js";
import { callsFor } from "./worth.js";

const WANTED = "credit-relay.wanted-payment";
const LASTS_MS = 3_600_000;
// Steps at which saving an amount buys a month at once.
export const BUYS = ["refunded", "disputed", "not-paid"];

export const openInvoice = (invoices) => invoices.find(({ status, pageUrl }) => status === "open" && pageUrl);

/**
 * Start, change or resume the monthly payment; leaves to Stripe where a card or a confirmation is missing. What charges
 * the card now is confirmed first: `gives` are the credits of a month.
 */
export async function payMonthly(monthly, context, state, gives) {
  const isChange = isLive(state);
  const { subscriptionCost: cost, currency } = monthly;
  const order = { cost, currency, gives, isMonthly: true, yes: t("Subscribe and pay") };
  if (!isChange && !(await agreed(order, context))) return;
  await pay({ monthly, isChange, until: state?.currentPeriodEnd }, context);
}

/**
 * Buy a pack or an amount once the user has confirmed the total. Each press is one purchase: every repeat of it carries
 * the same key.
 */
export async function buy(purchase, { cost, currency, gives }, context) {
  const yes = t("Pay {price}", { price: money(cost, currency) });
  if (await agreed({ cost, currency, gives, yes }, context))
    await pay({ purchase, key: crypto.randomUUID() }, context);
}

/** Show what is bought, how it is paid, and the total; resolves to whether the user orders it. */
function agreed({ cost, currency, gives, isMonthly, yes }, { card, typicalCost, undoMinutes }) {
  const price = money(cost, currency);
  const get = [gives > 0 && credits(gives), gives > 0 && callsFor(gives, typicalCost)]
    .filter(Boolean)
    .join(", ");
  return confirmed(
    {
      title: isMonthly ? t("Confirm your plan") : t("Confirm your purchase"),
      yes: document.body.dataset.orderButton || yes,
      no: t("Do not buy"),
    },
    definitions(
      get && [t("You get"), isMonthly ? t("{credits} each month", { credits: get }) : get],
      [t("Card"), card === null ? t("You enter it at Stripe, then this is paid.") : cardText(card)],
      [t("Total"), h("strong", { class: "total" }, isMonthly ? t("{price} a month", { price }) : price)],
    ),
    quiet(
      isMonthly
        ? t("The first month is charged now, then each month until you cancel. You can cancel at any time.")
        : undoMinutes > 0
          ? t(
              "Charged once, tax included. You can undo it for {minutes} minutes while none of it is spent.",
              {
                minutes: undoMinutes,
              },
            )
          : t("Charged once, tax included."),
      legal(),
    ),
  );
}

/** The operator's terms, as a link. */
export function legal() {
  const terms = document.querySelector("footer [data-terms]");
  return terms && [" ", h("a", { href: terms.href, rel: "noreferrer" }, terms.textContent)];
}

/** A card as its holder knows it; only Stripe stores it. */
export function cardText(card) {
  if (card === undefined) return t("This cannot be read at Stripe at the moment.");
  if (!card) return t("none is saved");
  const { brand, last4, expiresMonth: month, expiresYear: year } = card;
  return t("{brand} ending in {digits}, valid until {date}", {
    brand: BRANDS[brand] ?? brand,
    digits: last4,
    date: `${String(month).padStart(2, "0")}/${year}`,
  });
}

const BRANDS = {
  amex: "American Express",
  cartes_bancaires: "Cartes Bancaires",
  diners: "Diners Club",
  discover: "Discover",
  eftpos_au: "Eftpos",
  jcb: "JCB",
  mastercard: "Mastercard",
  unionpay: "UnionPay",
  visa: "Visa",
};

/** A button that takes a purchase back after a confirmation; null if that is not possible any more. */
export function undoButton(
  { purchaseId, cost, currency, credits: gave, undoUntil },
  { session, again, report },
) {
  if (!undoUntil) return null;
  const undo = async () => {
    const sure = await confirmed(
      {
        title: t("Undo this purchase?"),
        yes: t("Undo the purchase"),
        no: t("Keep the credits"),
        kind: "danger",
      },
      h(
        "p",
        {},
        t("{price} goes back to your card, and {credits} leave your account.", {
          price: money(cost, currency),
          credits: credits(gave),
        }),
      ),
    );
    if (!sure) return;
    await session.post("/api/payments/undoPurchase", { purchaseId });
    await again();
    report(
      t("Undone. {price} goes back to your card; banks take a few days.", { price: money(cost, currency) }),
    );
  };
  const label = t("Undo until {time}", { time: timeOfDay(undoUntil * 1000) });
  return actionButton(label, undo, report, { kind: "plain small" });
}

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
