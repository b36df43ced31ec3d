// A secret that the page shows once, with a button that copies it.

import { actionButton, actions, h } from "./dom.js";
import { t } from "./text.js";

export function shownOnce(secret, { warning, hint, copy, copied }, { report, again }) {
  const copyIt = () => navigator.clipboard.writeText(secret).then(() => report(copied));
  return h(
    "div",
    { class: "notice" },
    h("p", {}, h("strong", {}, warning), " ", hint),
    h("p", {}, h("code", {}, secret)),
    actions(
      actionButton(copy, copyIt, report, { kind: "plain small" }),
      actionButton(t("I have kept it"), again, report, { kind: "plain small" }),
    ),
  );
}
