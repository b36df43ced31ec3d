// The profile's sessions, the download of everything that the service knows, and the deletion of the account.

import { actionButton, actions, explorerLink, field, form, h, panel, table } from "./dom.js";
import { credits, dateTime, t } from "./text.js";

const READ = {
  account: "/api/user/account",
  dashboard: "/api/user/dashboardInfo",
  arriving: "/api/user/arriving",
  checkIns: "/api/user/checkInFairness",
  adNetworks: "/api/user/adNetworks",
  staffNotes: "/api/user/staffNotes",
  card: "/api/payments/card",
  receiptEmail: "/api/payments/receiptEmail",
  noticeEmail: "/api/user/noticeEmail",
  topUp: "/api/payments/topUp",
  sessions: "/api/auth/sessions",
  sponsors: "/api/sponsors",
};
const PAGED = {
  timeline: "/api/user/timeline",
  transactions: "/api/user/transactions",
  earnings: "/api/user/earnings",
  invoices: "/api/payments/invoices",
};

export async function data(context) {
  const { session, report, draw, signedOut } = context;
  const [{ sessions }, service, address, account] = await Promise.all([
    session.get(READ.sessions),
    context.service,
    session.get(READ.noticeEmail),
    session.get(READ.account),
  ]);
  const everywhere = () =>
    session.delete(READ.sessions).then(() => signedOut(t("You are signed out everywhere.")));
  draw(
    panel(
      t("Your data"),
      h(
        "p",
        {},
        t(
          "Everything that this service knows about you in one file: account, transactions, earnings and what is on its way, check-ins, payments and invoices, your e-mail addresses, sessions, and the notes of our support. Lists open in a spreadsheet.",
        ),
      ),
      actions(
        actionButton(t("Download everything"), () => downloadAll(session), report),
        actionButton(
          t("Transactions as a spreadsheet"),
          () => downloadList(session, "transactions"),
          report,
          { kind: "plain" },
        ),
        actionButton(t("Earnings as a spreadsheet"), () => downloadList(session, "earnings"), report, {
          kind: "plain",
        }),
      ),
    ),
    (address.isAvailable || address.email) && notices(address, context),
    panel(
      t("Where you are signed in"),
      sessionTable(sessions, service, context),
      actions(actionButton(t("Sign out everywhere"), everywhere, report, { kind: "danger" })),
    ),
    deletion(account, context),
  );
}

/** Takes the address for e-mails about credits; nothing is sent before its owner has confirmed it. */
function notices({ email, isConfirmed }, { session, again, report }) {
  const set = async (address) => {
    const saved = await session.post(READ.noticeEmail, { email: address });
    await again();
    report(
      saved.email && !saved.isConfirmed ? t("Open the link that we have sent to this address.") : t("Saved."),
    );
  };
  const input = h("input", { name: "email", type: "email", autocomplete: "email", value: email ?? "" });
  return panel(
    t("E-mails about your credits"),
    h(
      "p",
      {},
      t(
        "We write to you when your credits are about to run out, are used up, are enough again, or expire. You can end it with every e-mail.",
      ),
    ),
    email &&
      (isConfirmed
        ? h("p", {}, t("We write to {address}.", { address: email }))
        : h(
            "p",
            { class: "notice" },
            t("The address is not confirmed yet: open the link that we have sent to it."),
          )),
    form(
      {
        button: t("Save the address"),
        kind: "plain",
        checks: () => (input.validity.valid ? null : t("Enter an e-mail address, or nothing.")),
        action: ({ email: address }) => set(address || null),
        report,
      },
      field(t("E-mail address (optional)"), input),
    ),
    email && actions(actionButton(t("Stop the e-mails"), () => set(null), report, { kind: "danger" })),
  );
}

/** Explains the deletion of the account, with a button that requires a ticked box and a signature. */
function deletion({ available, permanentBadge, subscriptionStatus }, { session, report, signedOut }) {
  const fault = h("p", { class: "bad", role: "alert" });
  const agreed = h("input", { type: "checkbox", onchange: () => (fault.textContent = "") });
  const leave = async () => {
    fault.textContent = agreed.checked ? "" : t("Tick the box first: this cannot be undone.");
    if (!agreed.checked) return agreed.focus();
    await session.signInAgain();
    await session.delete(READ.account);
    signedOut(
      t(
        "Your account is closed and its data is being erased. You can create a new account with this profile in about an hour.",
      ),
    );
  };
  return panel(
    t("Delete the account"),
    h(
      "dl",
      {},
      h("dt", {}, t("You lose")),
      h(
        "dd",
        {},
        available < 0
          ? t("no credits; you owe {credits}, which your next account takes over", {
              credits: credits(-available),
            })
          : credits(available),
        ", ",
        t("the badge {name}", { name: permanentBadge }),
        subscriptionStatus === "active" && [", ", t("your paid plan, at once")],
      ),
      h("dt", {}, t("Deleted")),
      h(
        "dd",
        {},
        t(
          "All sessions at once; your subscription, without a refund, and your card and e-mail address at Stripe; your remaining credits, badges and bonuses; then, usually within an hour, your profile's address everywhere in this service, your signed calls, and the reports about you from ad networks and Stripe.",
        ),
      ),
      h("dt", {}, t("Kept")),
      h(
        "dd",
        {},
        t(
          "Amounts with their dates, payment ids and transaction hashes, for accounting; the log of staff actions on your account; and everything on the chain, which cannot be deleted. Ledger proofs that you have saved stay valid.",
        ),
        " ",
        t(
          "If you owe credits, or have paid or earned some within 180 days: a keyed digest of your profile's address, for 180 days, or two years while credits are owed. Your next account takes the debt over.",
        ),
      ),
    ),
    h(
      "p",
      {},
      t(
        "Download your data first. Transactions in progress finish before the deletion. Your wallet asks you to sign in again.",
      ),
    ),
    h("label", { class: "choice" }, agreed, h("span", {}, t("I want to delete my account permanently."))),
    fault,
    actions(actionButton(t("Delete my account"), leave, report, { kind: "danger" })),
  );
}

const sessionTable = (sessions, service, { session, again, report }) =>
  table(
    t("Where you are signed in"),
    [
      {
        label: t("Where"),
        cell: (row) => (row.isCurrent ? h("strong", {}, t("this browser")) : t("another browser or app")),
      },
      { label: t("Signed in"), cell: (row) => dateTime(row.signedInAt) },
      { label: t("Last used"), cell: (row) => dateTime(row.refreshedAt) },
      { label: t("Ends"), cell: (row) => dateTime(row.expiresAt) },
      { label: t("Key"), cell: (row) => explorerLink(service, "address", row.controller) },
      {
        label: t("Sign out"),
        cell: (row) =>
          !row.isCurrent &&
          actionButton(
            t("Sign out there"),
            () => session.delete(`${READ.sessions}/${row.sessionId}`).then(again),
            report,
            { kind: "plain small" },
          ),
      },
    ],
    sessions,
  );

async function downloadAll(session) {
  const everything = { downloadedAt: new Date().toISOString(), profileAddress: session.address };
  const { account, ...others } = READ;
  everything.account = await session.get(account);
  for (const [name, path] of Object.entries(others)) everything[name] = await ifThere(session.get(path));
  for (const [name, path] of Object.entries(PAGED)) everything[name] = await ifThere(allOf(session, path));
  everything.subscription =
    everything.account.subscriptionStatus && (await session.get("/api/payments/subscription"));
  save(`${session.address}.json`, "application/json", JSON.stringify(everything, null, 2));
}

/** Null for what this service does not offer, such as payments; any other fault is one. */
const ifThere = (asked) =>
  asked.catch((error) => {
    if (error.status === 404 || error.code === "billing-unavailable") return null;
    throw error;
  });

async function downloadList(session, name) {
  const rows = await allOf(session, PAGED[name]);
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  save(`${name}.csv`, "text/csv", lines.map((line) => line.map(cell).join(",")).join("\r\n"));
}

/** A CSV cell (RFC 4180). */
const cell = (value) =>
  /[",\r\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");

async function allOf(session, path) {
  const rows = [];
  for (let query = {}; query; ) {
    const page = await session.get(path, query);
    rows.push(...page.results);
    query = page.next && Object.fromEntries(new URL(page.next).searchParams);
  }
  return rows;
}

function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
