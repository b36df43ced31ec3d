// The ad networks that reward users of this service, and earnings that are on their way.

import { actionButton, actions, h, panel, quiet, table } from "./dom.js";
import { icon } from "./icons.js";
import { credits, lasting, number, t, tn, until } from "./text.js";
import { HELD_BECAUSE, SOURCES, nameOf } from "./words.js";
import { pricing, valued } from "./worth.js";

// Names for people, where a network's own is one for its operator.
const NAMES = { "push-report": t("Ads as notifications"), "visit-link": t("Links in ads") };

export async function earn({ session, report, draw }) {
  const [worth, { networks }, held] = await Promise.all([
    pricing(session),
    session.get("/api/user/adNetworks"),
    session
      .get("/api/user/arriving")
      .catch((error) => (error.status === 404 ? { count: 0 } : Promise.reject(error))),
  ]);
  draw(
    panel(
      t("Earn credits"),
      h(
        "p",
        {},
        t(
          "Open a network's offers here, or use an app that shows them: what you earn is added to your credits. A network knows you by a reference, never by your profile.",
        ),
      ),
      networks.length
        ? h(
            "div",
            { class: "cards" },
            networks.map((row) => network(row, worth, report)),
          )
        : quiet(t("No network is available right now. Come back later, or check in each day.")),
    ),
    held.count > 0 && onTheWay(held),
  );
}

function network(
  { networkName, network: slug, kind, userReference, offersUrl, typicalCredits, holdHours },
  worth,
  report,
) {
  const copy = () =>
    navigator.clipboard
      .writeText(userReference)
      .then(() => report(t("Your reference was copied. Paste it into the app that asks for it.")));
  return h(
    "article",
    {},
    h("h3", {}, icon(kind), " ", NAMES[slug] ?? networkName ?? slug),
    h("p", {}, nameOf(SOURCES, kind)),
    typicalCredits && h("p", {}, t("Typically {credits} each", { credits: valued(typicalCredits, worth) })),
    quiet(
      holdHours ? t("Spendable after {time}", { time: lasting(holdHours * 60) }) : t("Spendable at once"),
    ),
    actions(
      offersUrl
        ? h(
            "a",
            { class: "button small", href: offersUrl, target: "_blank", rel: "noreferrer" },
            t("Open the offers"),
          )
        : actionButton(t("Copy my reference"), copy, report, { kind: "plain small" }),
    ),
  );
}

function onTheWay({ count, credits: sum, earnings }) {
  return panel(
    tn("Arriving: {count} earning, {credits}", "Arriving: {count} earnings, {credits}", count, {
      credits: credits(sum),
    }),
    table(
      t("Earnings on their way"),
      [
        { label: t("From"), cell: (row) => row.networkName },
        { label: t("Credits"), number: true, cell: (row) => number(row.credits) },
        { label: t("When"), cell: (row) => (row.arrivesAt ? until(row.arrivesAt) : t("not known yet")) },
        { label: t("Why it is held"), cell: (row) => HELD_BECAUSE[row.heldBecause] ?? t("held") },
      ],
      earnings,
    ),
  );
}
