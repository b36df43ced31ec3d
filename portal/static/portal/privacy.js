// Where the profile is signed in, everything that the service knows of it, to keep, and how to have it forgotten.

import { actionButton, dateTime, explorerLink, h, panel, table } from "./dom.js";

const READ = {
  account: "/api/user/account",
  dashboard: "/api/user/dashboardInfo",
  checkIns: "/api/user/checkInFairness",
  adNetworks: "/api/user/adNetworks",
  sessions: "/api/auth/sessions",
};
const LISTS = ["transactions", "earnings"];

export async function privacy({ session, service, report, signedOut }) {
  const { sessions } = await session.get(READ.sessions);
  const everywhere = () => session.delete(READ.sessions).then(() => signedOut("You are signed out everywhere."));
  return h(
    "div",
    { class: "stack" },
    panel("Signed in", sessionTable(sessions, service), h("div", { class: "actions" }, actionButton("Sign out everywhere", everywhere, report, { kind: "danger" }))),
    panel(
      "Your data",
      h("p", {}, "Everything that this service knows of your profile. The lists can also be opened in a spreadsheet."),
      h(
        "div",
        { class: "actions" },
        actionButton("Download all as JSON", () => downloadAll(session), report, { kind: "plain" }),
        ...LISTS.map((name) => actionButton(`Download ${name} as CSV`, () => downloadList(session, name), report, { kind: "plain" })),
      ),
    ),
    farewell({ session, report, signedOut }),
  );
}

const GOES = "all sessions at once; the subscription, without a refund, and your card and mail address at Stripe; remaining credits, badges and bonuses; then, within an hour as a rule, your profile's address wherever we keep it, what you signed, and what ad networks and Stripe told us";
const STAYS = "amounts with their dates, ids of payments, and hashes of transactions, because the books must add up; what staff did about you, in their log; and what is on the chain, which nobody can delete. Proofs of the ledger that you kept stay good";

/** Everything about leaving: what goes, what stays, and a button that wants a box ticked and a signature. */
function farewell({ session, report, signedOut }) {
  const agreed = h("input", { type: "checkbox" });
  const leave = async () => {
    if (!agreed.checked) throw new Error("Tick the box first: this cannot be undone.");
    await session.relay.signIn(session.address);
    await session.delete(READ.account);
    signedOut("Your account is closed and is being erased. The same profile can begin a new one in an hour.");
  };
  return panel(
    "Delete the account",
    h("dl", {}, h("dt", {}, "What goes"), h("dd", {}, `${GOES}.`), h("dt", {}, "What stays"), h("dd", {}, `${STAYS}.`)),
    h("p", {}, "Take your data along first. Calls under way end first. Your extension asks you to sign in once more."),
    h("label", { class: "choice" }, agreed, " I want my account to be deleted for good."),
    h("div", { class: "actions" }, actionButton("Delete my account", leave, report, { kind: "danger" })),
  );
}

const sessionTable = (sessions, service) =>
  table("Where you are signed in", [
    { label: "Signed in", cell: (row) => dateTime(row.signedInAt) },
    { label: "Last used", cell: (row) => dateTime(row.refreshedAt) },
    { label: "Ends", cell: (row) => dateTime(row.expiresAt) },
    { label: "Key", cell: (row) => explorerLink(service, "address", row.controller) },
    { label: "Where", cell: (row) => (row.isCurrent ? h("strong", {}, "this browser") : "another one") },
  ], sessions);

async function downloadAll(session) {
  const data = { downloadedAt: new Date().toISOString(), profileAddress: session.address };
  for (const [name, path] of Object.entries(READ)) data[name] = await session.get(path);
  for (const name of LISTS) data[name] = await allOf(session, name);
  data.subscription = data.account.subscriptionStatus && (await session.get("/api/payments/subscription"));
  save(`${session.address}.json`, "application/json", JSON.stringify(data, null, 2));
}

async function downloadList(session, name) {
  const rows = await allOf(session, name);
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  save(`${name}.csv`, "text/csv", lines.map((line) => line.map(cell).join(",")).join("\r\n"));
}

/** A cell of RFC 4180. */
const cell = (value) => (/[",\r\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));

async function allOf(session, name) {
  const rows = [];
  for await (const row of session[name]()) rows.push(row);
  return rows;
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
