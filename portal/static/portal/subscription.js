// The monthly subscription: begin, pay, change, new card, cancel. Cards are entered at Stripe's own pages.

import { actionButton, busy, date, definitions, h, money, panel } from "./dom.js";
import { SUBSCRIPTION_STATES, nameOf } from "./words.js";

const PATH = "/api/payments/subscription";
const WAITS = { pay: "The last payment failed. Pay what is open, or give another card.", confirm: "Your bank wants you to confirm the payment.", "capture-card": "The card was declined. Give another card, then pay what is open." };
const ENDED = ["canceled", "incomplete_expired"];

export async function subscription(context) {
  const { subscriptionStatus } = await context.session.get("/api/user/account");
  const report = subscriptionStatus && (await context.session.get(PATH));
  const runs = report !== null && !ENDED.includes(report.status);
  return h("div", { class: "stack" }, runs ? standing(report, context) : beginning(report), amount(report, runs, context));
}

const beginning = (report) =>
  panel("No subscription", h("p", {}, report ? "Your subscription has ended. You can begin another." : "A subscription pays out credits every month. You choose how much it costs."));

function standing(report, { session, again, report: tell }) {
  const waits = WAITS[report.nextStep];
  const change = async (path, body, done) => {
    await session.delete(path, body);
    await again();
    tell(done);
  };
  const cancel = actionButton("Cancel at the end of the period", () => change("/api/payments/cancelSubscription", { cancelImmediately: false }, "It ends with the running period."), tell, { kind: "danger" });
  return panel(
    "Subscription",
    waits && h("p", { class: "notice bad" }, waits),
    definitions(
      ["Status", nameOf(SUBSCRIPTION_STATES, report.status)],
      ["This period", report.paidCost === null ? "not paid" : money(report.paidCost, report.currency)],
      [report.cancelAtEndOfBillingPeriod ? "Ends" : "Next payment", date(report.currentPeriodEnd)],
      ["Next amount", report.nextCost === null ? "none" : money(report.nextCost, report.currency)],
      ["Open", report.openCost ? h("span", { class: "bad" }, money(report.openCost, report.currency)) : "nothing"],
    ),
    !report.cancelAtEndOfBillingPeriod && h("div", { class: "actions" }, cancel),
  );
}

function amount(report, runs, { session, service, again, report: tell }) {
  const currency = report?.currency ?? service.billingCurrencies[0];
  const form = h(
    "form",
    {},
    h("label", {}, "A month", h("input", { name: "amount", required: true, inputmode: "decimal", pattern: "[0-9]{1,7}([.][0-9]{1,2})?", value: report?.nextCost ? String(report.nextCost / 100) : "10" })),
    h("label", {}, "Currency", h("select", { name: "currency" }, service.billingCurrencies.map((code) => h("option", { value: code, selected: code === currency }, code.toUpperCase())))),
    h("button", {}, runs ? "Save" : "Subscribe"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form.querySelector("button"), () => subscribe(form, session, again, tell), tell);
  });
  return panel(runs ? "Change the amount, or let it go on" : "Subscribe", h("p", {}, runs && "Another amount applies from the next period."), form);
}

async function subscribe(form, session, again, tell) {
  const { amount: text, currency } = Object.fromEntries(new FormData(form));
  const [whole, fraction = ""] = text.split(".");
  const subscriptionCost = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  const { subscriptionAmount } = await session.post("/api/payments/upsertSubscription", { subscriptionCost, currency });
  await again();
  tell(`Your subscription is ${subscriptionAmount} a month. The credits arrive once the payment is confirmed.`);
}
