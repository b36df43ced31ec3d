// One timeline of everything that happened to the account, and the proof of the ledger.

import { deedsOf } from "./deeds.js";
import { actionButton, actions, details, explorerLink, field, form, h, panel, quiet } from "./dom.js";
import { icon } from "./icons.js";
import { ledgerProof } from "./ledger.js";
import { bars, monthOf } from "./plot.js";
import { credits, date, money, number, signed, t, timeOfDay } from "./text.js";
import { CALL_STATES, FAILURES, SOURCES, describe, nameOf } from "./words.js";

const PAGE = 25;
const UNDONE = ["Failed", "Cancelled", "Expired"];

export async function activity(context) {
  const { session, draw, report } = context;
  const service = await context.service;
  const [first, { spending }] = await Promise.all([
    session.get("/api/user/timeline", { limit: PAGE }),
    session.get("/api/user/home"),
  ]);
  draw(
    panel(t("Everything that happened"), chosen(first, service, context)),
    spent(spending),
    h("section", { class: "panel" }, details(t("Proof of the ledger"), ledgerProof({ session, report }))),
  );
}

const KINDS = {
  "": t("Everything"),
  call: t("Transactions"),
  entry: t("Other changes of the balance"),
  "check-in": t("Check-ins"),
};
const HASH = /^0x[0-9a-f]{6,64}((…|\.{2,3})[0-9a-f]+)?$/i;

/** The timeline under a choice of its rows and a search by hash. */
function chosen(first, service, context) {
  const { session, report } = context;
  const nothing = t("Nothing yet. Your transactions, earnings, payments and check-ins will be listed here.");
  const place = h("div", { "aria-live": "polite" }, timeline(first, nothing, service, context));
  const kind = h(
    "select",
    { name: "kind" },
    Object.entries(KINDS).map(([value, text]) => h("option", { value }, text)),
  );
  const hash = h("input", { name: "hash", autocomplete: "off", spellcheck: "false", placeholder: "0x…" });
  const read = async (query, empty) => {
    const page = await session.get("/api/user/timeline", { limit: PAGE, ...query });
    place.replaceChildren(timeline(page, empty, service, context));
  };
  kind.addEventListener("change", () => {
    hash.value = "";
    const empty = kind.value ? t("Nothing of this kind yet.") : nothing;
    read(kind.value ? { kind: kind.value } : {}, empty).catch(report);
  });
  const find = form(
    {
      button: t("Find"),
      kind: "plain",
      checks: ({ hash: text }) =>
        !text.trim() || HASH.test(text.trim())
          ? null
          : t("Enter a transaction hash, or its beginning: 0x and at least six more characters."),
      action: ({ hash: text }) => {
        kind.value = "";
        return text.trim()
          ? read({ hash: text.trim() }, t("No transaction of yours has this hash."))
          : read({}, nothing);
      },
      report,
    },
    field(t("Transaction hash"), hash),
  );
  return h("div", {}, h("div", { class: "choices" }, field(t("Show"), kind), find), place);
}

function timeline(first, nothing, service, { session, report }) {
  if (!first.results.length) return quiet(nothing);
  const days = h("div");
  const more = actions();
  let shown = { day: null, list: null };
  const show = ({ results, next }) => {
    for (const row of results) {
      if (date(row.at) !== shown.day) {
        shown = { day: date(row.at), list: h("ol", { class: "timeline" }) };
        days.append(dayHeading(row), shown.list);
      }
      shown.list.append(happening(row, service));
    }
    more.replaceChildren(
      next
        ? actionButton(
            t("Show older"),
            async () =>
              show(await session.get("/api/user/timeline", Object.fromEntries(new URL(next).searchParams))),
            report,
            { kind: "plain" },
          )
        : "",
    );
  };
  show(first);
  return h("div", {}, days, more);
}

/** The day of its newest row, with the balance after it. */
function dayHeading({ at, balanceAfter }) {
  const balance = balanceAfter !== null && t("balance {number}", { number: number(balanceAfter) });
  return h("h3", { class: "day" }, h("span", {}, date(at)), balance && h("small", {}, balance));
}

function happening(row, service) {
  const undone = UNDONE.includes(row.status);
  // The cashback is named beside it, so this is the amount before it.
  const change = row.credits - (row.cashback ?? 0);
  const amount = h(
    "span",
    { class: change > 0 ? "amount good" : "amount" },
    change === 0 && row.kind !== "call" ? "" : signed(change),
  );
  return h(
    "li",
    { class: undone ? "undone" : "" },
    icon(row.entrySource),
    h(
      "div",
      {},
      h("strong", {}, titleOf(row, service)),
      h(
        "p",
        { class: "quiet" },
        timeOfDay(row.at),
        row.kind === "call" && [
          " · ",
          h("span", { class: undone ? "bad" : "" }, nameOf(CALL_STATES, row.status)),
          " · ",
          explorerLink(service, "tx", row.transactionHash),
        ],
        row.sponsor && [" · ", t("paid by {sponsor}", { sponsor: row.sponsor })],
        row.cashback > 0 && [" · ", t("{credits} back as cashback", { credits: credits(row.cashback) })],
      ),
      row.failureCode &&
        h(
          "p",
          { class: "bad" },
          FAILURES[row.failureCode] ??
            t("It failed for a reason that this page does not know: {code}", { code: row.failureCode }),
        ),
    ),
    h("div", { class: "sum" }, amount),
  );
}

function titleOf(row, service) {
  if (row.kind === "check-in") return t("Check-in: {drop}", { drop: describe(row.drop) });
  if (row.kind === "entry") return entryTitle(row);
  return deedsOf(row, service.currency);
}

function entryTitle({ entrySource, network, amountMinor, currency }) {
  const what = nameOf(SOURCES, entrySource);
  if (network) return t("{what}: {network}", { what, network });
  return amountMinor === null
    ? what
    : t("{what}: {money} paid", { what, money: money(amountMinor, currency) });
}

function spent(rows) {
  const days = monthOf(rows);
  const total = rows.reduce((sum, row) => sum + row.credits, 0);
  if (!total) return "";
  return panel(
    t("Spent in 30 days: {credits}", { credits: credits(total) }),
    bars(days, t("Credits spent per day in the last 30 days, {number} in total", { number: number(total) })),
  );
}
