// Where the profile is signed in, and everything that the service knows of it, to keep.

import { actionButton, dateTime, explorerLink, h, panel, table } from "./dom.js";

const PAGE = 500;
const READ = {
  account: "/api/user/account",
  dashboard: "/api/user/dashboardInfo",
  checkIns: "/api/user/checkInFairness",
  adNetworks: "/api/user/adNetworks",
  sessions: "/api/auth/sessions",
};
const LISTS = { transactions: "/api/user/transactions", earnings: "/api/user/earnings" };

export async function privacy({ api, service, report, signedOut }) {
  const { sessions } = await api.get(READ.sessions);
  const everywhere = () => api.delete(READ.sessions).then(() => signedOut("You are signed out everywhere."));
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
        actionButton("Download all as JSON", () => downloadAll(api), report, { kind: "plain" }),
        ...Object.keys(LISTS).map((name) => actionButton(`Download ${name} as CSV`, () => downloadList(api, name), report, { kind: "plain" })),
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
    { label: "", cell: (row) => (row.isCurrent ? h("strong", {}, "this browser") : "") },
  ], sessions);

async function downloadAll(api) {
  const data = { downloadedAt: new Date().toISOString(), profileAddress: api.address };
  for (const [name, path] of Object.entries(READ)) data[name] = await api.get(path);
  for (const name of Object.keys(LISTS)) data[name] = await allOf(api, name);
  data.subscription = await api.get("/api/payments/subscription").catch(unlessMissing);
  save(`${api.address}.json`, "application/json", JSON.stringify(data, null, 2));
}

async function downloadList(api, name) {
  const rows = await allOf(api, name);
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  save(`${name}.csv`, "text/csv", lines.map((line) => line.map(cell).join(",")).join("\r\n"));
}

/** A cell of RFC 4180. */
const cell = (value) => (/[",\r\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));

async function allOf(api, name) {
  const rows = [];
  for (let path = `${LISTS[name]}?limit=${PAGE}`; path; ) {
    const page = await api.get(path);
    rows.push(...page.results);
    const next = page.next && new URL(page.next, location.origin);
    path = next && next.pathname + next.search;
  }
  return rows;
}

const unlessMissing = (error) => {
  if (error.members?.status !== 404) throw error;
  return null;
};

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
