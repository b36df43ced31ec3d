// Names what Swagger UI leaves without a name on the page of the API: two parts of the page, and lists of examples.
const REGIONS = { ".information-container": "About the API", ".scheme-container": "Authorization" };

new MutationObserver(() => {
  for (const [selector, name] of Object.entries(REGIONS)) {
    const part = document.querySelector(`${selector}:not([role])`);
    part?.setAttribute("aria-label", name);
    part?.setAttribute("role", "region");
  }
  // The button around it does the same, and opens the operation's own address too.
  for (const link of document.querySelectorAll("button.opblock-summary-control a[href]"))
    link.removeAttribute("href");
  for (const list of document.querySelectorAll("select:not([aria-label])")) {
    const status = list.closest("tr[data-code]")?.dataset.code;
    list.setAttribute("aria-label", status ? `Examples of ${status}` : "Examples");
  }
}).observe(document.body, { childList: true, subtree: true });
