// Who acts for a sponsor: members with their roles, and the keys of its servers.

import {
  actionButton,
  actions,
  confirmed,
  details,
  explorerLink,
  field,
  form,
  h,
  panel,
  quiet,
  table,
} from "./dom.js";
import { shownOnce } from "./sponsor-secret.js";
import { ROLES } from "./sponsor-words.js";
import { date, dateTime, t } from "./text.js";

const ADDRESS = /^0x[0-9a-f]{40}$/i;

export async function show(context) {
  const { session, path, draw } = context;
  const [{ rights }, { members }, { keys }, service] = await Promise.all([
    session.get(`${path}/overview`),
    session.get(`${path}/members`),
    session.get(`${path}/keys`),
    context.service,
  ]);
  draw(people(members, rights, service, context), servers(keys, rights, context));
}

function people(members, rights, service, context) {
  const { session, path, again, report } = context;
  const mayChange = rights.includes("own");
  const isYou = ({ address, email }) =>
    address
      ? address.toLowerCase() === session.address.toLowerCase()
      : email === session.email?.toLowerCase();
  const put = async (address, role) => {
    await session.put(`${path}/members`, { address, role });
    await again();
    report(t("Saved."));
  };
  const change = async ({ id }, role) => {
    await session.put(`${path}/members/${id}`, { role });
    await again();
    report(t("Saved."));
  };
  const invited = h("div", { role: "status" });
  const invite = async ({ email, role }) => {
    const { code } = await session.post(`${path}/invitations`, { email: email.trim(), role });
    invited.replaceChildren(codeOnce(code, context));
    invited.scrollIntoView({ block: "nearest" });
  };
  const remove = async (member) => {
    const isOwn = isYou(member);
    const sure = await confirmed(
      {
        title: isOwn ? t("Leave this sponsor?") : t("Remove this member?"),
        yes: isOwn ? t("Leave") : t("Remove"),
        no: t("Keep"),
        kind: "danger",
      },
      h("p", {}, h("code", {}, member.address ?? member.email)),
      h(
        "p",
        {},
        t("The API keys and webhooks that this member made end as well. Replace keys that are needed first."),
      ),
    );
    if (!sure) return;
    await session.delete(`${path}/members/${member.address ?? member.id}`);
    await again();
  };
  const roleOf = (member) => (mayChange ? roleChoice(member, change, report) : ROLES[member.role]);
  const end = (member) => {
    const isOwn = isYou(member);
    return mayChange || isOwn
      ? actionButton(isOwn ? t("Leave") : t("Remove"), () => remove(member), report, { kind: "plain small" })
      : "";
  };
  return panel(
    t("Members"),
    table(
      t("Members"),
      [
        {
          label: t("Member"),
          cell: (row) =>
            h(
              "span",
              {},
              row.address ? explorerLink(service, "address", row.address) : row.email,
              isYou(row) && [" ", h("strong", {}, t("you"))],
              row.isInvited && [" ", h("span", { class: "quiet" }, t("invited"))],
            ),
        },
        { label: t("Role"), cell: roleOf },
        { label: t("Since"), cell: (row) => date(row.since) },
        { label: t("Membership"), cell: end },
      ],
      members,
    ),
    mayChange
      ? form(
          {
            button: t("Add the member"),
            kind: "plain",
            checks: ({ address }) =>
              ADDRESS.test(address.trim()) ? null : t("Enter an address: 0x and 40 more characters."),
            action: ({ address, role }) => put(address.trim(), role),
            report,
          },
          field(
            t("Profile"),
            h("input", { name: "address", autocomplete: "off", placeholder: "0x…" }),
            t("The person must have signed in here before."),
          ),
          field(t("Role"), roleSelect("viewer", { name: "role" })),
        )
      : quiet(t("Owners add and remove members.")),
    invited,
    mayChange &&
      details(
        t("Invite by e-mail"),
        form(
          {
            button: t("Send the invitation"),
            kind: "plain",
            checks: ({ email }) => (email.includes("@") ? null : t("Enter an e-mail address.")),
            action: invite,
            report,
          },
          field(
            t("E-mail address"),
            h("input", { name: "email", type: "email", autocomplete: "off" }),
            t(
              "The person chooses a password and sets up a phone. Invite a member again who has lost either.",
            ),
          ),
          field(t("Role"), roleSelect("viewer", { name: "role" })),
        ),
      ),
  );
}

const roleSelect = (chosen, attributes) =>
  h(
    "select",
    attributes,
    Object.entries(ROLES).map(([role, words]) =>
      h("option", { value: role, selected: role === chosen }, words),
    ),
  );

const codeOnce = (code, context) =>
  shownOnce(
    code,
    {
      warning: t("This is the only time that the code is shown."),
      hint: t("Give it to the person by another way than e-mail, such as by telephone."),
      copy: t("Copy the code"),
      copied: t("The code was copied."),
    },
    context,
  );

function roleChoice(member, change, report) {
  const { address, email, role } = member;
  const chosen = async ({ target }) => {
    target.disabled = true;
    try {
      await change(member, target.value);
    } catch (error) {
      target.value = role;
      target.disabled = false;
      report(error);
    }
  };
  return roleSelect(role, {
    onchange: chosen,
    "aria-label": t("Role of {address}", { address: address ?? email }),
  });
}

const SCOPES = {
  read: t("See everything"),
  simulate: t("Simulate calls"),
  create: t("Create profiles for newcomers"),
  manage: t("Use funds"),
};

function servers(keys, rights, context) {
  const { session, path, again, report } = context;
  const mayChange = rights.includes("manage");
  const made = h("div", { role: "status" });
  const revoke = async (row) => {
    const sure = await confirmed(
      { title: t("Revoke this key?"), yes: t("Revoke"), no: t("Keep"), kind: "danger" },
      h("p", {}, t("Requests with {name} will be refused from now on.", { name: row.name })),
    );
    if (!sure) return;
    await session.delete(`${path}/keys/${row.key}`);
    await again();
  };
  const rotate = async (row) => {
    const { secret } = await session.post(`${path}/keys/${row.key}/rotate`, {});
    made.replaceChildren(once(secret, t("The old key keeps working for 24 hours."), context));
    made.scrollIntoView({ block: "nearest" });
  };
  const create = async ({ name, networks, ...chosen }) => {
    const body = {
      name: name.trim(),
      scopes: Object.keys(chosen),
      networks: networks.split(/[\s,]+/).filter(Boolean),
    };
    const { secret } = await session.post(`${path}/keys`, body);
    made.replaceChildren(once(secret, "", context));
    made.scrollIntoView({ block: "nearest" });
  };
  return panel(
    t("Keys of your servers"),
    h(
      "p",
      {},
      t("A server sends its key as a bearer token to this sponsor's part of the API."),
      " ",
      h("a", { href: "/docs/sponsors#keys" }, t("How to use a key")),
    ),
    keys.length > 0 && keyTable(keys, mayChange && { revoke, rotate }, report),
    made,
    mayChange
      ? details(
          t("Create a key"),
          form(
            { button: t("Create the key"), kind: "plain", checks: faultOf, action: create, report },
            field(t("Name"), h("input", { name: "name", maxlength: 40, autocomplete: "off" })),
            h(
              "fieldset",
              {},
              h("legend", {}, t("Rights")),
              Object.entries(SCOPES).map(([scope, words]) =>
                h(
                  "label",
                  { class: "choice" },
                  h("input", { type: "checkbox", name: scope, checked: scope === "read" }),
                  h("span", {}, words),
                ),
              ),
            ),
            field(
              t("Networks (optional)"),
              h("input", { name: "networks", autocomplete: "off", placeholder: "192.0.2.0/24" }),
              t(
                "IP addresses or networks from which it is accepted, separated by commas. Empty: from anywhere.",
              ),
            ),
          ),
        )
      : quiet(t("Managers and owners create and revoke keys.")),
  );
}

function faultOf({ name, networks, ...chosen }) {
  if (!name.trim()) return t("Give the key a name.");
  return Object.keys(chosen).length ? null : t("Choose at least one right.");
}

const once = (secret, hint, context) =>
  shownOnce(
    secret,
    {
      warning: t("The key is shown only once."),
      hint,
      copy: t("Copy the key"),
      copied: t("The key was copied."),
    },
    context,
  );

const keyTable = (keys, may, report) =>
  table(
    t("Keys of your servers"),
    [
      { label: t("Name"), cell: (row) => h("span", {}, row.name, " ", h("code", {}, `…${row.hint}`)) },
      { label: t("Rights"), cell: (row) => row.scopes.map((scope) => SCOPES[scope]).join(", ") },
      { label: t("Accepted from"), cell: (row) => row.networks.join(", ") || t("anywhere") },
      {
        label: t("Made by"),
        cell: (row) => (row.createdBy ? h("code", {}, row.createdBy) : t("unknown")),
      },
      { label: t("Last used"), cell: (row) => (row.lastUsedAt ? dateTime(row.lastUsedAt) : t("never")) },
      { label: t("Ends"), cell: (row) => (row.expiresAt ? dateTime(row.expiresAt) : t("never")) },
      may && {
        label: t("Change"),
        cell: (row) =>
          actions(
            actionButton(t("Replace"), () => may.rotate(row), report, { kind: "plain small" }),
            actionButton(t("Revoke"), () => may.revoke(row), report, { kind: "danger small" }),
          ),
      },
    ].filter(Boolean),
    keys,
  );
