// Credits bought once, and bought by themselves when they run low.

import {
  actionButton,
  actions,
  definitions,
  details,
  field,
  form,
  h,
  panel,
  quiet,
  targetPanel,
} from "./dom.js";
import { atStripe, buy } from "./checkout.js";
import { credits, minorUnits, money, number, t, unixDate, written } from "./text.js";
import { callsFor, ifOffered } from "./worth.js";

const PAUSED = {
  "card-declined": t("Your bank declined the card."),
  "authentication-required": t("Your bank wanted a confirmation."),
  "payment-method-required": t("No card is saved any more."),
  "currency-fixed": t("Your plan is in another currency than the pack."),
  "address-required": t(
    "Tax depends on your address, which is missing. Replace the card, and enter it in full.",
  ),
  "billing-refused": t("Stripe refused the payment."),
  "no-credits": t("A purchase gave no credits."),
  "pack-changed": t("The price of the pack was changed."),
};

/** What this service sells once, and the terms of the top-up; null if it sells no packs. */
export async function packsOffered({ session }) {
  const [offer, terms] = await Promise.all(
    ["packs", "topUp"].map((name) => ifOffered(session.get(`/api/payments/${name}`))),
  );
  return offer && { ...offer, terms };
}

/** Panels of packs and of the top-up, in the order of the service; before the first payment the likely currency comes first. */
export function packPanels(offer, currency, context) {
  if (!offer) return [];
  const { terms, currencies } = offer;
  const packs = [...offer.packs].sort((a, b) => (b.currency === currency) - (a.currency === currency));
  return [
    once({ packs, currencies, currency }, context),
    terms && packs.length > 0 && topUp(terms, packs, context),
  ].filter(Boolean);
}

function once({ packs, currencies, currency }, context) {
  const list = h("ul", { class: "packs" });
  const show = (code) =>
    list.replaceChildren(
      ...packs.filter((pack) => pack.currency === code).map((pack) => h("li", {}, offered(pack, context))),
    );
  const codes = [...new Set(packs.map((pack) => pack.currency))];
  const choice = codes.length > 1 && choiceOf(codes, codes[0]);
  if (choice) choice.addEventListener("change", () => show(choice.value));
  if (codes.length) show(codes[0]);
  return targetPanel(
    "packs",
    t("Buy credits once"),
    h("p", {}, t("They are added at once, do not expire, and need no plan.")),
    choice && h("div", { class: "short" }, field(t("Currency"), choice)),
    codes.length > 0 && list,
    currencies.length > 0 && details(t("Another amount"), anyAmount(currencies, currency, context)),
  );
}

export const choiceOf = (codes, chosen) =>
  h(
    "select",
    { name: "currency" },
    codes.map((code) => h("option", { value: code, selected: code === chosen }, code.toUpperCase())),
  );

function offered({ pack, cost, currency, credits: sum, bonusCredits }, context) {
  return [
    h("strong", {}, credits(sum)),
    h("span", { class: "hint" }, callsFor(sum, context.typicalCost)),
    bonusCredits > 0 &&
      h("span", { class: "good" }, t("{number} of them as a bonus", { number: number(bonusCredits) })),
    actionButton(
      t("Buy for {price}", { price: money(cost, currency) }),
      () => buy({ pack }, { cost, currency, gives: sum }, context),
      context.report,
    ),
  ];
}

function anyAmount(currencies, chosen, context) {
  const terms = (code) => currencies.find(({ currency }) => currency === code);
  const gives = h("span", { class: "hint", "aria-live": "polite" });
  const checks = ({ amount, currency }) => {
    const { minimum, maximum } = terms(currency);
    const minor = minorUnits(amount) ?? 0;
    return minor >= minimum && minor <= maximum
      ? null
      : t("Enter an amount from {least} to {most}.", {
          least: money(minimum, currency),
          most: money(maximum, currency),
        });
  };
  const element = form(
    {
      button: t("Buy"),
      kind: "plain",
      checks,
      action: ({ amount, currency }) => {
        const cost = minorUnits(amount);
        return buy(
          { amount: cost, currency },
          { cost, currency, gives: creditsFor(cost, currency, currencies) },
          context,
        );
      },
      report: context.report,
    },
    field(
      t("Amount"),
      h("input", { name: "amount", inputmode: "decimal", autocomplete: "off", value: written(1000) }),
      gives,
    ),
    field(
      t("Currency"),
      choiceOf(
        currencies.map(({ currency }) => currency),
        chosen,
      ),
    ),
  );
  previewCredits(element, gives, currencies);
  return element;
}

/** The credits that an amount in minor units gives; 0 where no rate is known. */
export function creditsFor(minor, currency, currencies) {
  const rate = currencies.find((each) => each.currency === currency)?.creditsPerMajorUnit;
  return minor && rate ? Math.floor((minor * rate) / 100) : 0;
}

/** Update a text with the credits that the form's amount gives. */
export function previewCredits(element, gives, currencies) {
  const tell = () => {
    const { amount, currency } = Object.fromEntries(new FormData(element));
    const sum = creditsFor(minorUnits(amount), currency, currencies);
    gives.textContent = sum ? t("gives {credits}", { credits: credits(sum) }) : "";
  };
  element.addEventListener("input", tell);
  tell();
}

function topUp(terms, packs, context) {
  const { session, again, report } = context;
  const isOn = terms.status === "on";
  const end = async () => {
    await session.put("/api/payments/topUp", { enabled: false });
    await again();
    report(t("The automatic top-up is off."));
  };
  const state =
    terms.consentedAt !== null &&
    terms.status !== "off" &&
    definitions(
      [t("Below"), credits(terms.threshold)],
      [t("Buy"), t("a pack for {price}", { price: money(terms.cost, terms.currency) })],
      [
        t("Spent this month"),
        t("{spent} of at most {limit}", {
          spent: money(terms.spentThisMonth, terms.currency),
          limit: money(terms.monthlyLimit, terms.currency),
        }),
      ],
      [t("Agreed on"), unixDate(terms.consentedAt)],
    );
  return panel(
    t("Automatic top-up"),
    h(
      "p",
      {},
      isOn
        ? t("On: you do not run out of credits.")
        : t("Off. Turn it on so that you never run out of credits."),
    ),
    terms.status === "paused" &&
      h(
        "p",
        { class: "notice bad" },
        t("Paused. {reason} Turn it on again to resume.", { reason: PAUSED[terms.pausedReason] ?? "" }),
      ),
    state,
    actions(terms.status !== "off" && actionButton(t("Turn off"), end, report, { kind: "danger" })),
    details(isOn ? t("Change the terms") : t("Turn on"), consent(terms, packs, context)),
  );
}

/** The form of the terms, whose sentence the user accepts as it stands there. */
function consent(terms, packs, context) {
  const { session, again, report } = context;
  const sentence = h("span");
  const values = (element) => Object.fromEntries(new FormData(element));
  const text = ({ threshold, pack, monthlyLimit }) => {
    const { cost, currency } = packs.find((each) => each.pack === pack) ?? packs[0];
    return t(
      "When I have less than {threshold}, buy a pack for {price} with my saved card, at most {limit} a month, until I turn this off. Each purchase is listed in my activity.",
      {
        threshold: credits(Number(threshold) || 0),
        price: money(cost, currency),
        limit: money(minorUnits(monthlyLimit) ?? 0, currency),
      },
    );
  };
  const checks = ({ threshold, pack, monthlyLimit, agreed }) => {
    const { cost, currency, credits: gives } = packs.find((each) => each.pack === pack);
    if (!/^\d{1,9}$/.test(threshold) || Number(threshold) < 1)
      return t("Enter a whole number of credits above 0.");
    if (Number(threshold) > gives)
      return t("The pack gives {credits}. Enter at most that, or choose a larger pack.", {
        credits: credits(gives),
      });
    if ((minorUnits(monthlyLimit) ?? 0) < cost)
      return t("The limit of a month must be at least {price}.", { price: money(cost, currency) });
    return agreed ? null : t("Tick the box to agree.");
  };
  const save = async (entered) => {
    const body = {
      enabled: true,
      threshold: Number(entered.threshold),
      pack: entered.pack,
      monthlyLimit: minorUnits(entered.monthlyLimit),
      consent: text(entered),
    };
    try {
      await session.put("/api/payments/topUp", body);
    } catch (error) {
      if (error.code !== "payment-method-required") throw error;
      return atStripe(context, "card");
    }
    await again();
    report(t("The automatic top-up is on."));
  };
  const element = form(
    { button: t("Turn on"), checks, action: save, report },
    field(
      t("When I have fewer credits than"),
      h("input", {
        name: "threshold",
        inputmode: "numeric",
        value: String(terms.threshold || Math.min(2000, packs[0].credits)),
      }),
    ),
    field(
      t("Buy"),
      h(
        "select",
        { name: "pack" },
        packs.map(({ pack, credits: sum, cost, currency }) =>
          h(
            "option",
            { value: pack, selected: pack === terms.pack },
            `${credits(sum)} – ${money(cost, currency)}`,
          ),
        ),
      ),
    ),
    field(
      t("At most a month"),
      h("input", {
        name: "monthlyLimit",
        inputmode: "decimal",
        value: written(terms.monthlyLimit || 5 * packs[0].cost),
      }),
    ),
    h("label", { class: "choice" }, h("input", { type: "checkbox", name: "agreed" }), sentence),
    quiet(t("You can turn it off at any time.")),
  );
  const tell = () => (sentence.textContent = text(values(element)));
  element.addEventListener("input", tell);
  tell();
  return element;
}
