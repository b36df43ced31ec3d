// A sponsor's newest calls and refusals, for its owners.

import { explorerLink, field, h, panel, quiet, table } from "./dom.js";
import { RULES } from "./sponsor-words.js";
import { dateTime, number, t } from "./text.js";
import { CALL_STATES, nameOf } from "./words.js";

const TITLE = t("Newest calls and refusals");
const KINDS = { "": t("All"), paid: t("Paid calls"), refused: t("Refusals") };

export async function show(context) {
  const { session, path, draw } = context;
  const { rights } = await session.get(`${path}/overview`);
  if (!rights.includes("own"))
    return draw(
      panel(TITLE, quiet(t("Owners see single calls: on the chain, their hashes lead to profiles."))),
    );
  const service = await context.service;
  const rows = h("div");
  const load = async (kind) => {
    const { calls } = await session.get(`${path}/calls`, kind && { kind });
    rows.replaceChildren(calls.length ? table(TITLE, columns(service), calls) : quiet(t("Nothing yet.")));
  };
  await load("");
  const choose = ({ target }) => load(target.value).catch(context.report);
  const options = Object.entries(KINDS).map(([value, label]) => h("option", { value }, label));
  draw(
    panel(
      TITLE,
      h(
        "p",
        {},
        t(
          "A refused call is one row, however often it was asked for. The service keeps the newest, without their profiles, because nothing of them is on the chain.",
        ),
      ),
      h(
        "div",
        { class: "short" },
        field(t("Show"), h("select", { name: "kind", onchange: choose }, options)),
      ),
      rows,
    ),
  );
}

/** The chain of a row, as `GET /api/service` describes it. */
const chainOf = ({ chainId }, service) =>
  service.chains.find((chain) => chain.chainId === chainId) ?? { ...service, name: null, explorerUrl: "" };

const columns = (service) =>
  [
    { label: t("Time"), cell: ({ at }) => dateTime(at) },
    { label: t("Contract"), cell: (row) => called(row.actions, chainOf(row, service)) },
    service.chains.length > 1 && {
      label: t("Chain"),
      cell: (row) => chainOf(row, service).name ?? row.chainId,
    },
    { label: t("Policy"), cell: ({ policy }) => policy || "–" },
    { label: t("Outcome"), cell: (row) => (row.rule ? refusal(row) : nameOf(CALL_STATES, row.status)) },
    { label: t("Credits"), number: true, cell: ({ credits }) => number(credits) },
    {
      label: t("Transaction"),
      cell: (row) =>
        row.transactionHash ? explorerLink(chainOf(row, service), "tx", row.transactionHash) : "–",
    },
  ].filter(Boolean);

/** The first contract and function that a call calls, and how many more there are. */
function called([first, ...others], service) {
  if (!first) return "–";
  const { contract, function: selector } = first;
  const names = {
    profile: t("the profile itself"),
    deployment: t("a new contract"),
    "new-profile": t("a new profile"),
    delegatecall: t("another contract's code"),
  };
  const what =
    selector === "0x"
      ? !(contract in names) && t("transfer of {currency}", { currency: service.currency })
      : h("code", {}, selector);
  return h(
    "span",
    {},
    names[contract] ?? explorerLink(service, "address", contract),
    what && [" ", what],
    others.length > 0 && [" ", t("and {number} more", { number: number(others.length) })],
  );
}

function refusal({ rule, serverResponse, requests }) {
  return h(
    "span",
    {},
    h("a", { href: `/problems/${rule}` }, nameOf(RULES, rule)),
    serverResponse && [": ", h("span", { lang: "en" }, serverResponse)],
    requests > 1 && [" ", t("({number} times)", { number: number(requests) })],
  );
}
