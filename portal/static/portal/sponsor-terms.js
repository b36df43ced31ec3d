// Terms of a policy from a template, for owners of a sponsor with a budget.

import { field, h } from "./dom.js";
import { number, t } from "./text.js";
import { pricing } from "./worth.js";

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const WHOLE = /^[1-9]\d{0,14}$/;
const HOUR_SECONDS = 3_600;
const MOST_FIRST_DAYS = 365;
const MOST_WINDOW_HOURS = 8_760;
const NAME = /^[\w-]{1,40}$/;

const text = (name, attributes) => h("input", { name, autocomplete: "off", ...attributes });
const address = (name) => text(name, { placeholder: "0x…" });
const whole = (name, value = "") => text(name, { inputmode: "numeric", value });

/** A field of credits, which says below what they are worth. */
function creditsField(label, name, worth, value = "") {
  const price = h("span", { class: "hint" });
  const input = whole(name, value);
  const show = () => {
    const amount = WHOLE.test(input.value) && worth(Number(input.value));
    price.textContent = amount ? t("{amount} at the price of credits", { amount }) : "";
  };
  input.addEventListener("input", show);
  show();
  return field(label, input, price);
}

/** What is wrong with the first of these fields that is no whole number above 0; those that are `optional` may be empty. */
function notWhole(values, names, optional = []) {
  const wrong = [...names, ...optional].find(
    (name) => !WHOLE.test(values[name]) && (values[name] || names.includes(name)),
  );
  return wrong && { name: wrong, text: t("Enter whole numbers above 0.") };
}

const orNull = (written) => (written ? Number(written) : null);
const lines = (written) =>
  written
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

/** By the name of the policy: what is chosen, the fields, and the terms that their values give. */
const TEMPLATES = {
  "first-calls": {
    label: t("The first calls of each new profile"),
    fields: () => [field(t("Calls of each profile"), whole("userCalls", 10))],
    terms: ({ userCalls }) => ({
      profiles: "new",
      newSince: new Date().toISOString(),
      userCalls: Number(userCalls),
    }),
    fault: (values) => notWhole(values, ["userCalls"]),
  },
  contract: {
    label: t("Calls of my contract"),
    fields: () => [
      field(t("Contract"), address("contract")),
      field(
        t("Functions (empty for all)"),
        h("textarea", { name: "functions", rows: 2, placeholder: "mint(address to, uint256 amount)" }),
        t("One per line: a signature, a selector, or the name of a well-known function such as follow."),
      ),
    ],
    terms: ({ contract, functions }) => ({
      targets: [{ contract: contract.trim(), functions: lines(functions) }],
    }),
    fault: (values) => noAddress(values, "contract"),
  },
  holders: {
    label: t("Profiles that hold my token"),
    fields: () => [
      field(t("Token"), address("counterpart")),
      field(t("Minimum balance, in the token's smallest unit"), whole("leastBalance", 1)),
    ],
    terms: ({ counterpart, leastBalance }) => ({
      profiles: "holding",
      counterpart: counterpart.trim(),
      leastBalance,
    }),
    fault: (values) =>
      noAddress(values, "counterpart") ||
      (!/^[1-9]\d{0,76}$/.test(values.leastBalance) && {
        name: "leastBalance",
        text: t("Enter whole numbers above 0."),
      }),
  },
  newcomers: {
    label: t("New profiles that my server requests"),
    fields: ({ service, worth }) => [
      field(
        t("Chain"),
        h(
          "select",
          { name: "chainId" },
          h("option", { value: "" }, t("every chain")),
          service.chains.map(({ chainId, name }) => h("option", { value: chainId }, name)),
        ),
        h("a", { href: "/docs/profiles" }, t("How to create a profile for a user")),
      ),
      field(t("New profiles in each window"), whole("windowCalls", 100)),
      field(t("Length of the window, in hours"), whole("windowHours", 24)),
      field(t("New profiles in total (empty for no limit)"), whole("campaignCalls")),
      field(
        t("New profiles of one origin in a day (empty for no limit)"),
        whole("originCalls"),
        t("Your server names the origin in its request, such as a keyed digest of the user's IP address."),
      ),
      creditsField(t("First credits of each profile (empty for none)"), "firstCredits", worth),
      field(t("Days until first credits expire"), whole("firstDays")),
    ],
    terms: (values) => ({
      purpose: "profiles",
      chainId: orNull(values.chainId),
      windowSeconds: Number(values.windowHours) * HOUR_SECONDS,
      windowCalls: Number(values.windowCalls),
      campaignCalls: orNull(values.campaignCalls),
      originCalls: orNull(values.originCalls),
      firstCredits: orNull(values.firstCredits),
      firstDays: orNull(values.firstDays),
    }),
    fault: (values, { service }) =>
      notWhole(
        values,
        ["windowCalls", "windowHours"],
        ["campaignCalls", "originCalls", "firstCredits", "firstDays"],
      ) ||
      (values.windowHours > MOST_WINDOW_HOURS && {
        name: "windowHours",
        text: t("Enter at most {number}.", { number: number(MOST_WINDOW_HOURS) }),
      }) ||
      firstFault(values, service),
  },
  vouchers: {
    label: t("Calls with a voucher from my server"),
    fields: () => [
      field(
        t("Address of the key that signs vouchers"),
        address("signer"),
        h("a", { href: "/docs/sponsors#vouchers" }, t("How to sign a voucher")),
      ),
    ],
    terms: () => ({ profiles: "vouched" }),
    fault: (values) => noAddress(values, "signer"),
  },
};

const noAddress = (values, name) =>
  !ADDRESS.test(values[name].trim()) && { name, text: t("Enter an address: 0x and 40 more characters.") };

/** What is wrong with first credits: they have both a number and days, and are given with the profile at home. */
function firstFault({ chainId, firstCredits, firstDays }, service) {
  if (firstCredits && chainId && Number(chainId) !== service.chainId)
    return { name: "firstCredits", text: t("Only a profile on the home chain gets first credits.") };
  if (firstCredits && (!firstDays || firstDays > MOST_FIRST_DAYS))
    return {
      name: "firstDays",
      text: t("First credits expire: enter 1 to {number} days.", { number: number(MOST_FIRST_DAYS) }),
    };
  return (
    !firstCredits && firstDays && { name: "firstCredits", text: t("Enter the first credits, or no days.") }
  );
}

/** What the fields tell: the service's chains, and what credits are worth. */
export async function known({ session, service }) {
  // Packs are sold to a profile.
  return { service: await service, worth: session.address ? await pricing(session) : () => "" };
}

/** The fields of a policy; those of a template are shown where it is chosen. */
export function termsFields({ service, worth, named = false }) {
  const templates = Object.entries(TEMPLATES);
  const own = h("div", { class: "fields" });
  const policy = text("policy", { maxlength: 40 });
  const choose = (name) => {
    own.replaceChildren(...TEMPLATES[name].fields({ service, worth }));
    policy.value = name;
  };
  choose(templates[0][0]);
  return [
    field(
      t("Which calls does it pay for?"),
      h(
        "select",
        { name: "template", onchange: ({ target }) => choose(target.value) },
        templates.map(([name, { label }]) => h("option", { value: name }, label)),
      ),
    ),
    own,
    creditsField(t("Maximum credits for one call"), "callCredits", worth, 1000),
    creditsField(t("Maximum credits in total (empty for no limit but the budget)"), "campaignCredits", worth),
    named &&
      field(
        t("Name of the policy"),
        policy,
        t("If the sponsor has a policy of this name, it gets these terms."),
      ),
  ];
}

/** What is wrong with the values, and the field that it is in; or null. */
export function termsFault(values, knowing) {
  const { template, policy = template } = values;
  if (!NAME.test(policy))
    return { name: "policy", text: t("The name of a policy has letters, digits, hyphens and underscores.") };
  return (
    TEMPLATES[template].fault(values, knowing) ||
    notWhole(values, ["callCredits"], ["campaignCredits"]) ||
    null
  );
}

/** The values as the terms of a policy. */
export function termsOf(values) {
  const { template, callCredits, campaignCredits } = values;
  return {
    ...TEMPLATES[template].terms(values),
    callCredits: Number(callCredits),
    campaignCredits: campaignCredits ? Number(campaignCredits) : null,
  };
}

/** Store the values as terms; a key for vouchers is added first. */
export async function saveTerms(values, { session, path }) {
  const { template, policy = template, signer } = values;
  if (signer) await session.post(`${path}/signers`, { address: signer.trim() });
  await session.put(`${path}/policies/${policy}`, termsOf(values));
}
