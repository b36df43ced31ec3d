// The monthly subscription: start, pay, change, new card, cancel, invoices. Cards are entered on Stripe's pages.

import { actionButton, busy, date, definitions, h, money, panel, table } from "./dom.js";
import { SUBSCRIPTION_STATES, nameOf } from "./words.js";

const PATH = "/api/payments/subscription";
const ENDED = ["canceled", "incomplete_expired"];
const WANTED = "credit-relay.wanted-subscription";
const WAITS = {
  pay: "The last payment failed. Pay the open invoice, or add another card.",
  confirm: "Your bank requires you to confirm the payment.",
  "capture-card": "Your card was declined. Add another card, then pay the open invoice.",
  refunded: "This month was refunded, so it gives no credits. Save the amount below to buy a month now.",
  disputed: "The payment of this month is disputed, so it gives no credits. Save the amount below to buy a month now.",
  "not-paid": "This month gives no credits, because it was not paid by card. Save the amount below to buy a month now.",
};
const SETTLED = {
  balance: "paid from your balance, without credits",
  "credit-note": "settled by a credit note, without credits",
  "off-stripe": "paid outside of Stripe, without credits",
  carried: "added to the next invoice",
  free: "free, without credits",
  void: "voided",
  uncollectible: "written off",
};

export async function subscription(context) {
  const { session } = context;
  const { subscriptionStatus } = await session.get("/api/user/account");
  const state = subscriptionStatus && (await session.get(PATH));
  const invoices = await session.get("/api/payments/invoices");
  const { email } = await session.get("/api/payments/receiptEmail");
  const runs = state !== null && !ENDED.includes(state.status);
  return h(
    "div",
    { class: "stack" },
    runs ? running(state, invoices.results, context) : beginning(state),
    amount(state, runs, context),
    subscriptionStatus && atStripe(context),
    receipts(email, context),
    panel("Invoices", invoiceTable(invoices.results)),
  );
}

const beginning = (state) =>
  panel(
    "No subscription",
    h("p", {}, state ? "Your subscription has ended. You can start a new one." : "A subscription gives you credits every month. You choose the price."),
  );

function running(state, invoices, { session, again, report }) {
  const open = invoices.find(({ status, pageUrl }) => status === "open" && pageUrl);
  const cancel = async () => {
    await session.delete("/api/payments/cancelSubscription", { cancelImmediately: false });
    await again();
    report("Your subscription ends with the current period.");
  };
  return panel(
    "Subscription",
    WAITS[state.nextStep] && h("p", { class: "notice bad" }, WAITS[state.nextStep]),
    definitions(
      ["Status", nameOf(SUBSCRIPTION_STATES, state.status)],
      ["This period", state.paidCost !== null ? money(state.paidCost, state.currency) : state.openCost ? "not paid" : SETTLED[state.latestInvoice] ?? "being confirmed"],
      [state.cancelAtEndOfBillingPeriod ? "Ends" : "Next payment", state.isResting ? "paused; save the amount below to go on" : date(state.currentPeriodEnd)],
      state.endsAt && !state.cancelAtEndOfBillingPeriod && ["Ends", date(state.endsAt)],
      ["Next amount", state.nextCost === null ? "none" : money(state.nextCost, state.currency)],
      ["Open", state.openCost ? h("span", { class: "bad" }, money(state.openCost, state.currency)) : "nothing"],
    ),
    h(
      "div",
      { class: "actions" },
      state.openCost > 0 && open && h("a", { class: "button", href: open.pageUrl }, "Pay the open invoice"),
      !state.cancelAtEndOfBillingPeriod && actionButton("Cancel at the end of the period", cancel, report, { kind: "danger" }),
    ),
  );
}

function amount(state, runs, context) {
  const { service } = context;
  const wanted = JSON.parse(sessionStorage.getItem(WANTED) ?? "null");
  const currency = wanted?.currency ?? state?.currency ?? service.billingCurrencies[0];
  const minor = wanted?.subscriptionCost ?? state?.nextCost ?? 1000;
  const form = h(
    "form",
    {},
    wanted && h("p", { class: "notice" }, "If you have added your card, confirm the amount to finish."),
    h("label", {}, "Amount per month", h("input", { name: "amount", required: true, inputmode: "decimal", pattern: "[0-9]{1,7}([.][0-9]{1,2})?", title: "An amount such as 25.50", value: (minor / 100).toFixed(2) })),
    h("label", {}, "Currency", h("select", { name: "currency" }, service.billingCurrencies.map((code) => h("option", { value: code, selected: code === currency }, code.toUpperCase())))),
    h("button", {}, runs ? "Save" : "Subscribe"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form.querySelector("button"), () => subscribe(form, state === null && !wanted, context), context.report);
  });
  return panel(runs ? "Change or resume your subscription" : "Subscribe", runs && h("p", {}, "A new amount applies from the next period."), form);
}

async function subscribe(form, needsCard, context) {
  const { session, again, report } = context;
  const { amount: text, currency } = Object.fromEntries(new FormData(form));
  const [whole, fraction = ""] = text.split(".");
  const wanted = { subscriptionCost: Number(whole) * 100 + Number(fraction.padEnd(2, "0")), currency };
  sessionStorage.setItem(WANTED, JSON.stringify(wanted));
  if (needsCard) return visit(session, "card");
  try {
    const { subscriptionAmount } = await session.post("/api/payments/upsertSubscription", wanted);
    sessionStorage.removeItem(WANTED);
    await again();
    report(`Your subscription is ${subscriptionAmount} per month. You get the credits once the payment is confirmed.`);
  } catch (error) {
    if (error.code === "payment-method-required") return visit(session, "card");
    if (error.code !== "authentication-required") throw error;
    const { results } = await session.get("/api/payments/invoices");
    const open = results.find(({ status, pageUrl }) => status === "open" && pageUrl);
    if (!open) throw error;
    sessionStorage.removeItem(WANTED);
    location.assign(open.pageUrl);
  }
}

/** Open a page of Stripe that redirects back to this one. */
async function visit(session, page) {
  const { url } = await session.post(`/api/payments/${page}Page`, { returnUrl: `${location.origin}/account#subscription` });
  location.assign(url);
}

const atStripe = ({ session, report }) =>
  panel(
    "Cards",
    h("p", {}, "Stripe stores your cards; this service never sees them."),
    h(
      "div",
      { class: "actions" },
      actionButton("Add a new card", () => visit(session, "card"), report, { kind: "plain" }),
      actionButton("Open Stripe's customer portal", () => visit(session, "portal"), report, { kind: "plain" }),
    ),
  );

function receipts(email, { session, again, report }) {
  const form = h(
    "form",
    {},
    h("label", {}, "E-mail address for receipts (optional)", h("input", { name: "email", type: "email", autocomplete: "email", value: email ?? "" })),
    h("button", { class: "plain" }, "Save address"),
  );
  const save = async () => {
    await session.post("/api/payments/receiptEmail", { email: new FormData(form).get("email") || null });
    await again();
    report("Saved. Only Stripe stores this address.");
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form.querySelector("button"), save, report);
  });
  return panel("Receipts", form);
}

const invoiceTable = (rows) =>
  rows.length
    ? table("Invoices", [
        { label: "Invoice", cell: (row) => row.number },
        { label: "Date", cell: (row) => date(row.createdAt) },
        { label: "Status", cell: (row) => h("span", { class: row.status === "paid" ? "good" : row.status === "open" ? "bad" : "" }, row.status) },
        { label: "Total", number: true, cell: (row) => money(row.total, row.currency) },
        { label: "Documents", cell: (row) => h("span", {}, link(row.pageUrl, "Open"), " ", link(row.pdfUrl, "PDF")) },
      ], rows)
    : h("p", { class: "quiet" }, "None yet.");

const link = (address, text) => address && h("a", { href: address, rel: "noreferrer" }, text);
