// A page of a profile: signs in with the extension and shows one section at a time.

import { actionButton, actions, h, panel, skeleton } from "./dom.js";
import { Session, SessionEnded, isSignedOut, wasRejected } from "./session.js";
import { short, t } from "./text.js";

const NAME = document.querySelector(".brand").textContent.trim();
const SHOWN_MILLISECONDS = 10_000;
const at = (id) => document.getElementById(id);
const intro = at("intro");
// Asked for at once, and needed only where it is awaited.
const service = fetch("/api/service").then((answer) => answer.json());
service.catch(() => null);
let sections = {};
let session = null;
let other = null;
let latest = null;

/**
 * Show an action's outcome at the bottom of the window; its error `beside` the control that it belongs to, while that is
 * there. Errors, and outcomes that `stay`, remain until closed.
 */
async function report(outcome, { stays = false, beside = null } = {}) {
  const failed = outcome instanceof Error || outcome?.code !== undefined;
  if (failed && session && isSignedOut(outcome))
    return signedOut(
      outcome instanceof SessionEnded
        ? t("Your session has ended, here or on another device. Sign in again to continue.")
        : t("You are signed out. Sign in again."),
    );
  const content = failed ? await explain(outcome) : outcome;
  if (failed && beside && at("main").contains(beside)) return faultAt(beside, content);
  const close = actionButton(t("Close"), () => report(""), report, { kind: "plain small" });
  const toast = h("div", { class: failed ? "toast bad" : "toast" }, h("div", {}, content), close);
  at("message").replaceChildren(content ? toast : "");
  if (!failed && !stays) goesAway(toast);
}

/** Say beside a control what went wrong with it, until an action is tried again or the message is closed. */
function faultAt(control, content) {
  const close = actionButton(t("Close"), () => fault.remove(), report, { kind: "plain small" });
  const fault = h("div", { class: "notice bad fault", role: "alert" }, h("div", {}, content), close);
  at("message").replaceChildren();
  (control.closest(".actions") ?? control).after(fault);
  fault.scrollIntoView({ block: "nearest" });
}

/** Take a message away after a while, but not from under the pointer or the focus. */
function goesAway(toast) {
  setTimeout(
    () => (toast.matches(":hover, :focus-within") ? goesAway(toast) : toast.remove()),
    SHOWN_MILLISECONDS,
  );
}

/** Return an error in the page's own words where it has some. */
async function explain(error) {
  if (wasRejected(error)) return t("You declined the request in the wallet. Nothing was done.");
  if (isUnreachable(error)) return t("The service cannot be reached. Check your connection, then try again.");
  const { PROBLEMS } = await import("./words.js");
  const own = {
    "no-profile": t("The wallet did not share a profile with this page."),
    "no-wallet": t("No wallet was found in this browser."),
  };
  const wait = error.retryAfter ? t("Try again in {seconds} seconds.", { seconds: error.retryAfter }) : "";
  const known = own[error.message] ?? PROBLEMS[error.code];
  const page = error.detail && [" ", h("a", { href: `/problems/${error.code}` }, t("What does this mean?"))];
  return [`${known ?? error.detail ?? error.message} ${wait}`, page, nextStep(error)];
}

const CARD_STEPS = ["card-declined", "address-required", "payment-method-required"];

/** A button for the step that removes the cause of an error, if it is one of the account page's. */
function nextStep({ code }) {
  if (!("plan" in sections) || !CARD_STEPS.includes(code)) return null;
  const go = async () => (await import("./checkout.js")).atStripe({ session }, "card");
  const label = code === "address-required" ? t("Enter card and address") : t("Replace the card");
  return actions(actionButton(label, go, report, { kind: "plain small" }));
}

const isUnreachable = (error) => error?.name === "ServiceUnreachable" || error instanceof TypeError;

async function signedOut(text) {
  session = latest = null;
  Session.forget();
  at("sections").hidden = true;
  at("who").replaceChildren();
  // At once, and inside of what is replaced: nothing below it moves when the ways to sign in are there.
  at("content").setAttribute("aria-busy", "true");
  at("content").replaceChildren(...introduction(), skeleton(t("Loading …")));
  const { chooseWallet } = await import("./sign-in.js");
  show(
    ...introduction(),
    ...(await chooseWallet({ signIn, report, reason: text })),
    ...(other ? [other.signInForm({ enter: entered, report })] : []),
  );
  toTop();
}

/** What the page is for, where the template says it to those who are signed out. */
function introduction() {
  if (intro) intro.hidden = false;
  return intro ? [intro] : [];
}

/** Show the page with a session that another way to sign in has begun. */
async function entered(begun) {
  session = begun;
  report("");
  await enter();
  toTop();
}

async function signIn(provider) {
  session = await Session.begin(provider);
  report("");
  await enter();
  toTop();
}

/** Move a screen reader to the content, and everybody else to the top of the page. */
function toTop() {
  at("main").focus({ preventScroll: true });
  scrollTo(0, 0);
}

function show(...children) {
  at("content").replaceChildren(...children);
  at("content").setAttribute("aria-busy", "false");
}

async function open(section, { focus, keep = false, place: target = "" }) {
  for (const link of at("sections").children) {
    if (link.hash === `#${section}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const [title, render] = sections[section];
  document.title = `${title} – ${NAME}`;
  at("content").setAttribute("aria-busy", "true");
  const heading = h("h2", { class: "visually-hidden" }, title);
  if (!keep) at("content").replaceChildren(heading, skeleton(t("Loading …")));
  if (focus) toTop();
  const again = () => open(section, { focus: false, keep: true });
  // If the user opens another section while this one loads, only the later one is shown.
  const turn = {};
  latest = turn;
  const place = h("div", { class: "stack" });
  const draw = (...parts) => {
    if (turn === latest && !place.isConnected) at("content").replaceChildren(heading, place);
    place.append(...parts.filter(Boolean));
  };
  try {
    await render({ session, service, report, explain, again, draw, signedOut, name: NAME });
  } catch (error) {
    if (turn !== latest) return;
    if (isSignedOut(error)) return report(error);
    const notice = await failure(error, section);
    // What is there stays: the rest of the section, or the one that an action has read again.
    at("content").querySelector(":scope > .failed")?.remove();
    if (keep && !place.isConnected) at("content").prepend(notice);
    else draw(notice);
  }
  if (turn !== latest) return;
  at("content").setAttribute("aria-busy", "false");
  if (target) goTo(target);
}

/** Show a part of the section; a screen reader continues there. */
function goTo(target) {
  const part = at(target);
  part?.scrollIntoView();
  part?.focus({ preventScroll: true });
}

async function failure(error, section) {
  // A browser does not fetch a module again that it could not load once.
  const retry = actionButton(
    t("Try again"),
    () => (error instanceof TypeError ? location.reload() : open(section, { focus: true })),
    report,
  );
  const notice = panel(
    isUnreachable(error)
      ? t("You are offline, or the service is unavailable")
      : t("This could not be loaded"),
    h("div", { role: "alert" }, await explain(error)),
    actions(retry),
  );
  notice.classList.add("failed");
  return notice;
}

/** The section of the address, and the part of it after a slash: "#plan/packs". */
function asked() {
  const [section, place = ""] = location.hash.slice(1).split("/");
  return section in sections ? { section, place } : { section: Object.keys(sections)[0], place: "" };
}

async function enter() {
  const links = Object.entries(sections).map(([name, [title]]) => h("a", { href: `#${name}` }, title));
  at("sections").replaceChildren(...links);
  at("sections").hidden = false;
  const leave = actionButton(t("Sign out"), () => session.end().then(() => signedOut("")), report, {
    kind: "plain small",
  });
  at("who").replaceChildren(
    session.label ?? h("code", { title: session.address }, short(session.address)),
    leave,
  );
  const { section, place } = asked();
  await open(section, { focus: false, place });
  showCard();
}

/** Show the profile's name and picture once loaded; without them, or on an error, only the address is shown. */
async function showCard() {
  if (!session?.address) return;
  const { name, picture } = (await session.get("/api/user/profile").catch(() => null)) ?? {};
  if (!session || !(name || picture)) return;
  at("who").prepend(
    picture ? h("img", { src: picture, alt: "", width: 40, height: 40 }) : "",
    name ? h("strong", {}, name) : "",
  );
}

addEventListener("hashchange", () => {
  const { section, place } = asked();
  if (!session || !location.hash.startsWith(`#${section}`)) return;
  report("");
  if (place && at(place)) goTo(place);
  else open(section, { focus: !place, place });
});

/**
 * Show a page of these sections, `{name: [title, render]}`; the first one is shown where the address names none.
 * `another` is a way to sign in without a wallet: `remembered()`, `signInForm({enter, report})`, and `invited({…})`,
 * which returns what is shown in the place of the page, or null.
 */
export async function start(itsSections, another = null) {
  sections = itsSections;
  other = another;
  try {
    const invited = other?.invited({ enter: entered, report, show });
    if (invited) return show(invited);
    session = other?.remembered() ?? (await Session.remembered());
    await (session ? enter() : signedOut(""));
  } catch (error) {
    report(error);
  }
}
