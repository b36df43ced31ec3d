// The account holder's page: signs in with the extension and shows one section at a time.

import { actionButton, h, panel, short } from "./dom.js";
import { Session, findWallets, isSignedOut, wasRejected } from "./session.js";
import { overview } from "./overview.js";
import { history } from "./history.js";
import { subscription } from "./subscription.js";
import { checkIn } from "./check-in.js";
import { earn } from "./earn.js";
import { privacy } from "./privacy.js";

const SECTIONS = {
  overview: ["Overview", overview],
  history: ["History", history],
  subscription: ["Subscription", subscription],
  "check-in": ["Check-in", checkIn],
  earn: ["Earn", earn],
  privacy: ["Sessions and data", privacy],
};
const at = (id) => document.getElementById(id);
let service;
let session = null;
let latest = null;

/** Show the outcome of an action; an error stays until the next action. */
function report(outcome) {
  const failed = outcome instanceof Error || outcome?.code !== undefined;
  if (failed && session && isSignedOut(outcome)) return signedOut("You are signed out. Sign in again.");
  const text = failed ? explain(outcome) : outcome;
  at("message").replaceChildren(text ? h("div", { class: failed ? "notice bad" : "notice" }, text) : "");
}

function explain(error) {
  if (wasRejected(error)) return "You declined the request in the extension.";
  const wait = error.retryAfter ? ` Try again in ${error.retryAfter} seconds.` : "";
  const page = error.detail && [" ", h("a", { href: `/problems/${error.code}` }, "What does this mean?")];
  return h("span", {}, `${error.detail ?? error.message}${wait}`, page);
}

function signedOut(text) {
  session = latest = null;
  Session.forget();
  report(text ?? "");
  at("sections").hidden = true;
  at("who").replaceChildren();
  chooseWallet();
}

async function chooseWallet() {
  const found = await findWallets();
  const offer = found.map(({ name, provider }) => actionButton(`Sign in with ${name}`, () => signIn(provider), report));
  const none = h(
    "p",
    {},
    "No wallet was found in this browser. Install the ",
    h("a", { href: "https://docs.lukso.tech/install-up-browser-extension" }, "Universal Profile browser extension"),
    ", then reload this page.",
  );
  show(
    panel(
      "Sign in with your Universal Profile",
      h("p", {}, "Your extension asks you to sign a message. It is free and sends no transaction."),
      h("div", { class: "actions" }, offer.length ? offer : none),
    ),
  );
}

async function signIn(provider) {
  session = await Session.begin(provider);
  report("");
  await enter();
}

function show(...children) {
  at("content").setAttribute("aria-busy", "false");
  at("content").replaceChildren(...children);
}

async function open(section, { focus }) {
  for (const link of at("sections").children) {
    if (link.hash === `#${section}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const [title, render] = SECTIONS[section];
  document.title = `${title} – Credit relay`;
  at("content").setAttribute("aria-busy", "true");
  const again = () => open(section, { focus: false });
  // If the user opens another section while this one loads, only the later one is shown.
  const turn = (latest = {});
  try {
    const content = await render({ session, service, report, again, signedOut });
    if (turn !== latest) return;
    show(h("h2", { class: "visually-hidden" }, title), content);
  } catch (error) {
    if (turn !== latest) return;
    show();
    report(error);
  }
  if (focus) at("main").focus();
}

const asked = () => (location.hash.slice(1) in SECTIONS ? location.hash.slice(1) : "overview");

async function enter() {
  const links = Object.entries(SECTIONS).map(([name, [title]]) => h("a", { href: `#${name}` }, title));
  at("sections").replaceChildren(...links);
  at("sections").hidden = false;
  const leave = actionButton("Sign out", () => session.end().then(() => signedOut()), report, { kind: "plain" });
  at("who").replaceChildren(h("code", { title: session.address }, short(session.address)), leave);
  showCard();
  await open(asked(), { focus: false });
}

/** Show the profile's name and picture once loaded; without them, or on an error, only the address is shown. */
async function showCard() {
  const { name, picture } = await session.get("/api/user/profile").catch(() => ({}));
  if (!session || !(name || picture)) return;
  at("who").prepend(picture ? h("img", { src: picture, alt: "", width: 40, height: 40 }) : "", name ? h("strong", {}, name) : "");
}

addEventListener("hashchange", () => {
  if (!session || !(location.hash.slice(1) in SECTIONS)) return;
  report("");
  open(asked(), { focus: true });
});
async function start() {
  service = await (await fetch("/api/service")).json();
  session = await Session.remembered();
  await (session ? enter() : chooseWallet());
}

start().catch(report);
