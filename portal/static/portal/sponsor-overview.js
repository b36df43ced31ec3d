// A sponsor's credits, how long they last, the spend, refusals by rule, and exports of a month.

import { actionButton, actions, field, figure, h, panel, quiet, table } from "./dom.js";
import { bars, monthOf } from "./plot.js";
import { RULES } from "./sponsor-words.js";
import { credits, dateTime, number, t, tn } from "./text.js";
import { nameOf } from "./words.js";

const DAYS = 30;

export async function show(context) {
  const { session, path, draw } = context;
  const later = Promise.all([
    session.get(`${path}/spend`, { days: DAYS }),
    session.get(`${path}/refusals`, { days: DAYS }),
  ]);
  later.catch(() => null);
  const overview = await session.get(`${path}/overview`);
  draw(balance(overview, context));
  const [spend, refusals] = await later;
  draw(spent(spend), refused(refusals), files(context));
}

function balance({ name, displayName, isFrozen, available, held, budget, dailyUse, daysLeft }) {
  const fact = (...content) => h("li", {}, ...content);
  return h(
    "section",
    { class: "panel hero-panel" },
    h("h2", {}, t("Credits of {name}", { name: displayName })),
    h("p", { class: available > 0 ? "figure" : "figure bad" }, figure(available)),
    h("p", { class: "lead" }, lasts(daysLeft, dailyUse)),
    isFrozen &&
      h(
        "p",
        { class: "notice bad" },
        t("The sponsor is frozen: it pays for no new calls. Contact the operator."),
      ),
    h(
      "ul",
      { class: "facts" },
      held > 0 &&
        fact(t("{credits} more are held for transactions in progress.", { credits: credits(held) })),
      budget.map(({ period, ...part }) => fact(BUDGETS[period](shownIn(part)))),
      fact(
        t("To use this sponsor, send the header"),
        " ",
        h("code", {}, `Relay-Sponsor: ${name}`),
        ". ",
        h("a", { href: "/docs/sponsors" }, t("How a sponsor pays for its users")),
      ),
    ),
  );
}

const BUDGETS = {
  day: (values) => t("Budget of this day: {used} of {limit} used, until {time}.", values),
  month: (values) => t("Budget of this month: {used} of {limit} used, until {time}.", values),
};
const shownIn = ({ used, limit, resets }) => ({
  used: number(used),
  limit: credits(limit),
  time: dateTime(resets),
});

function lasts(daysLeft, use) {
  if (daysLeft === null)
    return use > 0
      ? t("{use} a day so far. After a week of use, this page shows how long they last.", {
          use: credits(use),
        })
      : t("This sponsor paid for no call in the last 14 days.");
  return daysLeft > 0
    ? tn(
        "At {use} a day they last about {count} day.",
        "At {use} a day they last about {count} days.",
        daysLeft,
        { use: credits(use) },
      )
    : t("At {use} a day they will be used up before tomorrow.", { use: credits(use) });
}

function spent({ days, policies }) {
  const total = days.reduce((sum, day) => sum + day.credits, 0);
  if (!policies.length) return panel(t("Spent in {days} days", { days: DAYS }), quiet(t("Nothing yet.")));
  return panel(
    t("Spent in {days} days: {credits}", { days: DAYS, credits: credits(total) }),
    total > 0 &&
      bars(
        monthOf(days),
        t("Credits spent per day in the last 30 days, {number} in total", { number: number(total) }),
      ),
    h("h3", {}, t("By policy")),
    table(
      t("Spent by policy"),
      [
        { label: t("Policy"), cell: (row) => row.policy },
        { label: t("Calls"), number: true, cell: (row) => number(row.calls) },
        { label: t("Credits"), number: true, cell: (row) => number(row.credits) },
      ],
      policies,
      "narrow",
    ),
  );
}

function refused({ refusals }) {
  const title = t("Refused in the last {days} days, by rule", { days: DAYS });
  if (!refusals.length) return panel(title, quiet(t("No request was refused.")));
  return panel(
    title,
    h("p", {}, t("Requests that named this sponsor but that it did not pay for, including estimates.")),
    table(
      title,
      [
        { label: t("Rule"), cell: ({ rule }) => h("a", { href: `/problems/${rule}` }, nameOf(RULES, rule)) },
        { label: t("Requests"), number: true, cell: (row) => number(row.requests) },
      ],
      refusals,
      "narrow",
    ),
  );
}

/** Months as "2026-11", newest first. */
function months() {
  const now = new Date();
  return Array.from({ length: 12 }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7),
  );
}

function files({ session, path, report, sponsor }) {
  const month = h(
    "select",
    {},
    months().map((each) => h("option", {}, each)),
  );
  const download = async (kind) => {
    const text = await session.text(`${path}/export`, { kind, month: month.value });
    save(`${sponsor.name}-${month.value}-${kind}.csv`, text);
  };
  return panel(
    t("Export a month"),
    h(
      "p",
      {},
      t(
        "Entries lists every change of the balance. Calls lists every call paid for; user ids are pseudonyms, which reveal no profile.",
      ),
    ),
    h("div", { class: "short" }, field(t("Month (UTC)"), month)),
    actions(
      actionButton(t("Calls as a spreadsheet"), () => download("calls"), report, { kind: "plain" }),
      actionButton(t("Entries as a spreadsheet"), () => download("entries"), report, { kind: "plain" }),
    ),
  );
}

function save(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
