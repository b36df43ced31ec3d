// The daily check-in, the possible drops, and the verification of draws in this browser.

import { verifyDraws } from "./draws.js";
import { actionButton, credits, h, number, panel, percent, table } from "./dom.js";
import { DROPS, nameOf } from "./words.js";

const RANGES = [
  ["Experience", "Experience", number],
  ["Credits", "Credits", number],
  ["Push ad bonus", "BonusCreditsPushAds", percent],
  ["Video bonus", "BonusCreditsVideoAd", percent],
  ["Offer bonus", "BonusCreditsOfferwall", percent],
  ["Survey bonus", "BonusCreditsSurvey", percent],
  ["Cashback", "CreditsBackPercent", percent],
];

export async function checkIn({ session, report, again }) {
  const [account, dashboard, drops, fairness] = await Promise.all([
    session.get("/api/user/account"),
    session.get("/api/user/dashboardInfo"),
    session.get("/api/user/checkInDrops"),
    session.get("/api/user/checkInFairness"),
  ]);
  const { newlySeen, seen } = remember(fairness);
  const draw = async () => {
    const { result } = await session.post("/api/user/executeCheckIn", {}, { "Idempotency-Key": crypto.randomUUID() });
    await again();
    report(`You drew ${describe(result)}.`);
  };
  const button = actionButton(dashboard.userInfo.canCheckIn ? "Check in" : "No check-in left today", draw, report);
  button.disabled = !dashboard.userInfo.canCheckIn;
  return h(
    "div",
    { class: "stack" },
    panel("Check in", h("p", {}, "Once a day (UTC), or more often with higher badges."), h("div", { class: "actions" }, button)),
    panel("Possible drops", possible(drops), account.checkInDropsHint && h("p", { class: "quiet" }, account.checkInDropsHint)),
    panel("Proof of the draws", proof(fairness, newlySeen, seen, report)),
  );
}

function possible(drops) {
  const rows = RANGES.map(([label, name, format]) => ({ label, from: drops[`min${name}`], to: drops[`max${name}`], format })).filter(({ to }) => to > 0);
  if (!rows.length) return h("p", { class: "quiet" }, "Nothing right now.");
  return table("Possible drops", [
    { label: "Drop", cell: (row) => row.label },
    { label: "From", number: true, cell: (row) => row.format(row.from) },
    { label: "To", number: true, cell: (row) => row.format(row.to) },
  ], rows);
}

export function describe({ type, value, effectiveTimeInMinutes: minutes }) {
  if (type === "CREDITS") return credits(value);
  if (type === "EXPERIENCE") return `${number(value)} experience`;
  return `${nameOf(DROPS, type)}: +${percent(value)} for ${number(minutes)} minutes`;
}

function proof(fairness, newlySeen, seen, report) {
  const outcome = h("div", { "aria-live": "polite" });
  const verify = async () => {
    const draws = await verifyDraws(fairness, seen);
    outcome.replaceChildren(draws.length ? results(draws) : h("p", {}, "No seed of your draws is public yet. A seed is published after 48 hours."));
  };
  return [
    h("p", {}, "Every draw is computed from a daily seed. The seed is fixed before the day begins and published 48 hours after its start. This page recomputes your draws in your browser."),
    h("p", { class: "quiet" }, newlySeen ? "This browser has just stored the commitments of today and tomorrow." : "This browser has already stored the commitments of today and tomorrow."),
    h("div", { class: "actions" }, actionButton("Verify my draws", verify, report, { kind: "plain" })),
    outcome,
  ];
}

const results = (draws) =>
  table("Your verified draws", [
    { label: "Day", cell: (draw) => `${draw.day}, no. ${draw.attempt}` },
    { label: "Result", cell: (draw) => describe(draw.result) },
    { label: "Recomputed", cell: (draw) => h("span", { class: draw.isRight ? "good" : "bad" }, draw.isRight ? "same result" : "different result") },
    { label: "Seed fixed before", cell: (draw) => ({ kept: h("span", { class: "good" }, "yes, stored by this browser"), changed: h("span", { class: "bad" }, "no, it was changed"), unknown: "not stored by this browser" })[draw.commitment] },
  ], draws);

/** Store the commitments; one that is stored is never replaced. */
function remember(fairness) {
  const key = `credit-relay.commitments.${fairness.profileAddress}`;
  const kept = JSON.parse(localStorage.getItem(key) ?? "{}");
  const before = Object.keys(kept).length;
  for (const { day, commitment } of [fairness.today, fairness.tomorrow]) kept[day] ??= commitment;
  const seen = Object.fromEntries(Object.entries(kept).sort().slice(-30));
  localStorage.setItem(key, JSON.stringify(seen));
  return { seen, newlySeen: Object.keys(kept).length > before };
}
