// The ad networks that reward users of this service, and earnings that are on their way.

import { actionButton, actions, h, panel, quiet, table } from "./dom.js";
import { icon } from "./icons.js";
import { credits, lasting, number, t, tn, until } from "./text.js";
import { HELD_BECAUSE, SOURCES, nameOf } from "./words.js";

export async function earn({ session, report, draw }) {
  const [{ networks }, held] = await Promise.all([
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
          "Apps that show surveys, offers, videos or ads of these networks credit you here. A network knows you by a reference, never by your profile.",
        ),
      ),
      networks.length
        ? h(
            "div",
            { class: "cards" },
            networks.map((row) => network(row, report)),
          )
        : quiet(t("No network is available right now. Come back later, or check in each day.")),
    ),
    held.count > 0 && onTheWay(held),
  );
}

function network({ networkName, network: slug, kind, userReference, typicalCredits, holdHours }, report) {
  const copy = () =>
    navigator.clipboard
      .writeText(userReference)
      .then(() => report(t("Your reference was copied. Paste it into the app that asks for it.")));
  return h(
    "article",
    {},
    h("h3", {}, icon(kind), " ", networkName ?? slug),
    h("p", {}, nameOf(SOURCES, kind)),
    h(
      "p",
      {},
      typicalCredits
        ? t("Typically {credits} each", { credits: credits(typicalCredits) })
        : t("No typical amount is known yet"),
    ),
    quiet(
      holdHours ? t("Spendable after {time}", { time: lasting(holdHours * 60) }) : t("Spendable at once"),
    ),
    actions(actionButton(t("Copy my reference"), copy, report, { kind: "plain small" })),
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
