// Where the profile is signed in, and everything that the service knows of it, to keep.

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
