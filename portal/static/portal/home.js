// The first screen: credits, how long they last, credits on their way, and next steps.

import { actions, figure, h, panel } from "./dom.js";
import { icon, titled } from "./icons.js";
import { credits, date, number, t, tn, unixDate, until } from "./text.js";
import { pricing } from "./worth.js";

const UNPAID = ["past_due", "incomplete", "unpaid"];

export async function home(context) {
  const { session, draw } = context;
  const others = { home: session.get("/api/user/home"), dashboard: session.get("/api/user/dashboardInfo") };
  for (const each of Object.values(others)) each.catch(() => null);
  pricing(session);
  const account = await session.get("/api/user/account");
  const good = h("p", { class: "lead" });
  const facts = h("ul", { class: "facts" });
  const next = actions();
  draw(
    h(
      "section",
      { class: "panel hero-panel" },
      h("h2", {}, titled("CREDITS", t("Your credits"))),
      h("p", { class: account.available < 0 ? "figure bad" : "figure" }, figure(account.available)),
      good,
      facts,
      next,
    ),
  );

  const state = await others.home;
  const { typicalCost, checkIn } = state;
  good.textContent = goodFor(account.available, typicalCost);
  const worth = account.available > 0 ? (await pricing(session))(account.available) : "";
  if (worth) good.append(" ", h("span", { class: "quiet" }, t("Worth {money}.", { money: worth })));
  good.after(...warning(account, state));
  facts.append(...factsOf(account), ...expiring(state.expiring), ...(await arriving(session)));
  next.append(...nextSteps(account, state));
  const [{ ritual }, { badges }, { wallet }] = await Promise.all([
    import("./check-in.js"),
    import("./badges.js"),
    import("./wallet.js"),
  ]);
  const dashboard = await others.dashboard;
  draw(
    firstSteps(state.firstSteps),
    h("div", { class: "cards" }, ritual(checkIn, account, context), wallet(context)),
    badges(account, dashboard),
  );
}

/** The first minute of a newcomer, in three steps; nothing once all are done. */
function firstSteps({ hadCredits, relayedCall }) {
  if (hadCredits && relayedCall) return null;
  const step = (isDone, ...text) =>
    h(
      "li",
      { class: isDone ? "done" : "" },
      icon(isDone ? "DONE" : "OPEN"),
      h("span", {}, ...text, isDone && h("span", { class: "visually-hidden" }, ` (${t("completed")})`)),
    );
  return panel(
    t("Your first steps"),
    h(
      "ol",
      { class: "first-steps" },
      step(true, t("Sign in with your profile.")),
      step(
        hadCredits,
        t("Get your first credits: check in, earn some, or buy a pack."),
        !hadCredits && [" ", h("a", { href: "#earn" }, t("Earn credits"))],
      ),
      step(
        relayedCall,
        t("Add this service to your wallet, and send a transaction. Your credits pay for its gas."),
      ),
    ),
  );
}

/** How many transactions the balance pays for, at recent prices. */
export function goodFor(available, typicalCost) {
  if (available < 0) return t("You owe credits. What comes in pays them back first.");
  if (!typicalCost) return t("Credits pay for the gas of your transactions.");
  const calls = Math.floor(available / typicalCost);
  return calls > 0
    ? tn("About {count} transaction at today's price.", "About {count} transactions at today's price.", calls)
    : t("Not enough for a typical transaction, which costs about {credits} today.", {
        credits: credits(typicalCost),
      });
}

/** The notice that credits run low; nothing if they last, or a payment is open. */
function warning({ available, debtLimit, subscriptionStatus }, { creditLevel, dailyUse, daysLeft }) {
  if (creditLevel === "enough" || UNPAID.includes(subscriptionStatus)) return [];
  const notice = (text, kind = "notice") => [h("p", { class: kind }, text)];
  if (creditLevel === "low") {
    const lasts = daysLeft
      ? tn(
          "At {use} a day they last about {count} day.",
          "At {use} a day they last about {count} days.",
          daysLeft,
          { use: number(dailyUse) },
        )
      : t("At {use} a day they will be used up before tomorrow.", { use: number(dailyUse) });
    return notice(lasts);
  }
  if (!dailyUse && available === 0)
    return notice(t("You have no credits yet. Buy a pack, subscribe, or earn some."));
  const owes = debtLimit > 0 && -available < debtLimit;
  return notice(
    owes
      ? t("Your credits are used up. Get some before the limit of your debt is reached.")
      : t("Your credits are used up. Transactions go through again once you have some."),
    "notice bad",
  );
}

/** What expires soon: given credits, of which transactions take the oldest first. */
function expiring(rows) {
  if (!rows.length) return [];
  const sum = credits(rows.reduce((total, row) => total + row.credits, 0));
  const [first] = rows;
  const text =
    rows.length === 1
      ? t("Expiring on {date}: {credits}. Transactions use them first.", {
          credits: sum,
          date: date(first.expiresAt),
        })
      : t("Expiring within two weeks: {credits}, the first on {date}. Transactions use them first.", {
          credits: sum,
          date: date(first.expiresAt),
        });
  return [h("li", {}, text)];
}

function factsOf({ held, debtLimit, totalQuota, resetDate, subscriptionStatus }) {
  const fact = (...content) => h("li", {}, ...content);
  const plan =
    resetDate < 0
      ? null
      : subscriptionStatus === "active"
        ? t("Your plan gave you {credits} for this period, which ends on {date}.", {
            credits: credits(totalQuota),
            date: unixDate(resetDate),
          })
        : t("Your plan gave you {credits} until {date}.", {
            credits: credits(totalQuota),
            date: unixDate(resetDate),
          });
  return [
    held > 0 &&
      fact(
        t("{credits} more are held for transactions in progress or an undone purchase.", {
          credits: credits(held),
        }),
      ),
    debtLimit > 0 &&
      fact(t("Transactions go through until you owe {credits}.", { credits: credits(debtLimit) })),
    plan && fact(plan, " ", h("a", { href: "#plan" }, t("See your plan"))),
  ].filter(Boolean);
}

/** The earnings that are still held; nothing if they cannot be read. */
async function arriving(session) {
  const held = await session
    .get("/api/user/arriving")
    .catch((error) => (error.status === 404 ? { count: 0 } : Promise.reject(error)));
  if (!held.count) return [];
  const { HELD_BECAUSE } = await import("./words.js");
  const [first] = held.earnings;
  const when = first.arrivesAt ? until(first.arrivesAt) : t("at an unknown time");
  const one = t("Arriving: {credits} {when} from {network}, {why}.", {
    credits: credits(first.credits),
    when,
    network: first.networkName,
    why: HELD_BECAUSE[first.heldBecause] ?? t("held"),
  });
  const all =
    held.count > 1 &&
    tn(
      "In all, {count} earning with {credits} is on its way.",
      "In all, {count} earnings with {credits} are on their way.",
      held.count,
      { credits: credits(held.credits) },
    );
  return [h("li", {}, one, " ", all, " ", h("a", { href: "#earn" }, t("See all")))];
}

function nextSteps({ subscriptionStatus }, { creditLevel, checkIn }) {
  if (UNPAID.includes(subscriptionStatus)) return [link("#plan", t("Complete your payment"))];
  const isSubscribed = subscriptionStatus === "active";
  const kind = creditLevel === "enough" ? "button plain" : "button";
  return [
    link("#plan/packs", t("Buy credits"), kind),
    !isSubscribed && link("#plan", t("Subscribe"), "button plain"),
    link("#earn", t("Earn credits"), "button plain"),
    checkIn.canCheckIn &&
      h(
        "a",
        {
          class: "button plain",
          href: "#home/check-in",
          onclick: () => document.getElementById("check-in")?.focus(),
        },
        t("Check in"),
      ),
  ].filter(Boolean);
}

const link = (href, text, kind = "button") => h("a", { class: kind, href }, text);
