// The ad networks that reward users of this service.

import { actionButton, h, panel, table } from "./dom.js";
import { SOURCES, nameOf } from "./words.js";

export async function earn({ session, report }) {
  const { networks } = await session.get("/api/user/adNetworks");
  const copy = (reference) => navigator.clipboard.writeText(reference).then(() => report("Copied."));
  const columns = [
    { label: "Network", cell: (row) => row.network },
    { label: "Credits for", cell: (row) => nameOf(SOURCES, row.kind) },
    { label: "Your reference", cell: (row) => h("span", {}, h("code", {}, row.userReference), " ", actionButton("Copy", () => copy(row.userReference), report, { kind: "plain" })) },
  ];
  return panel(
    "Earn credits",
    h("p", {}, "Apps that show ads, offers or surveys of these networks credit you here. The networks know you by a reference, never by your profile."),
    networks.length ? table("Ad networks", columns, networks) : h("p", { class: "quiet" }, "No ad network is available."),
  );
}
