// The endpoints at which a sponsor's servers receive signed messages, and what became of the newest messages.

import { actionButton, actions, confirmed, details, field, form, h, panel, quiet, table } from "./dom.js";
import { shownOnce } from "./sponsor-secret.js";
import { EVENTS, MESSAGES, MESSAGE_STATES } from "./sponsor-words.js";
import { dateTime, number, t } from "./text.js";

export async function show(context) {
  const { session, path, draw } = context;
  const [{ rights }, { webhooks }] = await Promise.all([
    session.get(`${path}/overview`),
    session.get(`${path}/webhooks`),
  ]);
  const mayChange = rights.includes("manage");
  const messages = h("div", { class: "stack" });
  const sent = (endpoint) => showMessages(endpoint, { messages, mayChange, context });
  draw(endpoints(webhooks, mayChange, sent, context), messages);
}

function endpoints(rows, mayChange, sent, context) {
  const { session, path, again, report } = context;
  const made = h("div", { role: "status" });
  const showSecret = (secret, hint) => {
    made.replaceChildren(
      shownOnce(
        secret,
        {
          warning: t("This is the only time that the secret is shown."),
          hint,
          copy: t("Copy the secret"),
          copied: t("The secret was copied."),
        },
        context,
      ),
    );
    made.scrollIntoView({ block: "nearest" });
  };
  const may = mayChange && {
    test: async (row) => {
      await session.post(`${path}/webhooks/${row.id}/test`, {});
      await sent(row);
      report(t("A test is sent within seconds."));
    },
    rotate: async (row) =>
      showSecret(
        (await session.post(`${path}/webhooks/${row.id}/secret`, {})).secret,
        t("The secret before signs too, until there is another new one."),
      ),
    remove: async (row) => {
      const sure = await confirmed(
        { title: t("Delete this endpoint?"), yes: t("Delete"), no: t("Keep"), kind: "danger" },
        h("p", {}, t("Nothing more is sent to {url}.", { url: row.url })),
      );
      if (!sure) return;
      await session.delete(`${path}/webhooks/${row.id}`);
      await again();
    },
  };
  const create = async ({ url, ...chosen }) =>
    showSecret(
      (await session.post(`${path}/webhooks`, { url: url.trim(), events: Object.keys(chosen) })).secret,
      t("It signs every message."),
    );
  return panel(
    t("Webhooks"),
    h(
      "p",
      {},
      t("Your servers receive signed messages about this sponsor at https addresses of yours."),
      " ",
      h("a", { href: "/docs/webhooks" }, t("How to verify a message")),
    ),
    rows.length > 0 ? endpointTable(rows, may, sent, report) : quiet(t("No endpoint yet.")),
    made,
    mayChange ? addition(create, report) : quiet(t("Managers and owners add and delete endpoints.")),
  );
}

const addition = (create, report) =>
  details(
    t("Add an endpoint"),
    form(
      { button: t("Add the endpoint"), kind: "plain", checks: faultOf, action: create, report },
      field(
        t("Address"),
        h("input", {
          name: "url",
          inputmode: "url",
          autocomplete: "off",
          maxlength: 2000,
          placeholder: "https://…",
        }),
      ),
      h(
        "fieldset",
        {},
        h("legend", {}, t("Messages")),
        Object.entries(EVENTS).map(([event, words]) =>
          h(
            "label",
            { class: "choice" },
            h("input", { type: "checkbox", name: event, checked: true }),
            h("span", {}, words),
          ),
        ),
      ),
    ),
  );

function faultOf({ url, ...chosen }) {
  if (!url.trim()) return t("Enter an address that begins with https://.");
  return Object.keys(chosen).length ? null : t("Choose at least one kind of message.");
}

const endpointTable = (rows, may, sent, report) =>
  table(
    t("Endpoints"),
    [
      { label: t("Address"), cell: (row) => h("code", {}, row.url) },
      { label: t("Messages"), cell: (row) => row.events.map((event) => EVENTS[event] ?? event).join("; ") },
      {
        label: t("State"),
        cell: (row) =>
          row.isEnabled
            ? t("works")
            : h(
                "span",
                { class: "bad" },
                t("disabled after failures, or because its maker left; delete it and add it anew"),
              ),
      },
      {
        label: t("Change"),
        cell: (row) => {
          const button = (label, action, kind = "plain small") =>
            actionButton(label, () => action(row), report, { kind });
          return actions(
            button(t("Deliveries"), sent),
            may && row.isEnabled && button(t("Send a test"), may.test),
            may && button(t("New secret"), may.rotate),
            may && button(t("Delete"), may.remove, "danger small"),
          );
        },
      },
    ],
    rows,
  );

async function showMessages(endpoint, { messages, mayChange, context }) {
  const { session, path, report } = context;
  const base = `${path}/webhooks/${endpoint.id}/messages`;
  const shown = (rows) => {
    const resend = async (row) => {
      shown((await session.post(`${base}/${row.id}/resend`, {})).messages);
      report(t("It is sent again within seconds."));
    };
    const refresh = actionButton(
      t("Refresh"),
      () => showMessages(endpoint, { messages, mayChange, context }),
      report,
      { kind: "plain small" },
    );
    const listed =
      rows.length > 0
        ? messageTable(rows, mayChange && endpoint.isEnabled && resend, report)
        : quiet(t("Nothing was sent yet."));
    messages.replaceChildren(
      panel(
        t("Newest messages"),
        h("p", {}, t("To"), " ", h("code", {}, endpoint.url)),
        listed,
        actions(refresh),
      ),
    );
    messages.scrollIntoView({ block: "nearest" });
  };
  shown((await session.get(base)).messages);
}

const messageTable = (rows, resend, report) =>
  table(
    t("Newest messages"),
    [
      { label: t("Made"), cell: (row) => dateTime(row.createdAt) },
      { label: t("Message"), cell: (row) => h("span", { title: row.id }, MESSAGES[row.type] ?? row.type) },
      {
        label: t("State"),
        cell: (row) => h("span", { class: row.status === "given-up" && "bad" }, MESSAGE_STATES[row.status]),
      },
      { label: t("Attempts"), number: true, cell: (row) => number(row.attempts) },
      {
        label: t("Last answer"),
        cell: (row) => row.responseStatus ?? (row.error ? details(t("no answer"), row.error) : t("none")),
      },
      {
        label: t("Next attempt"),
        cell: (row) => (row.nextAttemptAt ? dateTime(row.nextAttemptAt) : t("no more")),
      },
      resend && {
        label: t("Change"),
        cell: (row) =>
          row.status !== "waiting" &&
          actionButton(t("Send again"), () => resend(row), report, { kind: "plain small" }),
      },
    ].filter(Boolean),
    rows,
  );
