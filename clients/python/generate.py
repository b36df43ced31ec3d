"""Write `schema.py` of the package from docs/openapi.yaml; with `--check`, fail if that would change it."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs" / "openapi.yaml"
SCHEMA = HERE / "src" / "credit_relay_client" / "schema.py"
HEAD = '''"""Types of the API, generated from docs/openapi.yaml by `make schema`."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict'''
RUFF = Path(sys.executable).parent / "ruff"
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
Schema = dict[str, Any]


def main() -> int:
    """Write the file, or compare it with `--check`."""
    text = _formatted(schema_of(DOCUMENT.read_text(encoding="utf-8")))
    if "--check" not in sys.argv:
        SCHEMA.write_text(text, encoding="utf-8")
    elif SCHEMA.read_text(encoding="utf-8") != text:
        sys.exit(f"{SCHEMA} differs from {DOCUMENT}: run make schema.")
    return 0


def schema_of(document: str) -> str:
    """Return the module for an OpenAPI document."""
    codes = sorted(set(re.findall(r"(?<=\bcode: )[a-z0-9-]+$", document, re.MULTILINE)))
    schemas = yaml.safe_load(document)["components"]["schemas"]
    types = [
        _typed_dict(name, schema) if "properties" in schema else f"{name}: TypeAlias = {_annotation(schema)}"
        for name, schema in schemas.items()
    ]
    code = f"# Every documented problem code.\nProblemCode: TypeAlias = {_literal(codes)}"
    return "\n\n".join([HEAD, code, *types])


def _typed_dict(name: str, schema: Schema) -> str:
    required = schema.get("required", ())
    members = []
    for member, kind in schema["properties"].items():
        annotation = _annotation(kind)
        if "$ref" in str(kind):  # quoted, because the class may be defined later
            annotation = f'"{annotation}"'
        members.append(f"{member}: {annotation if member in required else f'NotRequired[{annotation}]'}")
    body = "\n".join([*_docstring(schema.get("description", "")), *members])
    return f"class {name}(TypedDict):\n{textwrap.indent(body, '    ')}"


def _docstring(description: str) -> list[str]:
    lines = textwrap.wrap(" ".join(description.split()), 90)
    return [f'"""{lines[0]}"""'] if len(lines) == 1 else ['"""', *lines, '"""'] if lines else []


def _annotation(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "enum" in schema:
        return _literal(schema["enum"])
    for union in ("allOf", "oneOf", "anyOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(map(_annotation, schema[union])))
    kinds = schema.get("type", "object")
    return " | ".join(_of_type(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _of_type(kind: str, schema: Schema) -> str:
    if kind == "array":
        return f"list[{_annotation(schema['items'])}]"
    return SCALARS.get(kind, "dict[str, Any]")


def _literal(values: list[str]) -> str:
    return f"Literal[{', '.join(repr(value) for value in values)}]"


def _formatted(text: str) -> str:
    """Return the text as the project formats its code."""
    for arguments in (["check", "--fix", "--select", "I,UP,F401"], ["format"]):
        command = [str(RUFF), *arguments, "--quiet", "--stdin-filename", str(SCHEMA), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
