// Balance, spending, badges, modifiers, and the extension's connection to this service.

import { actionButton, busy, credits, date, definitions, h, number, panel, percent, until } from "./dom.js";
import { bars, perDay } from "./plot.js";
import { MODIFIERS, nameOf } from "./words.js";

const DAYS = 30;
const PLOTTED = 500;

export async function overview({ session, service, report, again }) {
  const [account, dashboard, calls] = await Promise.all([
    session.get("/api/user/account"),
    session.get("/api/user/dashboardInfo"),
    session.get("/api/user/transactions", { limit: PLOTTED }),
  ]);
  return h(
    "div",
    { class: "stack" },
    balance(account, again, report),
    extension(session, service, report),
    h("div", { class: "cards" }, badge("Badge", account.permanentBadge, dashboard.permanentBadge, dashboard.userInfo, "Permanent"), badge("Subscriber badge", account.subscriberBadge, dashboard.subscriberBadge, dashboard.userInfo, "Subscriber")),
    modifiers(dashboard.modifiers),
    spending(calls.results),
  );
}

function balance(account, again, report) {
  const period = account.resetDate < 0 ? "no active subscription" : `${credits(account.totalQuota)} until ${date(account.resetDate)}`;
  return panel(
    "Credits",
    h("p", { class: `figure ${account.available < 0 ? "bad" : ""}` }, number(account.available)),
    definitions(
      ["Balance", credits(account.balance)],
      ["Held for calls in progress", credits(account.held)],
      ["Paid period", period],
    ),
    h("div", { class: "actions" }, actionButton("Refresh", again, report, { kind: "plain" })),
  );
}

function extension(session, service, report) {
  const add = async () => {
    const chosen = await session.addRelayer(service);
    report(chosen?.length ? `Your extension now uses this relayer for ${chosen.length === 1 ? "this profile" : `${chosen.length} profiles`}.` : "This relayer was added to your extension.");
  };
  const form = h(
    "form",
    {},
    h("label", {}, `Send ${service.currency} to`, h("input", { name: "to", required: true, pattern: "0x[0-9a-fA-F]{40}", autocomplete: "off", placeholder: "0x…" })),
    h("label", {}, "Amount", h("input", { name: "amount", required: true, inputmode: "decimal", pattern: "[0-9]{1,12}([.][0-9]{1,18})?", value: "0" })),
    h("button", {}, "Send with the extension"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form.querySelector("button"), () => send(form, session, report), report);
  });
  return panel(
    "Your extension",
    h("p", {}, "Add this service as a relayer. Your extension then signs, and this service sends the transaction and pays the gas."),
    h("div", { class: "actions" }, actionButton("Add this relayer to my extension", add, report)),
    h("details", {}, h("summary", {}, `Try it: send ${service.currency}`), form),
  );
}

async function send(form, session, report) {
  const { to, amount } = Object.fromEntries(new FormData(form));
  const transaction = await session.send({ to, value: wei(amount) });
  report(`Sent. ${transaction.hash} is waiting to be mined.`);
  const { status, creditsUsed } = await transaction.wait();
  report(`${transaction.hash}: ${status}, for ${credits(Number(creditsUsed))}.`);
}

/** Convert an amount in coins to wei, without floating point. */
export function wei(amount) {
  const [whole, fraction = ""] = amount.split(".");
  return BigInt(whole) * 10n ** 18n + BigInt(fraction.padEnd(18, "0"));
}

function badge(title, name, terms, info, track) {
  const share = info[`percentToNext${track}Badge`];
  const experience = track === "Permanent" ? info.permanentExp : info.subscriptionExp;
  const top = terms.exp_upper_bound === Number.MAX_SAFE_INTEGER;
  const lacks = track === "Subscriber" && !info.isSubscriber;
  const progress = top || lacks ? `${number(experience)} experience${top ? ", the top badge" : ""}` : `${number(experience)} of ${number(terms.exp_upper_bound)} experience for the next badge`;
  const benefits = [
    ["Cashback", terms.credits_back_percent],
    ["Push ads", terms.bonus_creds_push_ads],
    ["Videos", terms.bonus_creds_video_ads],
    ["Offers", terms.bonus_creds_offerwall],
    ["Surveys", terms.bonus_creds_surveys],
  ].filter(([, value]) => value > 0);
  return panel(
    title,
    h("p", {}, h("strong", {}, name), lacks ? " (with a subscription)" : ""),
    !lacks && h("progress", { value: share, max: 1, "aria-label": `${title}: progress to the next badge` }),
    h("p", { class: "quiet" }, progress),
    definitions(
      ...benefits.map(([label, value]) => [label, `+${percent(value)}`]),
      ["Debt limit", credits(terms.acceptable_credit_debt)],
      ["Extra daily check-ins", number(terms.bonus_daily_check_in_attempts)],
    ),
  );
}

function modifiers(rows) {
  const items = rows.map((row) => h("li", {}, `${nameOf(MODIFIERS, row.modifier_type)}: +${percent(row.value)}, ${until(row.expires_at)} left`));
  return panel("Active bonuses", rows.length ? h("ul", {}, items) : h("p", { class: "quiet" }, "None right now. You can win bonuses at check-in."));
}

function spending(rows) {
  const days = perDay(rows, DAYS, (row) => [row.settled_at, row.real_cost]);
  const total = days.reduce((sum, day) => sum + day.value, 0);
  const title = `Spent in ${DAYS} days`;
  if (!total) return panel(title, h("p", { class: "quiet" }, "Nothing yet."));
  return panel(title, h("p", {}, credits(total)), bars(days, `Credits spent per day in the last ${DAYS} days, ${number(total)} in total`));
}
