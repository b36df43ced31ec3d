// What the theme's pages say in expressions that the policy forbids, said in a file.
// Alpine's build without eval knows no globals: everything a page names is registered here.
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
      this.$watch("sidebarDesktopOpen", (isOpen) => localStorage.setItem("sidebarDesktopOpen", isOpen ? "1" : "0"));
    },
  }));
});
