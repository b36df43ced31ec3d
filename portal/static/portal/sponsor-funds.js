// A sponsor's funds: the alarm for low credits, packs that members buy, and invoices.

import { actionButton, actions, field, form, h, panel, quiet, table } from "./dom.js";
import { credits, likelyCurrency, money, number, t, unixDate } from "./text.js";

export async function show(context) {
  const { session, path, draw } = context;
  const [{ rights }, alarm, offer, invoices] = await Promise.all([
    session.get(`${path}/overview`),
    session.get(`${path}/alarm`),
    // A card belongs to a profile.
    session.address ? ifOffered(session.get("/api/payments/packs")) : null,
    session.get(`${path}/invoices`),
  ]);
  const mayChange = rights.includes("manage");
  draw(
    alarmed(alarm, mayChange, context),
    mayChange && offer?.packs.length > 0 && packs(offer.packs, context),
    paid(invoices.results, context),
  );
}

/** Null if this service sells no packs. */
const ifOffered = (asked) =>
  asked.catch((error) => {
    if (error.status === 404 || error.code === "billing-unavailable") return null;
    throw error;
  });

function alarmed({ credits: limit }, mayChange, { session, path, again, report }) {
  const set = async (value) => {
    await session.put(`${path}/alarm`, { credits: value ? Number(value) : null });
    await again();
    report(t("Saved."));
  };
  const checks = ({ limit: value }) =>
    /^([1-9]\d{0,14})?$/.test(value.trim()) ? null : t("Enter a whole number of credits above 0.");
  return panel(
    t("Alarm"),
    h(
      "p",
      {},
      limit === null
        ? t("No alarm is set.")
        : t("Members are notified when fewer than {credits} are left.", { credits: credits(limit) }),
    ),
    h(
      "p",
      { class: "quiet" },
      t("Members who have confirmed an address on their account page get an e-mail."),
    ),
    mayChange
      ? form(
          {
            button: t("Save the alarm"),
            kind: "plain",
            checks,
            action: ({ limit: value }) => set(value.trim()),
            report,
          },
          field(
            t("Notify below this many credits (empty for no alarm)"),
            h("input", { name: "limit", inputmode: "numeric", autocomplete: "off", value: limit ?? "" }),
          ),
        )
      : quiet(t("Managers and owners set the alarm.")),
  );
}

function packs(offered, context) {
  const currency = likelyCurrency(offered.map((pack) => pack.currency));
  return panel(
    t("Buy credits for the sponsor"),
    h(
      "p",
      {},
      t(
        "We charge your own saved card and issue the receipt to you. The credits are added to the sponsor at once.",
      ),
    ),
    h(
      "ul",
      { class: "packs" },
      offered
        .filter((pack) => pack.currency === currency)
        .map((pack) => h("li", {}, h("strong", {}, credits(pack.credits)), buyButton(pack, context))),
    ),
  );
}

/** Each click is one purchase: a retry after a lost answer sends the same idempotency key. */
function buyButton({ pack, cost, currency }, { session, path, again, report }) {
  let key = crypto.randomUUID();
  const buy = async () => {
    try {
      const done = await session.post(`${path}/purchases`, { pack }, { "Idempotency-Key": key });
      key = crypto.randomUUID();
      await again();
      report(
        t("Thank you. {credits} for {price} were added to the sponsor's account.", {
          credits: credits(done.credits),
          price: money(done.cost, done.currency),
        }),
      );
    } catch (error) {
      if (error.code !== "payment-method-required") throw error;
      report(
        h(
          "span",
          {},
          t("No card is saved yet."),
          " ",
          h("a", { href: "/account#plan" }, t("Save a card on your account page")),
        ),
        { stays: true },
      );
    }
  };
  return actionButton(t("Buy for {price}", { price: money(cost, currency) }), buy, report);
}

function paid(rows, { session, path, report }) {
  const open = async ({ invoiceId }) => {
    const { pageUrl } = await session.get(`${path}/invoices/${invoiceId}`);
    location.assign(pageUrl);
  };
  const returned = (row) =>
    row.returned > 0
      ? [
          " ",
          h(
            "span",
            { class: "bad" },
            t("({amount} returned)", { amount: money(row.returned, row.currency) }),
          ),
        ]
      : "";
  return panel(
    t("Paid for the sponsor"),
    rows.length > 0
      ? table(
          t("Paid for the sponsor"),
          [
            { label: t("Date"), cell: (row) => unixDate(row.createdAt) },
            { label: t("Invoice"), cell: (row) => row.number },
            {
              label: t("Amount"),
              number: true,
              cell: (row) => h("span", {}, money(row.total, row.currency), returned(row)),
            },
            { label: t("Credits"), number: true, cell: (row) => number(row.credits - row.creditsTakenBack) },
            {
              label: t("Receipt"),
              cell: (row) =>
                actions(actionButton(t("Open"), () => open(row), report, { kind: "plain small" })),
            },
          ],
          rows,
        )
      : quiet(t("No purchases yet. The operator can also add credits.")),
  );
}
