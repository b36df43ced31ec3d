// Elements of the page. Text is always set as text, never parsed as HTML.

import { credits, number, short } from "./text.js";

/** Makes an element: h("a", {href: "/"}, "home"). Attributes that are false, null or undefined are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children
      .flat(2)
      .filter((child) => child !== null && child !== undefined && child !== false && child !== ""),
  );
  return element;
}

export const panel = (title, ...children) =>
  h("section", { class: "panel" }, h("h2", {}, title), ...children);
/** A panel that a link leads to, as in "#plan/packs". */
export function targetPanel(id, title, ...children) {
  const element = panel(title, ...children);
  element.id = id;
  element.tabIndex = -1;
  return element;
}
/** Credits as the large figure of a page, whose number stands out. */
export function figure(amount) {
  const [before, after] = credits(amount).split(number(amount));
  return [before, h("b", {}, number(amount)), after];
}
export const actions = (...children) => h("div", { class: "actions" }, ...children);
export const quiet = (...children) => h("p", { class: "quiet" }, ...children);
export const details = (summary, ...children) => h("details", {}, h("summary", {}, summary), ...children);

/** A button that is disabled while its action runs; errors go to `report`, which says them beside it. */
export function actionButton(label, action, report, options = {}) {
  const button = h("button", { type: "button", class: options.kind }, label);
  button.addEventListener("click", () => busy(button, action, report));
  return button;
}

export async function busy(button, action, report) {
  button.disabled = true;
  for (const fault of document.querySelectorAll(".fault")) fault.remove();
  try {
    await action();
  } catch (error) {
    await report(error, { beside: button });
  } finally {
    button.disabled = false;
  }
}

/**
 * A form whose submission runs an action like a button. `checks(values)` returns a sentence where something is wrong, or
 * `{name, text}` to say it beside the field of that name.
 */
export function form({ button, kind, checks = () => null, action, report }, ...fields) {
  const fault = h("p", { class: "bad", role: "alert" });
  const submit = h("button", { class: kind }, button);
  fault.id = `fault-${++faults}`;
  const element = h("form", { novalidate: true }, ...fields, fault, submit);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(element));
    if (say(fault, element, checks(values))) return;
    busy(submit, () => action(values), report);
  });
  return element;
}

let faults = 0;

/** Says what is wrong with a form, beside the field if it is known; returns whether something is. */
export function say(fault, element, found) {
  for (const marked of element.querySelectorAll("[aria-invalid]"))
    for (const name of ["aria-invalid", "aria-describedby"]) marked.removeAttribute(name);
  const wrong = found?.name && element.elements[found.name];
  if (wrong) {
    wrong.setAttribute("aria-invalid", "true");
    wrong.setAttribute("aria-describedby", fault.id);
    wrong.closest("label").after(fault);
  } else element.querySelector("button:not([type])").before(fault);
  fault.textContent = found?.text ?? found ?? "";
  if (found) (wrong || element.querySelector("input, select")).focus();
  return Boolean(found);
}

export const field = (label, input, hint) =>
  h("label", {}, label, input, typeof hint === "string" ? h("span", { class: "hint" }, hint) : hint);

/** A table whose rows become blocks on a phone, unless `kind` is another. Columns are {label, cell(row), number}. */
export function table(caption, columns, rows, kind = "stacks") {
  const cells = (row) =>
    columns.map(({ label, cell, number }) =>
      h("td", { "data-label": label, class: number && "number" }, cell(row)),
    );
  return h(
    "table",
    { class: kind },
    h("caption", { class: "visually-hidden" }, caption),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        columns.map(({ label, number }) => h("th", { scope: "col", class: number && "number" }, label)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map((row) => h("tr", {}, cells(row))),
    ),
  );
}

export const definitions = (...pairs) =>
  h(
    "dl",
    {},
    pairs.filter(Boolean).flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]),
  );

/** Grey bars as a placeholder while content loads; screen readers read the text. */
export const skeleton = (text) =>
  h("div", { class: "skeleton" }, h("p", { class: "visually-hidden" }, text), h("div"), h("div"), h("div"));

/** A link to the explorer, or plain text without one. */
export function explorerLink(service, kind, value, text) {
  const shown = text ?? h("code", { title: value }, short(value));
  return service.explorerUrl
    ? h("a", { href: `${service.explorerUrl}/${kind}/${value}`, rel: "noreferrer" }, shown)
    : shown;
}

/** Asks in a dialog; resolves to whether the user agreed. */
export function confirmed({ title, yes, no, kind }, ...content) {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "dialog-title" },
    h("h2", { id: "dialog-title" }, title),
    ...content,
    h(
      "form",
      { method: "dialog", class: "actions" },
      h("button", { value: "no", class: "plain", autofocus: true }, no),
      h("button", { value: "yes", class: kind }, yes),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    }),
  );
}
