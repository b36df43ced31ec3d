// Members without a profile: their session of this tab, the form to sign in, and the page of an invitation.

import { details, field, form, h, panel } from "./dom.js";
import { t } from "./text.js";

const REMEMBERED = "credit-relay.member";

/** The session of a member who signed in with a password and a code, with the methods of a profile's `Session`. */
export class MemberSession {
  constructor({ token, email }) {
    Object.assign(this, { token, email, label: email, address: "" });
  }

  /** Return this tab's session, or null. */
  static remembered() {
    const kept = sessionStorage.getItem(REMEMBERED);
    return kept && new MemberSession(JSON.parse(kept));
  }

  static async begin({ sponsor, email, password, code }) {
    const { token } = await sent("/api/members/signIn", {
      method: "POST",
      body: { sponsor: sponsor.trim(), email: email.trim(), password, code: code.replaceAll(/\s/g, "") },
    });
    sessionStorage.setItem(REMEMBERED, JSON.stringify({ token, email: email.trim() }));
    return MemberSession.remembered();
  }

  asked = (method, path, { query, body, headers } = {}) =>
    sent(query ? `${path}?${new URLSearchParams(query)}` : path, {
      method,
      body,
      headers: { ...headers, authorization: `Bearer ${this.token}` },
    });
  get = (path, query) => this.asked("GET", path, { query });
  post = (path, body, headers) => this.asked("POST", path, { body, headers });
  put = (path, body) => this.asked("PUT", path, { body });
  delete = (path, body) => this.asked("DELETE", path, { body });
  text = (path, query) => this.asked("GET", path, { query });

  async end() {
    sessionStorage.removeItem(REMEMBERED);
    await this.delete("/api/members/session");
  }
}

/** Sends a request; an answer that is a problem is thrown. */
async function sent(path, { method, body, headers = {} }) {
  const answer = await fetch(path, {
    method,
    headers: body ? { ...headers, "content-type": "application/json" } : headers,
    body: body && JSON.stringify(body),
  });
  const content = answer.headers.get("content-type")?.includes("json")
    ? await answer.json()
    : await answer.text();
  if (!answer.ok)
    throw typeof content === "string"
      ? new Error(answer.statusText)
      : { ...content, retryAfter: answer.headers.get("retry-after") };
  return content;
}

const secret = (attributes) => h("input", { type: "password", ...attributes });
const codeField = () =>
  field(
    t("Code of your phone"),
    h("input", { name: "code", inputmode: "numeric", autocomplete: "one-time-code", maxlength: 20 }),
  );
const incomplete = (values) =>
  Object.values(values).every((value) => value.trim()) ? null : t("Fill in every field.");

/** The form beside the wallets; `enter(session)` shows the page. */
export const signInForm = ({ enter, report }, known = {}) =>
  panel(
    t("Sign in with e-mail, password and code"),
    h("p", {}, t("For members whom an owner of a sponsor has invited by e-mail.")),
    signIn({ enter, report }, known),
  );

const signIn = ({ enter, report }, known) =>
  form(
    {
      button: t("Sign in"),
      kind: "plain",
      checks: incomplete,
      action: async (values) => enter(await MemberSession.begin(values)),
      report,
    },
    field(
      t("Name of the sponsor"),
      h("input", { name: "sponsor", autocomplete: "organization", maxlength: 40, value: known.sponsor }),
    ),
    field(
      t("E-mail address"),
      h("input", { name: "email", type: "email", autocomplete: "username", value: known.email }),
    ),
    field(t("Password"), secret({ name: "password", autocomplete: "current-password" })),
    codeField(),
  );

/** The panels of an invitation: choose a password, then set up the phone and sign in. */
export function invitation(token, { enter, report, show }) {
  const accept = async ({ code, password }) => {
    const phone = await sent("/api/members/accept", {
      method: "POST",
      body: { token, code: code.trim(), password },
    });
    show(phoneSetUp(phone, { enter, report }));
  };
  const checks = ({ again, ...values }) =>
    incomplete(values) ?? (values.password === again ? null : t("The two passwords differ."));
  return panel(
    t("You are invited to act for a sponsor"),
    h("p", {}, t("Choose a password. Then you set up an app on your phone that shows codes.")),
    form(
      { button: t("Save the password"), checks, action: accept, report },
      field(
        t("Code of the invitation"),
        h("input", { name: "code", inputmode: "numeric", autocomplete: "off", maxlength: 20 }),
        t("From the owner who invited you. After five wrong codes the link is closed."),
      ),
      field(
        t("New password"),
        secret({ name: "password", autocomplete: "new-password" }),
        t("At least 12 characters, and not a common password."),
      ),
      field(t("New password again"), secret({ name: "again", autocomplete: "new-password" })),
    ),
  );
}

const phoneSetUp = ({ sponsor, email, key, picture }, { enter, report }) =>
  panel(
    t("Set up your phone"),
    h(
      "p",
      {},
      t("Scan this with an app for codes, such as Aegis or Google Authenticator. It is shown only now."),
    ),
    h("img", { class: "code", src: picture, width: 240, height: 240, alt: t("QR code for the app") }),
    details(
      t("The app cannot scan?"),
      h("p", {}, t("Enter this key, with codes that change every 30 seconds:"), " ", h("code", {}, key)),
    ),
    h("h3", {}, t("Then sign in")),
    signIn({ enter, report }, { sponsor, email }),
  );
