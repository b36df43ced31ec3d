// Proof that no entry of one's own was altered: each leads to a root that the service signed and published.

import { actionButton, h, number, panel, table } from "./dom.js";
import { verifyEntry } from "./verify-entry.js";

const KEYS = "credit-relay.ledger-keys";

export function ledgerProof({ session, report }) {
  const outcome = h("div", { "aria-live": "polite" });
  const verify = async () => {
    const keys = await trustedKeys();
    const results = [];
    for await (const proof of proofs(session)) results.push(await outcomeOf(proof, keys.known));
    outcome.replaceChildren(summary(results, keys));
  };
  return panel(
    "Proof of the ledger",
    h("p", {}, "Each change of your balance is hashed into a root that the service signs and publishes. This page computes the hashes of yours again, here in your browser."),
    h("div", { class: "actions" }, actionButton("Verify my entries", verify, report, { kind: "plain" })),
    outcome,
  );
}

async function* proofs(session) {
  for (let query = { limit: 500 }; query; ) {
    const page = await session.get("/api/ledger/proofs", query);
    yield* page.results;
    query = page.next && Object.fromEntries(new URL(page.next).searchParams);
  }
}

async function outcomeOf(proof, keys) {
  if (!proof.root) return { state: "waits" };
  try {
    await verifyEntry(proof, keys);
    return { state: "right" };
  } catch (error) {
    return { state: "wrong", entry: proof.entry, reason: error.message };
  }
}

/** The keys that this browser saw first; `strangers` are those of the service that it had not seen then. */
async function trustedKeys() {
  const { keys } = await (await fetch("/.well-known/ledger-roots?limit=1")).json();
  const known = JSON.parse(localStorage.getItem(KEYS) ?? "null") ?? keys;
  localStorage.setItem(KEYS, JSON.stringify(known));
  const strangers = keys.filter(({ kid, x, y }) => !known.some((key) => key.kid === kid && key.x === x && key.y === y));
  return { known: [...known, ...strangers], strangers };
}

function summary(results, { strangers }) {
  const [right, waits, wrong] = ["right", "waits", "wrong"].map((state) => results.filter((result) => result.state === state));
  return h(
    "div",
    {},
    h("p", { class: wrong.length ? "bad" : "good" }, `${number(right.length)} entries are under signed roots as they were posted.`),
    waits.length > 0 && h("p", {}, `${number(waits.length)} new entries wait for the next root, which is closed every ten minutes.`),
    strangers.length > 0 && h("p", { class: "bad" }, "The service signs with a key that this browser had not seen before. Ask the operator whether it was changed."),
    wrong.length > 0 && table("Entries that are not as they were signed", [
      { label: "Entry", cell: ({ entry }) => String(entry) },
      { label: "Why", cell: ({ reason }) => reason },
    ], wrong),
  );
}
