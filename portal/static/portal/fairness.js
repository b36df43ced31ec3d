// The proof of the draws: this browser keeps the commitments, and recomputes the draws once their seeds are public.

import { actionButton, actions, h, quiet, table } from "./dom.js";
import { verifyDraws } from "./draws.js";
import { dayOf, t } from "./text.js";
import { describe } from "./words.js";

export async function fairness(session, report) {
  const record = await session.get("/api/user/checkInFairness");
  const { newlySeen, seen } = remember(record);
  const outcome = h("div", { "aria-live": "polite" });
  const verify = async () => {
    const draws = await verifyDraws(record, seen);
    outcome.replaceChildren(
      draws.length
        ? results(draws)
        : quiet(t("The seeds of your draws are not public yet. A seed is published after 48 hours.")),
    );
  };
  return [
    h(
      "p",
      {},
      t(
        "Every draw is computed from a daily seed. The seed is fixed before the day begins and published 48 hours after its start. This page recomputes your draws in your browser.",
      ),
    ),
    quiet(
      newlySeen
        ? t("This browser has just stored the commitments of today and tomorrow.")
        : t("This browser has already stored the commitments of today and tomorrow."),
    ),
    actions(actionButton(t("Verify my draws"), verify, report, { kind: "plain" })),
    outcome,
  ];
}

const results = (draws) =>
  table(
    t("Your verified draws"),
    [
      {
        label: t("Day"),
        cell: (draw) =>
          t("{day}, no. {attempt}", { day: dayOf(draw.day, { dateStyle: "medium" }), attempt: draw.attempt }),
      },
      { label: t("Result"), cell: (draw) => describe(draw.result) },
      {
        label: t("Recomputed"),
        cell: (draw) =>
          h(
            "span",
            { class: draw.isRight ? "good" : "bad" },
            draw.isRight ? t("same result") : t("different result"),
          ),
      },
      { label: t("Seed fixed before"), cell: (draw) => commitmentOf(draw) },
    ],
    draws,
  );

const commitmentOf = ({ commitment }) =>
  ({
    kept: () => h("span", { class: "good" }, t("yes, stored by this browser")),
    changed: () => h("span", { class: "bad" }, t("no, it was changed")),
    unknown: () => t("not stored by this browser"),
  })[commitment]();

/** Store the commitments; one that is stored is never replaced. */
function remember(record) {
  const key = `credit-relay.commitments.${record.profileAddress}`;
  const kept = JSON.parse(localStorage.getItem(key) ?? "{}");
  const before = Object.keys(kept).length;
  for (const { day, commitment } of [record.today, record.tomorrow]) kept[day] ??= commitment;
  const seen = Object.fromEntries(Object.entries(kept).sort().slice(-30));
  localStorage.setItem(key, JSON.stringify(seen));
  return { seen, newlySeen: Object.keys(kept).length > before };
}
