// The profile's sessions, the download of its data, and the deletion of the account.

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
      h("p", {}, "All data that this service stores about your profile. You can open the CSV lists in a spreadsheet."),
      h(
        "div",
        { class: "actions" },
        actionButton("Download all as JSON", () => downloadAll(session), report, { kind: "plain" }),
        ...LISTS.map((name) => actionButton(`Download ${name} as CSV`, () => downloadList(session, name), report, { kind: "plain" })),
      ),
    ),
    deletion({ session, report, signedOut }),
  );
}

const DELETED = "all sessions at once; your subscription, without a refund, and your card and e-mail address at Stripe; your remaining credits, badges and bonuses; then, usually within an hour, your profile's address everywhere in this service, your signed calls, and the reports about you from ad networks and Stripe";
const KEPT = "amounts with their dates, payment ids and transaction hashes, for accounting; the log of staff actions on your account; and everything on the chain, which cannot be deleted. Ledger proofs that you have saved stay valid";

/** Explains the deletion of the account, with a button that requires a ticked box and a signature. */
function deletion({ session, report, signedOut }) {
  const agreed = h("input", { type: "checkbox" });
  const leave = async () => {
    if (!agreed.checked) throw new Error("Tick the box first: this cannot be undone.");
    await session.relay.signIn(session.address);
    await session.delete(READ.account);
    signedOut("Your account is closed and its data is being erased. You can create a new account with this profile in about an hour.");
  };
  return panel(
    "Delete the account",
    h("dl", {}, h("dt", {}, "Deleted"), h("dd", {}, `${DELETED}.`), h("dt", {}, "Kept"), h("dd", {}, `${KEPT}.`)),
    h("p", {}, "Download your data first. Calls in progress finish before the deletion. Your extension asks you to sign in again."),
    h("label", { class: "choice" }, agreed, " I want to delete my account permanently."),
    h("div", { class: "actions" }, actionButton("Delete my account", leave, report, { kind: "danger" })),
  );
}

const sessionTable = (sessions, service) =>
  table("Where you are signed in", [
    { label: "Signed in", cell: (row) => dateTime(row.signedInAt) },
    { label: "Last used", cell: (row) => dateTime(row.refreshedAt) },
    { label: "Ends", cell: (row) => dateTime(row.expiresAt) },
    { label: "Key", cell: (row) => explorerLink(service, "address", row.controller) },
    { label: "Where", cell: (row) => (row.isCurrent ? h("strong", {}, "this browser") : "another browser") },
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

/** A CSV cell (RFC 4180). */
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
