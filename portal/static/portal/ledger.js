// Verifies that none of the user's entries was altered, against the roots that the service signed and published.

import { actionButton, actions, h, table } from "./dom.js";
import { t, tn } from "./text.js";
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
  return h(
    "div",
    {},
    h(
      "p",
      {},
      t(
        "Each change of your balance is hashed into a root that the service signs and publishes. This page recomputes the hashes of your entries in your browser.",
      ),
    ),
    actions(actionButton(t("Verify my entries"), verify, report, { kind: "plain" })),
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

/** The keys that this browser stored first, and the service's `newKeys`, which it had not seen before. */
async function trustedKeys() {
  const { keys } = await (await fetch("/.well-known/ledger-roots?limit=1")).json();
  const known = JSON.parse(localStorage.getItem(KEYS) ?? "null") ?? keys;
  localStorage.setItem(KEYS, JSON.stringify(known));
  const newKeys = keys.filter(
    ({ kid, x, y }) => !known.some((key) => key.kid === kid && key.x === x && key.y === y),
  );
  return { known: [...known, ...newKeys], newKeys };
}

function summary(results, { newKeys }) {
  const [right, waits, wrong] = ["right", "waits", "wrong"].map((state) =>
    results.filter((result) => result.state === state),
  );
  return h(
    "div",
    {},
    h(
      "p",
      { class: wrong.length ? "bad" : "good" },
      tn(
        "{count} entry is included unchanged in signed roots.",
        "{count} entries are included unchanged in signed roots.",
        right.length,
      ),
    ),
    waits.length > 0 &&
      h(
        "p",
        {},
        tn(
          "{count} new entry waits for the next root. A root is signed every ten minutes.",
          "{count} new entries wait for the next root. A root is signed every ten minutes.",
          waits.length,
        ),
      ),
    newKeys.length > 0 &&
      h(
        "p",
        { class: "bad" },
        t(
          "The service signs with a key that this browser has not seen before. Ask the operator whether the key was changed.",
        ),
      ),
    wrong.length > 0 &&
      table(
        t("Entries that differ from what was signed"),
        [
          { label: t("Entry"), cell: ({ entry }) => String(entry) },
          { label: t("Why"), cell: ({ reason }) => reason },
        ],
        wrong,
      ),
  );
}
