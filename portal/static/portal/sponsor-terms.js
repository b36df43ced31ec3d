// Terms of a policy from a template, for owners of a sponsor with a budget.

import { field, h } from "./dom.js";
import { t } from "./text.js";

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const WHOLE = /^[1-9]\d{0,14}$/;
const DAY_SECONDS = 86_400;
const NAME = /^[\w-]{1,40}$/;

const text = (name, attributes) => h("input", { name, autocomplete: "off", ...attributes });
const address = (name) => text(name, { placeholder: "0x…" });
const whole = (name, value = "") => text(name, { inputmode: "numeric", value });
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
    fault: ({ userCalls }) => !WHOLE.test(userCalls) && t("Enter whole numbers above 0."),
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
    fault: ({ contract }) => noAddress(contract),
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
    fault: ({ counterpart, leastBalance }) =>
      noAddress(counterpart) || (!/^[1-9]\d{0,76}$/.test(leastBalance) && t("Enter whole numbers above 0.")),
  },
  newcomers: {
    label: t("New profiles that my server requests"),
    fields: () => [
      field(
        t("New profiles a day"),
        whole("windowCalls", 100),
        h("a", { href: "/docs/profiles" }, t("How to create a profile for a user")),
      ),
    ],
    terms: ({ windowCalls }) => ({
      purpose: "profiles",
      windowSeconds: DAY_SECONDS,
      windowCalls: Number(windowCalls),
    }),
    fault: ({ windowCalls }) => !WHOLE.test(windowCalls) && t("Enter whole numbers above 0."),
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
    fault: ({ signer }) => noAddress(signer),
  },
};

const noAddress = (written) =>
  !ADDRESS.test(written.trim()) && t("Enter an address: 0x and 40 more characters.");

/** The fields of a policy; those of a template are shown where it is chosen. */
export function termsFields({ named = false } = {}) {
  const templates = Object.entries(TEMPLATES);
  const own = h("div", { class: "fields" });
  const policy = text("policy", { maxlength: 40 });
  const choose = (name) => {
    own.replaceChildren(...TEMPLATES[name].fields());
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
    field(t("Maximum credits for one call"), whole("callCredits", 1000)),
    field(t("Maximum credits in total (empty for no limit but the budget)"), whole("campaignCredits")),
    named &&
      field(
        t("Name of the policy"),
        policy,
        t("If the sponsor has a policy of this name, it gets these terms."),
      ),
  ];
}

/** What is wrong with the values, or null. */
export function termsFault(values) {
  const { template, callCredits, campaignCredits, policy = template } = values;
  if (!WHOLE.test(callCredits) || (campaignCredits && !WHOLE.test(campaignCredits)))
    return t("Enter whole numbers above 0.");
  if (!NAME.test(policy)) return t("The name of a policy has letters, digits, hyphens and underscores.");
  return TEMPLATES[template].fault(values) || null;
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
