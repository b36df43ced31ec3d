// The extension's connection to this service, and a transaction to try it.

import { actionButton, actions, details, explorerLink, field, form, h, panel } from "./dom.js";
import { wasRejected } from "./session.js";
import { credits, listed, short, t, tn } from "./text.js";
import { titled } from "./icons.js";
import { CALL_STATES, FAILURES, nameOf } from "./words.js";

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const AMOUNT = /^\d{1,12}(?:[.,]\d{1,18})?$/;

export function wallet(context) {
  const { session, report, name } = context;
  const add = async () => {
    const outcomes = await session.addRelayers(name);
    report(h("div", {}, added(outcomes), outcomes.map(missing)), { stays: outcomes.some(missing) });
  };
  const addButton = () => actionButton(t("Add to my wallet"), add, report, { kind: "plain" });
  const place = h("div");
  context.service.then((service) => place.append(trial(service, { ...context, addButton })), report);
  return panel(
    titled("WALLET", t("Your wallet")),
    h(
      "p",
      {},
      t(
        "Add this service to your wallet once. Then you approve actions in your wallet as usual; this service sends them and pays the gas with your credits.",
      ),
    ),
    actions(addButton()),
    place,
  );
}

/** Which chains the wallet has added, in one sentence; nothing without any. */
function added(outcomes) {
  const chosen = outcomes.filter(({ outcome }) => outcome === "added");
  if (!chosen.length) return null;
  return tn(
    "Your wallet now uses this service for {count} profile on {chains}.",
    "Your wallet now uses this service for {count} profiles on {chains}.",
    new Set(chosen.flatMap(({ profiles }) => profiles)).size || 1,
    { chains: listed(chosen.map(({ chain }) => chain.name)) },
  );
}

/** Why a chain is not added; nothing if it is. */
function missing({ chain, outcome, error }) {
  if (outcome === "added") return null;
  const values = { chain: chain.name, reason: error?.message };
  const text =
    outcome === "not-asked"
      ? t("{chain} takes no transactions at the moment. Add it later.", values)
      : wasRejected(error)
        ? t("{chain} was not added: you declined it, or your wallet has it already.", values)
        : t("{chain} was not added. Your wallet says: {reason}", values);
  return h("p", {}, text);
}

function trial(service, context) {
  const { currency } = service;
  return details(
    t("Try it: send {currency}", { currency }),
    form(
      {
        button: t("Send with my wallet"),
        checks: ({ to, amount }) =>
          ADDRESS.test(to.trim())
            ? AMOUNT.test(amount.trim())
              ? null
              : t("Enter an amount such as {example}.", { example: "0.5" })
            : t("Enter an address: 0x and 40 more characters."),
        action: ({ to, amount }) =>
          send(to.trim(), wei(amount.trim()), service, context).catch((error) => {
            if (!isSentElsewhere(error)) throw error;
            const advice = t("Your wallet does not send through this service yet. Add it, then send again.");
            context.report(h("span", {}, advice, " ", context.addButton()), { stays: true });
          }),
        report: context.report,
      },
      field(t("To address"), h("input", { name: "to", autocomplete: "off", placeholder: "0x…" })),
      field(
        t("Amount in {currency}", { currency }),
        h("input", { name: "amount", inputmode: "decimal", value: "0" }),
      ),
    ),
  );
}

/** Whether the wallet has no relayer for the profile (EIP-1193, 4100), or has sent the call through another one. */
const isSentElsewhere = ({ code }) => code === 4100 || code === "transaction-not-found";

async function send(to, value, service, { session, report, again }) {
  const transaction = await session.send({ to, value });
  const shown = () =>
    explorerLink(
      service,
      "tx",
      transaction.hash,
      h("code", { title: transaction.hash }, short(transaction.hash)),
    );
  report(h("span", {}, t("Sent; waiting for the chain:"), " ", shown()), { stays: true });
  const { status, creditsUsed, paidBy } = await transaction.wait();
  const ended = { state: nameOf(CALL_STATES, status), credits: credits(Number(creditsUsed)) };
  const outcome =
    paidBy === "user"
      ? t("Transaction {state}, for {credits}:", ended)
      : t("Transaction {state}; you paid {credits}, and {sponsor} the rest:", { ...ended, sponsor: paidBy });
  await again();
  report(h("span", {}, outcome, " ", shown(), status === "Success" ? "" : ` ${FAILURES.reverted}`));
}

/** Convert an amount in coins to wei, without floating point. */
export function wei(amount) {
  const [whole, fraction = ""] = amount.replace(",", ".").split(".");
  return BigInt(whole) * 10n ** 18n + BigInt(fraction.padEnd(18, "0"));
}
