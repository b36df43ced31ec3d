// The page of a sponsor's members. Sections are loaded when they are opened.

import { details, field, h, panel, quiet } from "./dom.js";
import { start } from "./page.js";
import { MemberSession, invitation, signInForm } from "./sponsor-member.js";
import { t } from "./text.js";

const CHOSEN = "credit-relay.sponsor";

/** A section of the sponsor that is chosen: `module` has a function `show`, which gets its `path` in the API as well.
 * Under it, `opens` offers to open another one. */
const section =
  (load, opens = false) =>
  async (context) => {
    const loading = load();
    loading.catch(() => null);
    const { sponsors, selfService } = await context.session.get("/api/sponsors");
    // What is opened belongs to a profile.
    const offer = selfService.isOn && context.session.address && selfService;
    if (!sponsors.length) return context.draw(...(offer ? await first(offer, context) : [noSponsor()]));
    const sponsor = sponsors.find(({ name }) => name === sessionStorage.getItem(CHOSEN)) ?? sponsors[0];
    if (sponsors.length > 1) context.draw(choice(sponsors, sponsor, context));
    await (await loading).show({ ...context, sponsor, path: `/api/sponsors/${sponsor.name}` });
    if (offer && opens)
      context.draw(
        panel(t("Another sponsor"), details(t("Open a sponsor"), ...(await opened(offer, context)))),
      );
  };

const first = async (offer, context) => [
  panel(t("Open a sponsor"), ...(await opened(offer, context))),
  quiet(
    t("To act for a sponsor that exists, ask one of its owners to add your profile as a member."),
    " ",
    h("a", { href: "/docs/sponsors" }, t("How a sponsor pays for its users")),
  ),
];

/** The form that opens a sponsor. It then chooses it, and leads to the section that comes next. */
async function opened(offer, context) {
  const { opening } = await import("./sponsor-open.js");
  const choose = (name, hash, outcome) => {
    sessionStorage.setItem(CHOSEN, name);
    if (location.hash === hash) return context.again().then(() => context.report(outcome));
    // The page takes messages away when another section is opened.
    addEventListener("hashchange", () => context.report(outcome), { once: true });
    location.hash = hash;
  };
  return opening(offer, { ...context, choose });
}

function choice(sponsors, { name: chosen }, { again }) {
  const change = ({ target }) => {
    sessionStorage.setItem(CHOSEN, target.value);
    again();
  };
  const options = sponsors.map(({ name, displayName }) =>
    h("option", { value: name, selected: name === chosen }, displayName),
  );
  return h("div", { class: "short" }, field(t("Sponsor"), h("select", { onchange: change }, options)));
}

const noSponsor = () =>
  panel(
    t("You are not a member of a sponsor"),
    h(
      "p",
      {},
      t(
        "A sponsor pays for its users' transactions, by its own rules. Ask the operator of this service to open one for you, or ask a sponsor's owner to add your profile as a member.",
      ),
    ),
    h("p", {}, h("a", { href: "/docs/sponsors" }, t("How a sponsor pays for its users"))),
  );

const INVITATION = "#invitation/";

/** The panel of an invitation, whose token is in the address; it is taken out, so that it does not stay in the history. */
function invited(context) {
  if (!location.hash.startsWith(INVITATION)) return null;
  const token = location.hash.slice(INVITATION.length);
  history.replaceState(null, "", location.pathname);
  return invitation(token, context);
}

start(
  {
    overview: [t("Overview"), section(() => import("./sponsor-overview.js"))],
    policies: [t("Policies"), section(() => import("./sponsor-policies.js"))],
    calls: [t("Calls"), section(() => import("./sponsor-calls.js"))],
    spend: [t("Spend"), section(() => import("./sponsor-spend.js"))],
    funds: [t("Funds"), section(() => import("./sponsor-funds.js"))],
    webhooks: [t("Webhooks"), section(() => import("./sponsor-webhooks.js"))],
    access: [t("Access"), section(() => import("./sponsor-access.js"), true)],
  },
  { remembered: MemberSession.remembered, signInForm, invited },
);
