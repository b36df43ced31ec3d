// What a draft of terms would have paid of the newest calls.

import { actionButton, form, h, panel, say } from "./dom.js";
import { termsFault, termsFields, termsOf } from "./sponsor-terms.js";
import { RULES } from "./sponsor-words.js";
import { credits, number, t } from "./text.js";
import { nameOf } from "./words.js";

/** Adds a button beside that of a form of terms, and its outcome below. */
export function withPreview(terms, context, knowing) {
  const outcome = h("div", { role: "status" });
  const fault = terms.querySelector("[role=alert]");
  const ask = async () => {
    const values = Object.fromEntries(new FormData(terms));
    outcome.replaceChildren();
    if (!say(fault, terms, termsFault(values, knowing)))
      outcome.replaceChildren(...(await previewed(values, context)));
  };
  terms
    .querySelector("button:last-child")
    .after(" ", actionButton(t("Preview"), ask, context.report, { kind: "plain" }));
  return [terms, outcome];
}

/** A form of terms that stores nothing, for members who cannot save terms. */
export function drafts(context, knowing) {
  const outcome = h("div", { role: "status" });
  const ask = async (values) => outcome.replaceChildren(...(await previewed(values, context)));
  return panel(
    t("Preview a policy"),
    h("p", {}, t("See what a draft of terms would have paid of the newest calls. This form stores nothing.")),
    form(
      {
        button: t("Preview"),
        checks: (values) => termsFault(values, knowing),
        action: ask,
        report: context.report,
      },
      ...termsFields(knowing),
    ),
    outcome,
  );
}

const previewed = async (values, { session, path }) =>
  shown(await session.post(`${path}/preview`, termsOf(values)));

function shown({ of, calls, paid, credits: cost, undecided, assumed, refusals }) {
  if (!calls)
    return [
      h(
        "p",
        { class: "notice" },
        t("Neither you nor others have calls over which these terms can be previewed."),
      ),
    ];
  const values = { calls: number(calls), paid: number(paid), credits: credits(cost) };
  const sentence =
    of === "own"
      ? t(
          "Of your newest {calls} calls, paid or refused, these terms would have paid {paid}, for {credits}.",
          values,
        )
      : t(
          "You have no calls yet. Of the newest {calls} calls that anyone sent to these contracts, these terms would have paid {paid}, for {credits}.",
          values,
        );
  const rules = refusals.map(({ rule, calls: refused }) =>
    h("li", {}, h("a", { href: `/problems/${rule}` }, nameOf(RULES, rule)), `: ${number(refused)}`),
  );
  return [
    h("p", { class: "notice" }, h("strong", {}, sentence)),
    refusals.length > 0 && h("p", {}, t("Calls that they would have refused, by rule:")),
    refusals.length > 0 && h("ul", { class: "facts" }, rules),
    undecided > 0 &&
      h(
        "p",
        {},
        t(
          "{number} of them depend on when their profiles first signed in here. The service does not tell that about the users of others.",
          { number: number(undecided) },
        ),
      ),
    assumed &&
      h(
        "p",
        {},
        t("The preview assumes that each call has a voucher, or each profile the token or the follow."),
      ),
    h(
      "p",
      { class: "quiet" },
      t(
        "As if the terms had begun with the first of these calls, without other policies, the budget and the balance.",
      ),
    ),
  ].filter(Boolean);
}
