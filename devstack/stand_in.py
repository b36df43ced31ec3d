"""The stand-in for the browser extension on a running dev stack, so that somebody without one can try the page."""

import json
from pathlib import Path

from devstack.files import PROJECT
from devstack.services.stack import Services
from devstack.world.profiles import Profile

_EXTENSION = PROJECT / "devstack/extension/extension.js"
# What signs or changes something asks first, as an extension does. A real extension goes first.
_INSTALL = """
if (!window.lukso) {{
  const ask = async (request) => {{
    const body = JSON.stringify({{ jsonrpc: "2.0", id: 1, ...request }});
    const answer = await fetch({node}, {{ method: "POST", headers: {{ "Content-Type": "application/json" }}, body }});
    const {{ result, error }} = await answer.json();
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  }};
  installExtension({{
    name: "a test key (dev stack)",
    profiles: [{profile}],
    privateKey: {key},
    node: {{ request: ask }},
    approves: ({{ method }}) => confirm(`Test key of the dev stack: allow ${{method}}?`),
  }});
}}
"""


def write_stand_in(path: Path, services: Services, profile: Profile) -> dict[str, str]:
    """Write the script with the key of a demo profile; return the setting that puts it into the page."""
    installed = _INSTALL.format(
        node=json.dumps(services.rpc_url),
        profile=json.dumps(profile.profile_address),
        key=json.dumps(profile.controller.private_key),
    )
    path.write_text(_EXTENSION.read_text() + installed)
    return {"DEV_EXTENSION_FILE": str(path.resolve())}
