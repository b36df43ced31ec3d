// The check-in: seven days, a streak, the time of the next one, the chances before it, and the proof after it.

import { actionButton, actions, details, figure, h, quiet, table, targetPanel } from "./dom.js";
import { badges } from "./badges.js";
import { icon, titled } from "./icons.js";
import { dayOf, lasting, number, percent, t, tn, until } from "./text.js";
import { DROPS, describe, nameOf } from "./words.js";

export function ritual(calendar, account, context) {
  const { session, report } = context;
  const won = h("p", { class: "won", role: "status" });
  const place = h("div", { class: "stack small-gap" });
  const show = (state) =>
    place.replaceChildren(days(state), streak(state), ahead(state), actions(button(state)), wait(state));
  const draw = async () => {
    const { result } = await session.post(
      "/api/user/executeCheckIn",
      {},
      { "Idempotency-Key": crypto.randomUUID() },
    );
    won.replaceChildren(h("span", {}, t("You won")), " ", h("strong", {}, describe(result)));
    won.classList.add("revealed");
    const [{ checkIn }, now, dashboard] = await Promise.all(
      ["home", "account", "dashboardInfo"].map((name) => session.get(`/api/user/${name}`)),
    );
    show(checkIn);
    if (!checkIn.canCheckIn) document.querySelector('.hero-panel a[href="#home/check-in"]')?.remove();
    document.querySelector(".hero-panel .figure").replaceChildren(...figure(now.available));
    document.getElementById("badges").replaceWith(badges(now, dashboard));
  };
  const button = ({ canCheckIn, attemptsLeft }) => {
    const open = actionButton(canCheckIn ? t("Check in") : t("Checked in"), draw, report, {
      kind: canCheckIn ? undefined : "plain",
    });
    open.disabled = !canCheckIn;
    return h(
      "span",
      {},
      open,
      canCheckIn && attemptsLeft > 1
        ? h("span", { class: "hint" }, tn("{count} left today", "{count} left today", attemptsLeft))
        : "",
    );
  };
  show(calendar);
  return targetPanel(
    "check-in",
    titled("CHECK_IN", t("Daily check-in")),
    place,
    won,
    account.checkInDropsLimitedBy === "nothing-earned" &&
      quiet(t("Until your first payment or earning you win experience. After it, also credits and bonuses.")),
    details(t("What you can win, and how likely"), chances(calendar.chances)),
    proof(context),
  );
}

const days = ({ days: shown }) =>
  h(
    "ol",
    { class: "days", "aria-label": t("Check-ins of the last seven days") },
    shown.map(({ day, checkIns }, place) =>
      h(
        "li",
        { class: checkIns ? "done" : place === shown.length - 1 ? "today" : "" },
        icon(checkIns ? "DONE" : "OPEN"),
        h("small", {}, dayOf(day, { weekday: "short" })),
        h("span", { class: "visually-hidden" }, checkIns ? t("checked in") : t("no check-in")),
      ),
    ),
  );

const streak = ({ streak: length }) =>
  h(
    "p",
    { class: length ? "earned" : "" },
    length > 0 && icon("STREAK"),
    " ",
    h(
      "strong",
      {},
      length ? tn("{count} day in a row", "{count} days in a row", length) : t("Begin a streak today."),
    ),
  );

/** What the streak unlocks next. */
const ahead = ({ nextDrop: next }) =>
  next
    ? h(
        "p",
        {},
        tn("{count} more day to a new drop:", "{count} more days to a new drop:", next.inDays),
        " ",
        h("strong", {}, nameOf(DROPS, next.type)),
        " ",
        amountOf(next),
      )
    : "";

/** The time until the next check-in, kept right while the page is open. */
function wait({ nextCheckInAt }) {
  if (!nextCheckInAt) return "";
  const text = quiet();
  const tell = () =>
    (text.textContent = t("The next check-in opens {when} (00:00 UTC).", { when: until(nextCheckInAt) }));
  const timer = setInterval(() => (text.isConnected ? tell() : clearInterval(timer)), 30_000);
  tell();
  return text;
}

const amountOf = ({ type, least, most }) =>
  type === "CREDITS" || type === "EXPERIENCE"
    ? `${number(least)}–${number(most)}`
    : `${percent(least)}–${percent(most)}`;

function chances(rows) {
  if (!rows.length) return quiet(t("Nothing can be won at the moment."));
  const lasts = ({ effectiveTimeInMinutes: minutes }) =>
    h("span", { class: "hint" }, minutes ? t("for {time}", { time: lasting(minutes) }) : t("at once"));
  return table(
    t("Chances of a check-in"),
    [
      { label: t("You win"), cell: (row) => [nameOf(DROPS, row.type), lasts(row)] },
      { label: t("How much"), number: true, cell: amountOf },
      { label: t("Chance"), number: true, cell: (row) => percent(row.probability, 1) },
    ],
    rows,
    "narrow",
  );
}

/** The proof, loaded when it is opened; the commitments are noted with each visit, before the draws. */
function proof({ session, report }) {
  const place = h("div", { "aria-live": "polite" });
  const shown = details(t("Proof that draws are fair"), place);
  const loaded = import("./fairness.js").then(async ({ fairness }) =>
    place.append(...(await fairness(session, report))),
  );
  loaded.catch(report);
  return shown;
}
