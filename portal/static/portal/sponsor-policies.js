// A sponsor's policies with their limits and use, and a question: would it pay for this call?

import {
  actionButton,
  actions,
  definitions,
  explorerLink,
  field,
  form,
  h,
  panel,
  quiet,
  table,
} from "./dom.js";
import { drafts, withPreview } from "./sponsor-preview.js";
import { known, saveTerms, termsFault, termsFields } from "./sponsor-terms.js";
import { RULES } from "./sponsor-words.js";
import { credits, date, dateTime, lasting, number, percent, t, tn } from "./text.js";
import { nameOf } from "./words.js";

const ADDRESS = /^0x[0-9a-f]{40}$/i;
const HASH = /^0x[0-9a-f]{64}$/i;
const ACTION = /^(profile|0x[0-9a-f]{40})(?:\s+(.+))?$/i;
const DAY_MINUTES = 1_440;
const GWEI = 1_000_000_000n;

export async function show(context) {
  const { session, path, draw } = context;
  const [{ policies }, { mayChangePolicies }, { signers }, knowing] = await Promise.all([
    session.get(`${path}/policies`),
    session.get(`${path}/overview`),
    session.get(`${path}/signers`),
    known(context),
  ]);
  const { service } = knowing;
  draw(
    panel(
      t("Policies"),
      h(
        "p",
        {},
        t("The first policy that fits a call pays for it."),
        " ",
        mayChangePolicies
          ? t("Changes apply to the next call.")
          : t(
              "Owners change the terms of a sponsor with a budget. For another one, ask the operator's staff: they add a new version, which a second person approves.",
            ),
      ),
      !policies.length && quiet(t("This sponsor has no policy yet, so it pays for nothing.")),
      policies.map((policy) => shown(policy, service, mayChangePolicies && context)),
    ),
    mayChangePolicies ? change(context, knowing) : drafts(context, knowing),
    mayChangePolicies && signersOf(signers, service, context),
    simulator(policies, context),
  );
}

function shown({ name, isEnabled, terms, use }, service, owned) {
  const state = !isEnabled
    ? t("switched off")
    : terms
      ? t("version {number}", { number: number(terms.version) })
      : t("no terms yet, so it pays for nothing");
  return h(
    "article",
    { class: "policy" },
    h("h3", {}, name, " ", h("small", { class: isEnabled && terms ? "quiet" : "bad" }, state)),
    terms && used(name, terms, use),
    terms && definitions(...paid(terms, service), ...limits(terms)),
    owned && actions(switched(name, isEnabled, owned)),
  );
}

function switched(name, isEnabled, { session, path, again, report }) {
  const change = async () => {
    await session.put(`${path}/policies/${name}/state`, { isEnabled: !isEnabled });
    await again();
  };
  return actionButton(isEnabled ? t("Switch off") : t("Switch on"), change, report, { kind: "plain small" });
}

function change(context, knowing) {
  const save = async (values) => {
    await saveTerms(values, context);
    await context.again();
    context.report(t("Saved."));
  };
  return panel(
    t("Add or change a policy"),
    ...withPreview(
      form(
        {
          button: t("Save the terms"),
          checks: (values) => termsFault(values, knowing),
          action: save,
          report: context.report,
        },
        ...termsFields({ ...knowing, named: true }),
      ),
      context,
      knowing,
    ),
    quiet(
      h("a", { href: "/docs/sponsors#open-one" }, t("All terms that a policy can have, for your server")),
    ),
  );
}

function signersOf(signers, service, { session, path, again, report }) {
  const remove = async ({ address }) => {
    await session.delete(`${path}/signers/${address}`);
    await again();
  };
  return (
    signers.length > 0 &&
    panel(
      t("Keys that sign vouchers"),
      table(
        t("Keys that sign vouchers"),
        [
          { label: t("Address"), cell: ({ address }) => explorerLink(service, "address", address) },
          { label: t("Since"), cell: ({ since }) => date(since) },
          {
            label: t("Change"),
            cell: (row) => actionButton(t("Remove"), () => remove(row), report, { kind: "plain small" }),
          },
        ],
        signers,
      ),
    )
  );
}

/** The policy's usage; with a total limit, as a part of it. */
function used(name, { campaignCredits, windowCredits }, use) {
  const calls = tn("{count} call", "{count} calls", use.calls);
  const bar =
    campaignCredits &&
    h("progress", { max: campaignCredits, value: use.credits, "aria-label": t("Used of {name}", { name }) });
  const all = campaignCredits
    ? t("{used} of {limit} used, for {calls}", {
        used: number(use.credits),
        limit: credits(campaignCredits),
        calls,
      })
    : t("{credits} used, for {calls}", { credits: credits(use.credits), calls });
  const window =
    windowCredits &&
    h(
      "p",
      {},
      t("In the current window, until {time}: {used} of {limit}", {
        time: dateTime(use.windowEndsAt),
        used: number(use.windowCredits),
        limit: credits(windowCredits),
      }),
    );
  return h("div", {}, h("p", {}, all), bar, window);
}

/** The chain of the terms as `GET /api/service` describes it. */
const chainOf = (terms, { chains }) => chains.find(({ chainId }) => chainId === terms.chainId);

function paid(terms, service) {
  const chain = chainOf(terms, service);
  const there = chain ? { ...service, explorerUrl: chain.explorerUrl } : service;
  const profiles = {
    all: t("every profile"),
    listed: tn("{count} listed profile", "{count} listed profiles", terms.listedProfiles),
    new: terms.newSince && t("new since {time}", { time: dateTime(terms.newSince) }),
    vouched: t("with a voucher from you"),
    holding: t("that hold a token"),
    followed: t("that a profile follows"),
    follower: t("that follow a profile"),
    verified: t("that your server approves"),
  };
  return [
    [
      t("Pays for"),
      terms.purpose === "profiles"
        ? t("new profiles that your server requests")
        : terms.purpose === "welcome"
          ? t("new profiles that their sponsors do not pay for")
          : terms.targets.length
            ? h(
                "ul",
                { class: "facts" },
                terms.targets.map((target) => h("li", {}, targetOf(target, there))),
              )
            : t("every call"),
    ],
    terms.chainId !== null && [t("Chain"), chain?.name ?? String(terms.chainId)],
    [t("Profiles"), profiles[terms.profiles] ?? terms.profiles],
    terms.counterpart !== null && [t("Token or profile"), explorerLink(there, "address", terms.counterpart)],
    terms.leastBalance !== null && [t("Minimum balance"), terms.leastBalance],
    terms.startsAt && [t("From"), dateTime(terms.startsAt)],
    terms.endsAt && [t("Until"), dateTime(terms.endsAt)],
    terms.gasPriceCeilingWei !== null && [
      t("Gas price up to"),
      t("{number} gwei", { number: number(Number(terms.gasPriceCeilingWei) / 1e9) }),
    ],
    terms.sharePercent < 100 && [t("Your share"), percent(terms.sharePercent / 100)],
  ];
}

function targetOf({ contract, functions }, service) {
  const what = contract === "profile" ? t("the profile itself") : explorerLink(service, "address", contract);
  const named = functions
    .map((each) => (each === "0x" ? t("transfer of {currency}", { currency: service.currency }) : each))
    .join(", ");
  return [what, named && ": ", named && h("code", {}, named)];
}

function limits(terms) {
  const limit = (label, value, shownAs = credits) => value !== null && [label, shownAs(value)];
  return [
    limit(t("Per call"), terms.callCredits),
    limit(t("Per user and day"), terms.userDayCredits),
    limit(t("Per user in total"), terms.userCredits),
    limit(t("Calls per user"), terms.userCalls, number),
    limit(t("In {time}", { time: lasting((terms.windowSeconds ?? 0) / 60) }), terms.windowCredits),
    limit(
      t("Number in {time}", { time: lasting((terms.windowSeconds ?? 0) / 60) }),
      terms.windowCalls,
      number,
    ),
    limit(t("In total"), terms.campaignCredits),
    limit(t("Number in total"), terms.campaignCalls, number),
    limit(t("Number per origin and day"), terms.originCalls, number),
    limit(t("First credits"), terms.firstCredits),
    limit(t("First credits expire after"), terms.firstDays, (days) => lasting(days * DAY_MINUTES)),
  ];
}

function simulator(policies, { session, path, report }) {
  const vouched = policies.filter(({ terms }) => terms?.profiles === "vouched");
  const outcome = h("div", { role: "status" });
  const ask = async (values) => {
    const hash = values.transactionHash.trim();
    const call = hash ? { transactionHash: hash } : described(values);
    const answer = await session.post(`${path}/simulate`, { ...call, voucherFor: values.voucherFor ?? "" });
    outcome.replaceChildren(...answered(answer));
  };
  return panel(
    t("Would it pay for this call?"),
    h("p", {}, t("The service decides as for a real call at this moment, but stores and counts nothing.")),
    form(
      { button: t("Ask"), checks: faultOf, action: ask, report },
      field(
        t("Hash of a transaction"),
        h("input", { name: "transactionHash", autocomplete: "off", placeholder: "0x…" }),
        t("Of a call that this service has executed, instead of the fields below."),
      ),
      field(
        t("Profile"),
        h("input", { name: "profile", autocomplete: "off", placeholder: "0x…" }),
        t("A profile that has never signed in here counts as new."),
      ),
      field(
        t("Functions that it calls"),
        h("textarea", { name: "actions", rows: 3, placeholder: "0x… transfer(address,uint256)" }),
        t(
          "One per line: a contract's address or the word profile, then a signature such as transfer(address,uint256), a selector, or nothing for a transfer.",
        ),
      ),
      field(
        t("Highest cost in credits"),
        h("input", { name: "credits", inputmode: "numeric", value: "250" }),
      ),
      field(t("Gas price in gwei"), h("input", { name: "gasPrice", inputmode: "numeric", value: "1" })),
      vouched.length > 0 &&
        field(
          t("Voucher"),
          h(
            "select",
            { name: "voucherFor" },
            h("option", { value: "" }, t("no voucher")),
            vouched.map(({ name }) =>
              h("option", { value: name }, t("a valid one for {policy}", { policy: name })),
            ),
          ),
        ),
    ),
    outcome,
  );
}

const described = ({ profile, actions, credits: cost, gasPrice }) => ({
  profile: profile.trim(),
  actions: lines(actions).map((line) => actionOf(line)),
  credits: Number(cost),
  gasPriceWei: String(BigInt(gasPrice) * GWEI),
});

const lines = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

function actionOf(line) {
  const [, contract, called = "0x"] = ACTION.exec(line);
  return { contract: contract.toLowerCase(), function: called };
}

function faultOf({ transactionHash, profile, actions, credits: cost, gasPrice }) {
  if (transactionHash.trim())
    return HASH.test(transactionHash.trim())
      ? null
      : t("Enter a transaction's hash: 0x and 64 more characters.");
  if (!ADDRESS.test(profile.trim())) return t("Enter an address: 0x and 40 more characters.");
  if (!lines(actions).length || !lines(actions).every((line) => ACTION.test(line)))
    return t("Write a contract and a function on each line.");
  return /^[1-9]\d{0,14}$/.test(cost) && /^\d{1,6}$/.test(gasPrice)
    ? null
    : t("Enter whole numbers for cost and gas price.");
}

function answered({ policy, sponsorCredits, userCredits, refusals, code, detail }) {
  const sentence =
    policy && !code
      ? userCredits > 0
        ? t("Yes: {policy} pays {credits}, and the user {rest}.", {
            policy,
            credits: credits(sponsorCredits),
            rest: credits(userCredits),
          })
        : t("Yes: {policy} pays {credits}.", { policy, credits: credits(sponsorCredits) })
      : t("No: {rule}.", { rule: nameOf(RULES, code) });
  const others = refusals.map((refusal) =>
    h(
      "li",
      {},
      h("strong", {}, refusal.policy),
      ": ",
      h("a", { href: `/problems/${refusal.code}` }, nameOf(RULES, refusal.code)),
      h("br"),
      h("span", { class: "quiet", lang: "en" }, refusal.detail),
    ),
  );
  return [
    h(
      "p",
      { class: code ? "notice bad" : "notice" },
      h("strong", {}, sentence),
      code && !refusals.length && [" ", h("span", { lang: "en" }, detail)],
    ),
    refusals.length > 0 && h("p", {}, t("Policies that refuse it, with the rule:")),
    refusals.length > 0 && h("ul", { class: "facts" }, others),
  ].filter(Boolean);
}
