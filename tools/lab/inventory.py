"""
Count the tracked files: `python -m lab inventory [--against COMMIT]` prints a table of files, lines and words.

A commit is read from git's object store, so both columns come from one run of the same code. Lines are counted as
`wc -l` does, in every tracked file. Measured figures of functions and docstrings come from the syntax trees.
"""

import ast
import io
import re
import subprocess
import tarfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath
from statistics import median, quantiles

from devstack.files import PROJECT

Files = dict[str, bytes]

_LONG_FUNCTION, _SHORT_FILE = 60, 40
_PRODUCT = {
    *("gateway", "users", "credits", "proofs", "rewards", "earnings", "relay", "payments", "checkin"),
    *("accounting", "portal", "backoffice", "webhooks", "signer", "sponsors", "templates"),
}
_WITH_TESTS = {"tests", "stripe_double"}
_LAB = ("bench", "chaos", "cluster", "mutation", "rehearsals", "structure.py", "ledger_machine.py")
# Generated from other files, or vendored.
_GENERATED = (
    *(
        "docs/bench/",
        "docs/chaos/",
        "docs/mutation.json",
        "docs/openapi.yaml",
        "docs/pictures/",
        "deploy/rendered/",
    ),
    *("clients/typescript/src/schema.ts", "clients/python/src/credit_relay_client/schema.py"),
    *("portal/static/portal/relay-client.js", "devstack/extension/", "requirements/"),
)
_GENERATED_NAMES = {"package-lock.json", "stripe-shapes.json"}
# The phrases of prose that hides its actor; each is counted in Markdown, docstrings, comments and templates, and all
# of them together in names of tests, SQL comments, titles of decisions and texts of the product.
_PHRASES = {
    "whoever, whosever": r"\bwho(so)?ever\b",
    "nobody, somebody": r"\b(nobody|somebody)\b",
    "so many, so long": r"\bso (many|long)\b",
    "is no": r"\bis no\b",
    "say, says": r"\bsays?\b",
    "what is": r"\bwhat is\b",
    "lets go": r"\blets? go\b",
    "stands still": r"\b(stands?|stood|standing) still\b",
    "is heard of": r"\bheard of\b",
    "goes on": r"\b(goes|go|went|going) on\b",
    "comes again": r"\b(comes?|came) again\b",
    "is worth": r"\b(is|are) worth\b",
    "told, tells": r"\b(told|tells?)\b",
    "meanwhile": r"\bmeanwhile\b",
    "a moment longer": r"\ba moment longer\b",
    "no such thing": r"\bno such thing\b",
    "all the same": r"\ball the same\b",
    "living, alive": r"\b(living|alive)\b",
}
# A response, a reply, a result and a decision have names of their own.
_ANSWER = r"\banswer(s|ed|ing)?\b"
_SQL_COMMENT = re.compile(r"--.*|/\*.*?\*/")
_SQL_FUNCTION = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION (\w+).*?\$\$(.*?)\$\$", re.DOTALL)
_PATCH = re.compile(r'setattr\([^,()]+(?:\([^()]*\))?, *"_|patch(?:\.object)?\([^)]*"(?:[\w.]+\.)?_[a-z]')


def tracked(commit: str = "") -> Files:
    """Return the tracked files of a commit, or those of the checkout, uncommitted changes included."""
    if commit:
        archive = subprocess.run(
            ["git", "archive", "--format=tar", commit], cwd=PROJECT, check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            members = [(member.name, tar.extractfile(member)) for member in tar if member.isfile()]
            return {name: file.read() for name, file in members if file is not None}
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PROJECT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    paths = [(name, PROJECT / name) for name in names if name]
    return {name: path.read_bytes() for name, path in paths if path.is_file() and not path.is_symlink()}


def group_of(name: str) -> str:
    """Return the part of the project that a file belongs to, also by its path in older commits."""
    name = name.removeprefix("tools/")
    path = PurePosixPath(name)
    if (name.startswith(_GENERATED) and path.suffix != ".in") or path.name in _GENERATED_NAMES:
        return "generated"
    top, rest = path.parts[0], path.parts[1:]
    if top in _PRODUCT or name == "manage.py":
        return "product"
    if top == "devstack" and rest[0] in _LAB:
        return "lab"
    if top == "devstack" and rest[0] == "stripe":
        return "stripe_double"
    if top in ("devstack", "lab", "stripe_double", "tests", "clients", "deploy"):
        return top
    return "docs" if top == "docs" or path.suffix == ".md" else "other"


def count(files: Files) -> dict[str, object]:
    """Return the rows of the table, in order."""
    groups: defaultdict[str, Files] = defaultdict(dict)
    for name, content in files.items():
        groups[group_of(name)][name] = content
    rows: dict[str, object] = {"tracked files": len(files), "tracked lines": _lines(files)}
    for group in sorted(groups):
        rows[f"{group}: files"], rows[f"{group}: lines"] = len(groups[group]), _lines(groups[group])
    return rows | _shape(groups["product"]) | _smells(files) | _surface(files) | _prose(files)


def _lines(files: Files) -> int:
    return sum(content.count(b"\n") for content in files.values())


def _shape(product: Files) -> dict[str, object]:
    sizes = [content.count(b"\n") for name, content in product.items() if _is_code(name)]
    sizes = [size for size in sizes if size > 1]  # an empty package has a docstring at most
    return {
        "product: lines of a file, median": round(median(sizes)),
        "product: lines of a file, p90": round(quantiles(sizes, n=10)[-1]),
        "product: lines of a file, max": max(sizes),
        f"product: files under {_SHORT_FILE} lines": sum(size < _SHORT_FILE for size in sizes),
        f"product: functions over {_LONG_FUNCTION} lines": len(_long_functions(product)),
    }


def _is_code(name: str) -> bool:
    return name.endswith((".py", ".sql")) and "/migrations/" not in name


def _long_functions(files: Files) -> list[str]:
    long: list[str] = []
    for name, content in files.items():
        if not _is_code(name):
            continue
        text = content.decode()
        if name.endswith(".sql"):
            long += [
                found[1] for found in _SQL_FUNCTION.finditer(text) if found[0].count("\n") > _LONG_FUNCTION
            ]
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                long += [node.name] if lines > _LONG_FUNCTION else []
    return long


def _smells(files: Files) -> dict[str, object]:
    python = {name: content.decode() for name, content in files.items() if name.endswith(".py")}
    tests = [text for name, text in python.items() if name.startswith("tests/")]
    return {
        "tests: patches of private names": sum(len(_PATCH.findall(text)) for text in tests),
        "noqa": sum(text.count("# noqa") for text in python.values()),
        "type: ignore": sum(text.count("# type: ignore") for text in python.values()),
    }


def _surface(files: Files) -> dict[str, object]:
    page, makefile = files["docs/configuration.md"].decode(), files["Makefile"].decode()
    cells = re.findall(r"^\|([^|]*)\|", page, re.MULTILINE)
    settings = {name for cell in cells for name in re.findall(r"`([A-Z][A-Z0-9_]{2,})`", cell)}
    targets = re.findall(r"^([a-z][a-z-]*):.*## ", makefile, re.MULTILINE)
    return {"settings": len(settings), "make targets": len(targets)}


def _prose(files: Files) -> dict[str, object]:
    pages = {name: content.decode() for name, content in files.items() if name.endswith(".md")}
    decisions = [text for name, text in pages.items() if name.startswith("docs/adr/")]
    guides = [text for name, text in pages.items() if re.fullmatch(r"docs/[^/]+\.md", name)]
    in_code: list[str] = []
    in_product: list[str] = []
    for name, content in files.items():
        if name.endswith(".py") and group_of(name) != "generated":
            prose = list(_prose_of(content.decode()))
            in_code += prose
            in_product += prose if group_of(name) == "product" else []
    templates = [files[name].decode() for name in files if name.startswith("templates/")]
    places = {
        "Markdown": "\n".join(pages.values()),
        "docstrings and comments": "\n".join(in_code),
        "templates": "\n".join(templates),
    }
    found = Counter({title: _matches(text, "\n".join(places.values())) for title, text in _PHRASES.items()})
    apart = _prose_apart(files)
    return {
        "docs: words of guides": sum(len(text.split()) for text in guides),
        "docs: words of decisions": sum(len(text.split()) for text in decisions),
        "docs: decisions": sum(bool(re.match(r"docs/adr/\d", name)) for name in pages),
        "product: words of docstrings and comments": sum(len(text.split()) for text in in_product),
        "all code: words of docstrings and comments": sum(len(text.split()) for text in in_code),
        **{f"phrases: {title}": number for title, number in found.items()},
        "phrases: all": found.total(),
        **{
            f"phrases in {place}": _matches("|".join(_PHRASES.values()), text)
            for place, text in apart.items()
        },
        **{f"answer in {place}": _matches(_ANSWER, text) for place, text in (places | apart).items()},
    }


def _matches(pattern: str, text: str) -> int:
    return sum(1 for _ in re.finditer(pattern, text, re.IGNORECASE))


def _prose_apart(files: Files) -> dict[str, str]:
    """Return the text of each place that is neither a page nor a template, docstring or Python comment."""
    names: list[str] = []
    texts: list[str] = []
    for name, content in files.items():
        if name.endswith(".py") and group_of(name) in _WITH_TESTS:
            names += re.findall(r"^\s*(?:async )?def test_(\w+)", content.decode(), re.MULTILINE)
        elif name.endswith(".py") and group_of(name) == "product" and "/migrations/" not in name:
            texts += _texts_of(content.decode())
    sql = "\n".join(content.decode() for name, content in files.items() if name.endswith(".sql"))
    decisions = [content.decode() for name, content in files.items() if re.match(r"docs/adr/\d", name)]
    return {
        "names of tests": "\n".join(names).replace("_", " "),
        "SQL comments": "\n".join(_SQL_COMMENT.findall(sql)),
        "titles of decisions": "\n".join(text.split("\n", 1)[0] for text in decisions),
        "texts of the product": "\n".join(texts),
    }


def _texts_of(source: str) -> Iterator[str]:
    """Yield the string literals of three words or more other than docstrings: errors, findings, labels."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""  # a docstring
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") > 1:
            yield node.value


def _prose_of(source: str) -> Iterator[str]:
    """Yield the docstrings and comments of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def run(against: str) -> int:
    """Print the table of the checkout, beside that of a commit if one is named."""
    columns = [count(tracked(against))] if against else []
    columns.append(count(tracked()))
    titles = list(dict.fromkeys(title for column in columns for title in column))
    width = max(map(len, titles))
    for title in titles:
        print(f"{title:<{width}}", *(f"{column.get(title, 0):>9}" for column in columns))
    return 0
