// Open a sponsor: its name, its first policy, and what it can spend at most.

import { field, form, h } from "./dom.js";
import { known, saveTerms, termsFault, termsFields } from "./sponsor-terms.js";
import { credits, t } from "./text.js";

const NAME = /^[a-z0-9][a-z0-9-]{1,38}[a-z0-9]$/;

/** `choose(name, hash, outcome)` shows a section of the new sponsor, and an outcome. */
export async function opening({ dayCredits, monthCredits }, context) {
  const { session, report, choose } = context;
  const knowing = await known(context);
  const open = async (values) => {
    const [name, displayName] = [values.slug.trim(), values.displayName.trim()];
    await session.post("/api/sponsors", { name, displayName });
    try {
      await saveTerms(values, { session, path: `/api/sponsors/${name}` });
    } catch (error) {
      // The sponsor is open; its terms can be written under "Policies".
      return choose(name, "#policies", error);
    }
    choose(name, "#funds", t("{name} is open. It pays as soon as it has credits.", { name: displayName }));
  };
  const checks = (values) => {
    if (!values.displayName.trim()) return t("Give the sponsor a name.");
    if (!NAME.test(values.slug.trim()))
      return t("The name in requests has 3 to 40 small letters, digits and hyphens.");
    return termsFault(values, knowing);
  };
  return [
    h(
      "p",
      {},
      t(
        "It pays for your users' transactions, by rules that you can change at any time. Opening it is free; afterwards you buy credits for it with your card.",
      ),
    ),
    form(
      { button: t("Open the sponsor"), checks, action: open, report },
      field(t("Name"), h("input", { name: "displayName", maxlength: 80, autocomplete: "organization" })),
      field(
        t("Name in requests"),
        h("input", { name: "slug", maxlength: 40, autocomplete: "off", placeholder: "my-dapp" }),
        t("Calls name your sponsor with it. It never changes."),
      ),
      ...termsFields(knowing),
      h(
        "p",
        { class: "notice" },
        t(
          "Budget: it pays at most {day} a day and {month} a month (UTC), whatever its rules say. Ask the operator for more.",
          { day: credits(dayCredits), month: credits(monthCredits) },
        ),
      ),
    ),
  ];
}
