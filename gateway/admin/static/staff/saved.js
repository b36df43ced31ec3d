// Saved filters of lists, stored in this browser per member of staff.
const KEY = `saved-lists:${document.body?.dataset.staff}:${window.location.pathname}`;

function part(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function savedLists() {
  return JSON.parse(localStorage.getItem(KEY) ?? "{}");
}

function store(lists) {
  localStorage.setItem(KEY, JSON.stringify(lists));
  show();
}

function link([name, query]) {
  const open = part("a", { href: `${window.location.pathname}${query}` }, name);
  if (query === window.location.search) open.setAttribute("aria-current", "page");
  const forget = part("button", { type: "button", "aria-label": `Forget ${name}` }, "×");
  forget.addEventListener("click", () => {
    const { [name]: _, ...others } = savedLists();
    store(others);
  });
  return part("span", { class: "saved" }, open, forget);
}

function form() {
  const name = part("input", {
    name: "saved",
    "aria-label": "Name of the list",
    placeholder: "Save this list as",
    maxlength: "40",
    required: "",
  });
  const made = part("form", {}, name, part("button", { type: "submit" }, "Save"));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    store({ ...savedLists(), [name.value.trim()]: window.location.search });
  });
  return made;
}

function show() {
  document.getElementById("saved-lists")?.remove();
  const links = Object.entries(savedLists()).map(link);
  const isFiltered = window.location.search.length > 1;
  if (!links.length && !isFiltered) return;
  const bar = part("nav", { id: "saved-lists", "aria-label": "Saved lists" }, ...links);
  if (isFiltered) bar.append(form());
  document.getElementById("changelist")?.before(bar);
}

show();
