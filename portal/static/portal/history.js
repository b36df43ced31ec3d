// Relay transactions and earnings, in pages.

import { actionButton, dateTime, explorerLink, h, number, panel, table } from "./dom.js";
import { ledgerProof } from "./ledger.js";
import { FAILURES, SOURCES, nameOf } from "./words.js";

const PAGE = 25;
const STATUS_CLASS = { Success: "good", Failed: "bad", Cancelled: "bad" };

export async function history({ session, service, report }) {
  const calls = await pages(session, "/api/user/transactions", report, {
    caption: "Relayed transactions",
    empty: "No transactions yet. Send one through your extension.",
    columns: [
      { label: "Transaction", cell: (row) => explorerLink(service, "tx", row.transaction_hash) },
      { label: "When", cell: (row) => dateTime(row.created_at) },
      { label: "Status", cell: outcome },
      { label: "Cost", number: true, cell: (row) => (row.settled_at ? number(row.real_cost) : `about ${number(row.expected_cost)}`) },
      { label: "Balance after", number: true, cell: (row) => number(row.credits_after) },
    ],
  });
  const earnings = await pages(session, "/api/user/earnings", report, {
    caption: "Earned credits",
    empty: "Nothing yet. You earn credits with a subscription, ads and check-ins.",
    columns: [
      { label: "From", cell: (row) => nameOf(SOURCES, row.credit_source) },
      { label: "When", cell: (row) => dateTime(row.created_at) },
      { label: "Credits", number: true, cell: (row) => (row.credits_earned > 0 ? `+${number(row.credits_earned)}` : number(row.credits_earned)) },
      { label: "Balance after", number: true, cell: (row) => number(row.credits_after) },
    ],
  });
  return h("div", { class: "stack" }, panel("Transactions", calls), panel("Earnings", earnings), ledgerProof({ session, report }));
}

function outcome(row) {
  const name = h("span", { class: STATUS_CLASS[row.status] }, row.status);
  if (!row.failure_code) return name;
  return h("span", {}, name, ": ", nameOf(FAILURES, row.failure_code));
}

/** A list with a button that loads older rows. */
async function pages(session, path, report, { caption, columns, empty }) {
  const place = h("div", {});
  const rows = [];
  const load = async (query) => {
    const page = await session.get(path, { limit: PAGE, ...query });
    rows.push(...page.results);
    const older = page.next && actionButton("Older", () => load(queryOf(page.next)), report, { kind: "plain" });
    place.replaceChildren(rows.length ? table(caption, columns, rows) : h("p", { class: "quiet" }, empty), h("div", { class: "actions" }, older));
  };
  await load({});
  return place;
}

const queryOf = (address) => Object.fromEntries(new URL(address).searchParams);
