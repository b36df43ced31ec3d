// The daily check-in, what may drop, and the proof of the draws, computed in this browser.

import { verifyDraws } from "./draws.js";
import { actionButton, credits, h, number, panel, percent, table } from "./dom.js";
import { DROPS, nameOf } from "./words.js";

const RANGES = [
  ["Experience", "Experience", number],
  ["Credits", "Credits", number],
  ["More credits for push ads", "BonusCreditsPushAds", percent],
  ["More credits for videos", "BonusCreditsVideoAd", percent],
  ["More credits for offers", "BonusCreditsOfferwall", percent],
  ["More credits for surveys", "BonusCreditsSurvey", percent],
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
    panel("Check in", h("p", {}, "Once a day (UTC), and more often with better badges."), h("div", { class: "actions" }, button)),
    panel("What may drop", possible(drops), account.checkInDropsHint && h("p", { class: "quiet" }, account.checkInDropsHint)),
    panel("Proof of the draws", proof(fairness, newlySeen, seen, report)),
  );
}

function possible(drops) {
  const rows = RANGES.map(([label, name, format]) => ({ label, from: drops[`min${name}`], to: drops[`max${name}`], format })).filter(({ to }) => to > 0);
  if (!rows.length) return h("p", { class: "quiet" }, "Nothing right now.");
  return table("What may drop", [
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
    outcome.replaceChildren(draws.length ? results(draws) : h("p", {}, "There is no draw of a day whose seed is public yet; that takes 48 hours."));
  };
  return [
    h("p", {}, "Draws follow from a seed that is fixed before the day begins and published two days after it began. This page computes yours again, here in your browser."),
    h("p", { class: "quiet" }, newlySeen ? "This browser has just noted the commitments of today and tomorrow." : "This browser has the commitments of today and tomorrow already."),
    h("div", { class: "actions" }, actionButton("Verify my draws", verify, report, { kind: "plain" })),
    outcome,
  ];
}

const results = (draws) =>
  table("Your draws, computed again", [
    { label: "Day", cell: (draw) => `${draw.day}, no. ${draw.attempt}` },
    { label: "Drew", cell: (draw) => describe(draw.result) },
    { label: "Computed again", cell: (draw) => h("span", { class: draw.isRight ? "good" : "bad" }, draw.isRight ? "the same" : "something else") },
    { label: "Seed fixed before", cell: (draw) => ({ kept: h("span", { class: "good" }, "yes, this browser noted it"), changed: h("span", { class: "bad" }, "no: it was changed"), unknown: "not noted by this browser" })[draw.commitment] },
  ], draws);

/** Note commitments before their days end; what was noted first is never replaced. */
function remember(fairness) {
  const key = `credit-relay.commitments.${fairness.profileAddress}`;
  const kept = JSON.parse(localStorage.getItem(key) ?? "{}");
  const before = Object.keys(kept).length;
  for (const { day, commitment } of [fairness.today, fairness.tomorrow]) kept[day] ??= commitment;
  const seen = Object.fromEntries(Object.entries(kept).sort().slice(-30));
  localStorage.setItem(key, JSON.stringify(seen));
  return { seen, newlySeen: Object.keys(kept).length > before };
}
