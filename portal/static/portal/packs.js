// Credits bought once, and bought by themselves when they run low.

import { actionButton, actions, definitions, details, field, form, h, panel, quiet } from "./dom.js";
import { atStripe, buy } from "./checkout.js";
import { credits, minorUnits, money, number, t, unixDate, written } from "./text.js";

const PAUSED = {
  "card-declined": t("Your bank declined the card."),
  "authentication-required": t("Your bank wanted a confirmation."),
  "payment-method-required": t("No card is saved any more."),
  "billing-refused": t("Stripe refused the payment."),
  "no-credits": t("A purchase gave no credits."),
  "pack-changed": t("The price of the pack was changed."),
};

/** Panels of packs and of the top-up; none where this service sells no packs. */
export async function packPanels(context) {
  const offer = await ifOffered(context.session.get("/api/payments/packs"));
  if (!offer) return [];
  const terms = offer.packs.length ? await ifOffered(context.session.get("/api/payments/topUp")) : null;
  return [once(offer, context), terms && topUp(terms, offer.packs, context)].filter(Boolean);
}

const ifOffered = (asked) =>
  asked.catch((error) => {
    if (error.status === 404 || error.code === "billing-unavailable") return null;
    throw error;
  });

function once({ packs, currencies }, context) {
  return panel(
    t("Buy credits once"),
    h("p", {}, t("They are added at once, do not expire, and need no plan.")),
    packs.length > 0 && h("ul", { class: "packs" }, packs.map((pack) => h("li", {}, offered(pack, context)))),
    currencies.length > 0 && details(t("Another amount"), anyAmount(currencies, context)),
  );
}

function offered({ pack, cost, currency, credits: sum, bonusCredits }, context) {
  return [
    h("strong", {}, credits(sum)),
    bonusCredits > 0 && h("span", { class: "good" }, t("{number} of them as a bonus", { number: number(bonusCredits) })),
    actionButton(t("Buy for {price}", { price: money(cost, currency) }), () => buy({ pack }, context), context.report),
  ];
}

function anyAmount(currencies, context) {
  const terms = (code) => currencies.find(({ currency }) => currency === code);
  const gives = h("span", { class: "hint", "aria-live": "polite" });
  const preview = (element) => {
    const { amount, currency } = Object.fromEntries(new FormData(element));
    const minor = minorUnits(amount);
    gives.textContent = minor ? t("gives {credits}", { credits: credits(Math.floor((minor * terms(currency).creditsPerMajorUnit) / 100)) }) : "";
  };
  const checks = ({ amount, currency }) => {
    const { minimum, maximum } = terms(currency);
    const minor = minorUnits(amount) ?? 0;
    return minor >= minimum && minor <= maximum ? null : t("Enter an amount from {least} to {most}.", { least: money(minimum, currency), most: money(maximum, currency) });
  };
  const element = form(
    { button: t("Buy"), kind: "plain", checks, action: ({ amount, currency }) => buy({ amount: minorUnits(amount), currency }, context), report: context.report },
    field(t("Amount"), h("input", { name: "amount", inputmode: "decimal", autocomplete: "off", value: written(1000) }), gives),
    field(t("Currency"), h("select", { name: "currency" }, currencies.map(({ currency }) => h("option", { value: currency }, currency.toUpperCase())))),
  );
  element.addEventListener("input", () => preview(element));
  preview(element);
  return element;
}

function topUp(terms, packs, context) {
  const { session, again, report } = context;
  const isOn = terms.status === "on";
  const end = async () => {
    await session.put("/api/payments/topUp", { enabled: false });
    await again();
    report(t("The automatic top-up is off."));
  };
  const state = terms.consentedAt !== null && terms.status !== "off" && definitions(
    [t("Below"), credits(terms.threshold)],
    [t("Buy"), t("a pack for {price}", { price: money(terms.cost, terms.currency) })],
    [t("Spent this month"), t("{spent} of at most {limit}", { spent: money(terms.spentThisMonth, terms.currency), limit: money(terms.monthlyLimit, terms.currency) })],
    [t("Agreed on"), unixDate(terms.consentedAt)],
  );
  return panel(
    t("Automatic top-up"),
    h("p", {}, isOn ? t("On: you do not run out of credits.") : t("Off. Turn it on so that you never run out of credits.")),
    terms.status === "paused" && h("p", { class: "notice bad" }, t("Paused. {reason} Turn it on again to resume.", { reason: PAUSED[terms.pausedReason] ?? "" })),
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
    return t("When I have less than {threshold}, buy a pack for {price} with my saved card, at most {limit} a month, until I turn this off. I am told of each purchase.", {
      threshold: credits(Number(threshold) || 0), price: money(cost, currency), limit: money(minorUnits(monthlyLimit) ?? 0, currency),
    });
  };
  const checks = ({ threshold, pack, monthlyLimit, agreed }) => {
    const { cost, currency } = packs.find((each) => each.pack === pack);
    if (!/^\d{1,9}$/.test(threshold) || Number(threshold) < 1) return t("Enter a whole number of credits above 0.");
    if ((minorUnits(monthlyLimit) ?? 0) < cost) return t("The limit of a month must be at least {price}.", { price: money(cost, currency) });
    return agreed ? null : t("Tick the box to agree.");
  };
  const save = async (entered) => {
    const body = { enabled: true, threshold: Number(entered.threshold), pack: entered.pack, monthlyLimit: minorUnits(entered.monthlyLimit), consent: text(entered) };
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
    field(t("When I have fewer credits than"), h("input", { name: "threshold", inputmode: "numeric", value: String(terms.threshold || 2000) })),
    field(t("Buy"), h("select", { name: "pack" }, packs.map(({ pack, credits: sum, cost, currency }) => h("option", { value: pack, selected: pack === terms.pack }, `${credits(sum)} – ${money(cost, currency)}`)))),
    field(t("At most a month"), h("input", { name: "monthlyLimit", inputmode: "decimal", value: written(terms.monthlyLimit || 5 * packs[0].cost) })),
    h("label", { class: "choice" }, h("input", { type: "checkbox", name: "agreed" }), sentence),
    quiet(t("You can turn it off at any time.")),
  );
  const tell = () => (sentence.textContent = text(values(element)));
  element.addEventListener("input", tell);
  tell();
  return element;
}
