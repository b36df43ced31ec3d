// A sponsor's spend by contract and by user.

import { definitions, explorerLink, h, panel, quiet, table } from "./dom.js";
import { credits, number, t, tn } from "./text.js";

const DAYS = 30;

export async function show(context) {
  const { session, path, draw } = context;
  const query = { days: DAYS };
  const [{ contracts }, { users, userCount }, profiles, service] = await Promise.all([
    session.get(`${path}/contracts`, query),
    session.get(`${path}/spend`, query),
    session.get(`${path}/profiles`, query),
    context.service,
  ]);
  draw(byContract(contracts, service), byUser(users, userCount), newProfiles(profiles));
}

function newProfiles({ created, registered, inProgress, failed, credits: cost, firstCredits, acted }) {
  const title = t("New profiles, in {days} days", { days: DAYS });
  if (!(created + registered + inProgress + failed))
    return panel(
      title,
      quiet(
        t("Your server can give newcomers a profile."),
        " ",
        h("a", { href: "/docs/profiles" }, t("How to create a profile for a user")),
      ),
    );
  return panel(
    title,
    definitions(
      [t("Created"), number(created)],
      registered > 0 && [t("Existing profiles with a new account"), number(registered)],
      inProgress > 0 && [t("In progress"), number(inProgress)],
      failed > 0 && [t("Failed"), number(failed)],
      [t("With a first transaction"), number(acted)],
      [t("Cost"), credits(cost)],
      firstCredits > 0 && [t("First credits"), credits(firstCredits)],
      created > 0 && [t("Cost of each"), credits(Math.round(cost / created))],
      acted > 0 && [t("Cost of each with a first transaction"), credits(Math.round(cost / acted))],
    ),
  );
}

const sums = [
  { label: t("Calls"), number: true, cell: (row) => number(row.calls) },
  { label: t("Credits"), number: true, cell: (row) => number(row.credits) },
];

function byContract(contracts, service) {
  const title = t("By contract, in {days} days", { days: DAYS });
  const names = {
    batch: t("batches of several contracts"),
    profile: t("the profile itself"),
    deployment: t("a new contract"),
    "new-profile": t("new profiles"),
  };
  const named = ({ contract }) => names[contract] ?? explorerLink(service, "address", contract);
  return panel(
    title,
    contracts.length
      ? table(title, [{ label: t("Contract"), cell: named }, ...sums], contracts, "narrow")
      : quiet(t("Nothing yet.")),
  );
}

function byUser(users, count) {
  const title = t("By user, in {days} days", { days: DAYS });
  if (!users.length) return panel(title, quiet(t("Nothing yet.")));
  const total = users.reduce((sum, row) => sum + row.credits, 0);
  return panel(
    title,
    h(
      "p",
      {},
      tn("{count} user.", "{count} users.", count),
      " ",
      t("User ids are permanent pseudonyms, which reveal no profile."),
      " ",
      count > users.length &&
        t("The list has those with the highest spend, {credits} in total.", { credits: credits(total) }),
    ),
    table(title, [{ label: t("User"), cell: (row) => h("code", {}, row.user) }, ...sums], users, "narrow"),
  );
}
