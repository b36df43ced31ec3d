// How to sign in, with the wallets of this browser, and what to do without one.

import { actionButton, actions, h, panel } from "./dom.js";
import { findWallets } from "./session.js";
import { t } from "./text.js";

const EXTENSION = "https://docs.lukso.tech/install-up-browser-extension";

export async function chooseWallet({ signIn, report, reason }) {
  const found = await findWallets();
  const notice = reason && h("p", { class: "notice", role: "alert" }, reason);
  if (!found.length)
    return [notice, matchMedia("(pointer: coarse)").matches ? onPhone(report) : onDesktop(report)].filter(
      Boolean,
    );
  const buttons = found.map(({ name, provider }) =>
    actionButton(t("Sign in with {wallet}", { wallet: name }), () => signIn(provider), report),
  );
  const sign = panel(
    t("Sign in with your Universal Profile"),
    h(
      "p",
      {},
      t(
        "Your wallet asks you to sign a message. It is free and sends no transaction. You need no password and no e-mail address.",
      ),
    ),
    actions(...buttons),
  );
  return [notice, sign].filter(Boolean);
}

const onDesktop = (report) =>
  panel(
    t("You need a Universal Profile wallet"),
    h(
      "p",
      {},
      t(
        "No wallet was found in this browser. Install the Universal Profile extension, create or import a profile, then reload this page.",
      ),
    ),
    actions(
      h("a", { class: "button", href: EXTENSION, rel: "noreferrer" }, t("Get the extension")),
      actionButton(t("Reload this page"), () => location.reload(), report, { kind: "plain" }),
    ),
    h("h3", {}, t("Is your profile in a wallet app on your phone?")),
    h(
      "p",
      {},
      t(
        "Scan this code with the phone, and open the page in the browser of the wallet app. An app without a browser cannot sign in here.",
      ),
    ),
    h("img", {
      class: "code",
      src: "/account/code.svg",
      width: 180,
      height: 180,
      alt: t("QR code with the address of this page"),
    }),
  );

// Browsers of phones have no extensions, so what works is the browser inside a wallet's app, or a computer.
function onPhone(report) {
  const share = async () => {
    if (navigator.share) return navigator.share({ url: location.href });
    await navigator.clipboard.writeText(location.href);
    report(t("The link was copied."));
  };
  return panel(
    t("Continue in a wallet app or on a computer"),
    h(
      "p",
      {},
      t(
        "This browser has no wallet, and phone browsers cannot install the Universal Profile extension. Open this page in the browser of a wallet app that holds your profile, or on a computer with the extension.",
      ),
    ),
    actions(actionButton(t("Send the link to myself"), share, report)),
  );
}
