// Replaces expressions of the theme's pages that the content security policy forbids.
// Alpine's build without eval has no access to globals, so everything that a page uses is registered here.
document.addEventListener("alpine:init", () => {
  const here = { location: { pathname: window.location.pathname, search: window.location.search } };

  Alpine.data("theme", (initial) => ({ ...theme(initial), window: here }));
  Alpine.data("searchForm", searchForm);
  Alpine.data("searchDropdown", () => ({
    ...searchDropdown(),
    open() {
      this.openSearchResults = true;
      this.currentIndex = 0;
    },
    leave() {
      this.openSearchResults = false;
      if (this.$refs.searchInput.value === "") this.$refs.searchInput.blur();
      else this.$refs.searchInput.value = "";
    },
  }));

  Alpine.data("page", () => ({
    activeTab: "",
    sidebarMobileOpen: false,
    sidebarDesktopOpen: localStorage.getItem("sidebarDesktopOpen") !== "0",
    init() {
      this.activeTab = getCurrentTab() || this.$root.dataset.firstTab;
      this.$watch("sidebarDesktopOpen", (isOpen) =>
        localStorage.setItem("sidebarDesktopOpen", isOpen ? "1" : "0"),
      );
    },
  }));
});

// Accessibility: mouse-only controls, icons that a screen reader would read as words, and unnamed regions.
const NAMES = {
  "#searchbar-submit": "Search",
  "#searchbar": "Search this list",
  "header [x-on\\:click*=openTheme]": "Light or dark",
  "[x-on\\:click*=openRelatedWidget]": "More for this field",
  "[x-on\\:click*=sidebarMobileOpen]": "All lists",
  "[x-on\\:click*=showActions]": "More to do",
  "#nav-sidebar-apps": "All lists",
  "#changelist-form [data-simplebar]": "Rows",
  "#changelist-filter [data-simplebar]": "Filters",
};
const PRESSED = ":is(div, span, h2, a:not([href]))[x-on\\:click]:not(#changelist-filter-close)";

function press(event) {
  if (event.target !== event.currentTarget || (event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  event.currentTarget.click();
}

function makeOperable() {
  for (const icon of document.querySelectorAll(".material-symbols-outlined")) {
    if (!icon.matches(PRESSED)) icon.setAttribute("aria-hidden", "true");
  }
  for (const pressed of document.querySelectorAll(PRESSED)) {
    pressed.setAttribute("role", "button");
    pressed.tabIndex = 0;
    pressed.addEventListener("keydown", press);
  }
  for (const scrolled of document.querySelectorAll(".figures .scroll")) scrolled.tabIndex = 0;
  for (const [selector, name] of Object.entries(NAMES)) {
    for (const part of document.querySelectorAll(selector)) part.setAttribute("aria-label", name);
  }
  for (const scrolled of document.querySelectorAll("[data-simplebar]")) {
    const heading = scrolled.closest("fieldset[aria-labelledby]")?.getAttribute("aria-labelledby");
    const name = scrolled.getAttribute("aria-label") ?? document.getElementById(heading)?.textContent.trim();
    scrolled.removeAttribute("aria-label"); // A plain division has no name; what scrolls within it gets it.
    if (name) scrolled.dataset.simplebarAriaLabel = name;
  }
}

// Right-align the heading of a column of numbers.
function alignHeadings() {
  for (const table of document.querySelectorAll("table:has(td span.number)")) {
    for (const row of table.querySelectorAll("tbody tr")) {
      for (const number of row.querySelectorAll(":scope > * > span.number, :scope > * > a > span.number")) {
        table.tHead?.rows[0].cells[number.closest("td, th").cellIndex]?.classList.add("numeric");
      }
    }
  }
}

// Copy a secret that is shown once. The button shows whether it worked.
async function copy(event) {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    button.textContent = "Selected: press Ctrl+C";
  }
}

// Reload the page when what it waits for has happened. Nothing else moves the page under a reader.
const FIRST_MILLISECONDS = 2_000;
const LAST_MILLISECONDS = 30_000;

function awaitedIn(page) {
  return page.querySelector("[data-awaited]")?.textContent;
}

function reloadOnceDone(milliseconds = FIRST_MILLISECONDS) {
  const awaited = awaitedIn(document);
  if (awaited === undefined) return;
  setTimeout(async () => {
    const answer = await fetch(window.location.href).catch(() => null);
    const page = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
    if (page && awaitedIn(page) !== awaited) window.location.reload();
    else reloadOnceDone(Math.min(2 * milliseconds, LAST_MILLISECONDS));
  }, milliseconds);
}

// Registered before the theme's own listeners, so that its scroll areas are named when they are made.
document.addEventListener("DOMContentLoaded", () => {
  makeOperable();
  alignHeadings();
  reloadOnceDone();
  for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", copy);
});
