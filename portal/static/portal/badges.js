// Badges with the benefits that the user has, those that a subscription would give, and bonuses for a time.

import { h, panel, quiet } from "./dom.js";
import { icon, titled } from "./icons.js";
import { credits, number, percent, t, tn, until } from "./text.js";
import { BONUSES, nameOf } from "./words.js";

export function badges(account, dashboard) {
  const { userInfo } = dashboard;
  const own = badge(
    t("Your badge"),
    account.permanentBadge,
    dashboard.permanentBadge,
    userInfo.permanentExp,
    userInfo.percentToNextPermanentBadge,
  );
  const subscribers = userInfo.isSubscriber
    ? badge(
        t("Your subscriber badge"),
        account.subscriberBadge,
        dashboard.subscriberBadge,
        userInfo.subscriptionExp,
        userInfo.percentToNextSubscriberBadge,
      )
    : offered(account.subscriberBadge, dashboard.subscriberBadge);
  return h("div", { id: "badges", class: "cards" }, own, subscribers, bonuses(dashboard.modifiers));
}

function badge(title, name, terms, experience, share) {
  const isTop = terms.exp_upper_bound === Number.MAX_SAFE_INTEGER;
  const left = t("{number} more experience to the next badge", {
    number: number(Math.max(0, terms.exp_upper_bound - experience)),
  });
  const element = panel(
    titled("BADGE", title),
    h("p", { class: "badge-name" }, name),
    !isTop && h("progress", { value: share, max: 1, "aria-label": left }),
    quiet(isTop ? t("{number} experience: the top badge", { number: number(experience) }) : left),
    // The account's own debt limit, which may be lower, is beside the balance.
    benefits({ ...terms, acceptable_credit_debt: 0 }, "has"),
  );
  element.classList.add("earned");
  return element;
}

const offered = (name, terms) =>
  h(
    "section",
    { class: "panel offered" },
    h("h2", {}, titled("SUBSCRIBED_PAYOUT", t("With a subscription"))),
    h("p", {}, t("You would have the badge {name}, which gives:", { name })),
    benefits(terms, "offers"),
    h("a", { href: "#plan" }, t("See plans")),
  );

function benefits(terms, kind) {
  const gains = [
    [
      terms.credits_back_percent,
      (value) => t("{percent} of each transaction's cost back", { percent: percent(value) }),
    ],
    [terms.bonus_creds_push_ads, (value) => t("{percent} more for push ads", { percent: percent(value) })],
    [terms.bonus_creds_video_ads, (value) => t("{percent} more for videos", { percent: percent(value) })],
    [terms.bonus_creds_offerwall, (value) => t("{percent} more for offers", { percent: percent(value) })],
    [terms.bonus_creds_surveys, (value) => t("{percent} more for surveys", { percent: percent(value) })],
    [
      terms.bonus_daily_check_in_attempts,
      (value) => tn("{count} more check-in a day", "{count} more check-ins a day", value),
    ],
    [
      terms.acceptable_credit_debt,
      (value) =>
        t("A debt limit of {credits}, but at most what you have paid or earned", { credits: credits(value) }),
    ],
  ].filter(([value]) => value > 0);
  if (!gains.length) return quiet(t("This badge has no benefits yet; the next one does."));
  return h(
    "ul",
    { class: `benefits ${kind}` },
    gains.map(([value, text]) => h("li", {}, icon(kind === "has" ? "DONE" : "MORE"), text(value))),
  );
}

function bonuses(rows) {
  const items = rows.map((row) =>
    h(
      "li",
      {},
      t("{bonus}: +{percent}, ends {when}", {
        bonus: nameOf(BONUSES, row.modifier_type),
        percent: percent(row.value),
        when: until(row.expires_at),
      }),
    ),
  );
  return panel(
    titled("BONUS", t("Active bonuses")),
    rows.length ? h("ul", {}, items) : quiet(t("None right now. You can win bonuses at check-in.")),
  );
}
