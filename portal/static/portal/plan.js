// The plan in one card: amount, next charge and card; start, change, cancel and resume; packs, receipts, invoices.

import {
  actionButton,
  actions,
  confirmed,
  definitions,
  details,
  field,
  form,
  h,
  panel,
  quiet,
  table,
} from "./dom.js";
import { BUYS, atStripe, cardText, legal, openInvoice, payMonthly, resumed, undoButton } from "./checkout.js";
import { isSignedOut } from "./session.js";
import { choiceOf, creditsFor, packPanels, packsOffered, previewCredits } from "./packs.js";
import { credits, dateTime, likelyCurrency, minorUnits, money, t, unixDate, written } from "./text.js";
import { INVOICE_STATES, SUBSCRIPTION_STATES, nameOf } from "./words.js";

const PATH = "/api/payments/subscription";
const ENDED = ["canceled", "incomplete_expired"];
const FIRST_AMOUNT = 1000;
const WAITS = {
  pay: t("The last payment failed. Pay the open invoice, or use another card."),
  confirm: t("Your bank wants you to confirm the payment."),
  wait: t("Your bank is still deciding about the payment. This can take a day; do not pay again."),
  "capture-card": t("Your card was declined. Use another card, then pay the open invoice."),
  refunded: t("This month was refunded, so it gives no credits."),
  disputed: t("The payment of this month is disputed, so it gives no credits."),
  "not-paid": t("This month gives no credits, because it was not paid by card."),
  "complete-address": t(
    "Tax depends on your address, which is missing. Enter a card with your full address; it pays the waiting invoice.",
  ),
  "pay-invoice": t("An invoice was sent to you. Pay it on its page."),
};
const UNREAD = t("This cannot be read at Stripe at the moment.");
/** Return what was asked for, or `nothing` if only this part cannot be read. */
const orNothing = (asked, nothing) =>
  asked.catch((error) => {
    if (isSignedOut(error)) throw error;
    return nothing;
  });
const FROM_BALANCE = t("Your balance at Stripe paid for this month, so it gives no credits.");

export async function plan(page) {
  const { session, draw } = page;
  const context = { ...page, card: undefined, typicalCost: null, undoMinutes: 0 };
  const continued = await resumed(context);
  const asked = [
    orNothing(session.get("/api/payments/invoices"), { results: null }),
    orNothing(session.get("/api/payments/card"), {}),
    orNothing(session.get("/api/payments/receiptEmail"), {}),
    orNothing(packsOffered(context), null),
    orNothing(session.get("/api/payments/purchases"), { results: [] }),
    orNothing(session.get("/api/user/home"), {}),
  ];
  for (const each of asked) each.catch(() => null);
  const account = await session.get("/api/user/account");
  const state = account.subscriptionStatus ? await session.get(PATH) : null;
  const runs = state !== null && !ENDED.includes(state.status);
  const [{ results }, { card }, { email }, offer, purchases, { typicalCost }] = await Promise.all(asked);
  Object.assign(context, { card, typicalCost, undoMinutes: offer?.undoMinutes ?? 0 });
  const invoices = results ?? [];
  const { billingCurrencies: offered } = await context.service;
  const currency = offer?.ownCurrency ?? state?.currency ?? likelyCurrency(offered);
  const terms = { offered, currency, rates: offer?.currencies ?? [] };
  draw(
    continued?.text && h("p", { class: "notice", role: "status" }, continued.text),
    continued?.error &&
      h("div", { class: "notice bad", role: "alert" }, await context.explain(continued.error)),
    runs
      ? current(state, { invoices, card, account, terms }, context)
      : beginning(state, { card, terms }, context),
    undoable(purchases.results, context),
    ...packPanels(offer, currency, context),
    email === undefined ? panel(t("Receipts"), quiet(UNREAD)) : receipts(email, context),
    panel(t("Invoices"), results ? invoiceTable(invoices) : quiet(UNREAD)),
  );
}

const UNDONE = {
  pending: t("Undone: the refund is on its way."),
  failed: t(
    "Your bank did not take the refund, so the credits are yours again. Ask our support how to get the money.",
  ),
};

/** Purchases of the last hour that can be undone, and those whose refund is on its way or came back. */
function undoable(rows, context) {
  const shown = rows.filter(({ undoUntil, undo }) => undoUntil || undo === "pending" || undo === "failed");
  if (!shown.length) return null;
  return panel(
    t("Bought just now"),
    h(
      "ul",
      { class: "rows" },
      shown.map((row) =>
        h(
          "li",
          {},
          h("strong", {}, credits(row.credits)),
          " ",
          t("for {price}, {time}", {
            price: money(row.cost, row.currency),
            time: dateTime(row.createdAt * 1000),
          }),
          row.undo ? quiet(UNDONE[row.undo]) : actions(undoButton(row, context)),
        ),
      ),
    ),
  );
}

function titleOf({ interval }, price) {
  if (interval === "month") return t("Your plan: {price} a month", { price });
  return interval === "year"
    ? t("Your plan: {price} a year", { price })
    : t("Your plan: {price} every {interval}", { price, interval });
}

function current(state, { invoices, card, account, terms }, context) {
  const { subscriptionCost: cost, currency, cancelAtEndOfBillingPeriod: ends } = state;
  const price = money(cost, currency);
  const open = openInvoice(invoices);
  const pay = (minor) =>
    payMonthly(
      { subscriptionCost: minor, currency },
      context,
      state,
      creditsFor(minor, currency, terms.rates),
    );
  return panel(
    titleOf(state, price),
    WAITS[state.nextStep] && h("p", { class: "notice bad" }, WAITS[state.nextStep]),
    state.latestInvoice === "balance" && h("p", { class: "notice" }, FROM_BALANCE),
    definitions(
      [
        t("Status"),
        ends
          ? t("ends on {date}", { date: unixDate(state.currentPeriodEnd) })
          : nameOf(SUBSCRIPTION_STATES, state.status),
      ],
      account.totalQuota > 0 && [
        t("This period"),
        t("{credits} until {date}", {
          credits: credits(account.totalQuota),
          date: unixDate(state.currentPeriodEnd),
        }),
      ],
      [t("Next charge"), nextCharge(state)],
      [t("Card"), cardText(card)],
      state.openCost > 0 && [t("Open"), h("span", { class: "bad" }, money(state.openCost, currency))],
    ),
    actions(
      (state.openCost > 0 || state.nextStep === "pay-invoice") &&
        state.nextStep !== "wait" &&
        open &&
        h("a", { class: "button", href: open.pageUrl }, t("Pay the open invoice")),
      BUYS.includes(state.nextStep) &&
        actionButton(t("Buy a month now for {price}", { price }), () => pay(cost), context.report),
      (ends || state.isResting) &&
        actionButton(t("Resume at {price}", { price }), () => pay(cost), context.report),
      actionButton(
        state.nextStep === "complete-address" ? t("Enter card and address") : t("Replace the card"),
        () => atStripe(context, "card"),
        context.report,
        { kind: state.nextStep === "complete-address" ? "" : "plain" },
      ),
      actionButton(t("Open Stripe's customer portal"), () => atStripe(context, "portal"), context.report, {
        kind: "plain",
      }),
      !ends &&
        actionButton(t("Cancel the plan"), () => cancel(state, account, context), context.report, {
          kind: "danger",
        }),
    ),
    state.interval === "month" &&
      details(
        t("Change the amount"),
        amountForm(
          {
            button: t("Save the amount"),
            kind: "plain",
            cost,
            terms,
            hint: t("A new amount is charged from the next period; nothing is charged now."),
          },
          context,
          state,
        ),
      ),
  );
}

function nextCharge({ cancelAtEndOfBillingPeriod: ends, isResting, nextCost, currentPeriodEnd, currency }) {
  if (isResting) return t("none; payments are paused");
  if (ends || nextCost === null) return t("none");
  return t("{price} on {date}", { price: money(nextCost, currency), date: unixDate(currentPeriodEnd) });
}

/** Ask for confirmation before cancelling the plan, and list what the user loses and keeps. */
async function cancel({ currentPeriodEnd }, { available }, { session, again, report }) {
  const day = unixDate(currentPeriodEnd);
  const agreed = await confirmed(
    {
      title: t("Cancel the plan?"),
      yes: t("Cancel at the end of the period"),
      no: t("Keep the plan"),
      kind: "danger",
    },
    h(
      "p",
      {},
      t("Your plan then ends on {date}. Until that day nothing changes, and you can resume it.", {
        date: day,
      }),
    ),
    h(
      "dl",
      {},
      h("dt", {}, t("You keep")),
      h(
        "dd",
        {},
        t("your {credits}, your badge and its benefits.", { credits: credits(Math.max(0, available)) }),
      ),
      h("dt", {}, t("You lose on {date}", { date: day })),
      h("dd", {}, t("the monthly credits, and the subscriber badge with its cashback and bonuses.")),
    ),
  );
  if (!agreed) return;
  await session.delete("/api/payments/cancelSubscription", { cancelImmediately: false });
  await again();
  report(t("Your plan ends on {date}. You can resume it until then.", { date: day }));
}

const beginning = (state, { card, terms }, context) =>
  panel(
    state ? t("Your plan has ended") : t("Choose a plan"),
    h(
      "p",
      {},
      t(
        "You get credits every month, and a subscriber badge with cashback and bonuses. You choose the price, and can cancel at any time.",
      ),
    ),
    amountForm(
      { button: t("Continue"), cost: state?.subscriptionCost ?? FIRST_AMOUNT, terms, isOrder: true },
      context,
      state,
    ),
    card && definitions([t("Card"), cardText(card)]),
    quiet(t("The next step shows the total before you pay."), legal()),
    card &&
      actions(
        actionButton(t("Replace the card"), () => atStripe(context, "card"), context.report, {
          kind: "plain",
        }),
      ),
  );

/** A form for a monthly amount, filled with the current one; it shows the credits that the amount gives. */
function amountForm(
  { button, kind, cost, terms: { offered, currency, rates }, hint, isOrder },
  context,
  state,
) {
  const gives = h("span", { class: "hint", "aria-live": "polite" });
  const element = form(
    {
      button,
      kind,
      checks: ({ amount }) =>
        (minorUnits(amount) ?? 0) > 0
          ? null
          : t("Enter an amount above 0, such as {example}.", { example: written(2550) }),
      action: (values) =>
        payMonthly(
          { subscriptionCost: minorUnits(values.amount), currency: values.currency },
          context,
          state,
          creditsFor(minorUnits(values.amount), values.currency, rates),
        ),
      report: context.report,
    },
    field(
      t("Amount per month"),
      h("input", { name: "amount", inputmode: "decimal", autocomplete: "off", value: written(cost) }),
      [gives, hint && h("span", { class: "hint" }, hint)],
    ),
    isOrder && offered.length > 1
      ? field(t("Currency"), choiceOf(offered, currency))
      : h("input", { type: "hidden", name: "currency", value: currency }),
  );
  previewCredits(element, gives, rates);
  return element;
}

function receipts(email, { session, again, report }) {
  const save = async ({ email: address }) => {
    await session.post("/api/payments/receiptEmail", { email: address || null });
    await again();
    report(t("Saved. Only Stripe stores this address."));
  };
  const input = h("input", { name: "email", type: "email", autocomplete: "email", value: email ?? "" });
  return panel(
    t("Receipts"),
    form(
      {
        button: t("Save the address"),
        kind: "plain",
        checks: () => (input.validity.valid ? null : t("Enter an e-mail address, or nothing.")),
        action: save,
        report,
      },
      field(t("E-mail address for receipts (optional)"), input),
    ),
  );
}

const invoiceTable = (rows) =>
  rows.length
    ? table(
        t("Invoices"),
        [
          { label: t("Invoice"), cell: (row) => row.number },
          { label: t("Date"), cell: (row) => unixDate(row.createdAt) },
          {
            label: t("Status"),
            cell: (row) =>
              h(
                "span",
                { class: row.status === "paid" ? "good" : row.status === "open" ? "bad" : "" },
                nameOf(INVOICE_STATES, row.status),
              ),
          },
          { label: t("Total"), number: true, cell: (row) => money(row.total, row.currency) },
          {
            label: t("Documents"),
            cell: (row) => h("span", {}, link(row.pageUrl, t("View")), " ", link(row.pdfUrl, t("PDF"))),
          },
        ],
        rows,
      )
    : quiet(t("None yet."));

const link = (address, text) => address && h("a", { href: address, rel: "noreferrer" }, text);
