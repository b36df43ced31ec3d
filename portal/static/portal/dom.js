// Elements, words and numbers of the page. Text is always set as text, never parsed as HTML.

/** Makes an element: h("a", {href: "/"}, "home"). Attributes that are false, null or undefined are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const panel = (title, ...children) => h("section", { class: "panel" }, h("h2", {}, title), ...children);

/** A button that is disabled while its action runs; errors go to `report`. */
export function actionButton(label, action, report, options = {}) {
  const button = h("button", { type: "button", class: options.kind }, label);
  button.addEventListener("click", () => busy(button, action, report));
  return button;
}

export async function busy(button, action, report) {
  button.disabled = true;
  try {
    await action();
  } catch (error) {
    report(error);
  } finally {
    button.disabled = false;
  }
}

/** A table whose rows become blocks on a phone. Columns are {label, cell(row), number}. */
export function table(caption, columns, rows) {
  const cells = (row) =>
    columns.map(({ label, cell, number }) => h("td", { "data-label": label, class: number && "number" }, cell(row)));
  return h(
    "table",
    { class: "stacks" },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, columns.map(({ label, number }) => h("th", { scope: "col", class: number && "number" }, label)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, cells(row)))),
  );
}

export const definitions = (...pairs) => h("dl", {}, pairs.filter(Boolean).flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));

export const number = (value) => new Intl.NumberFormat().format(value);
export const credits = (value) => `${number(value)} ${Math.abs(value) === 1 ? "credit" : "credits"}`;
export const percent = (fraction) =>
  new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 2 }).format(fraction);
export const money = (minor, currency) => {
  const format = new Intl.NumberFormat(undefined, { style: "currency", currency: currency.toUpperCase() });
  return format.format(minor / 10 ** format.resolvedOptions().maximumFractionDigits);
};
export const dateTime = (iso) => new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
export const date = (seconds) => new Date(seconds * 1000).toLocaleDateString(undefined, { dateStyle: "long" });
export const short = (hex) => `${hex.slice(0, 8)}…${hex.slice(-6)}`;

/** The time until a moment, such as "3 hours". */
export function until(iso) {
  const minutes = Math.max(0, Math.round((new Date(iso) - Date.now()) / 60_000));
  const [value, unit] = minutes < 120 ? [minutes, "minute"] : minutes < 2880 ? [Math.round(minutes / 60), "hour"] : [Math.round(minutes / 1440), "day"];
  return new Intl.NumberFormat(undefined, { style: "unit", unit, unitDisplay: "long" }).format(value);
}

/** A link to the explorer, or plain text without one. */
export function explorerLink(service, kind, value) {
  if (!service.explorerUrl) return h("code", { title: value }, short(value));
  return h("a", { href: `${service.explorerUrl}/${kind}/${value}`, rel: "noreferrer", title: value }, h("code", {}, short(value)));
}
