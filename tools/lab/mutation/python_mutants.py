"""
Mutants of Python functions, applied to the functions of a running process.

A mutant names a file and a number, which counts the mutable places in the order of the file's syntax tree. Messages,
annotations, decorators and logging are not mutated, because no test should assert them.
"""

import ast
import copy
import functools
import gc
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from devstack.files import PROJECT
from lab.mutation.sql_mutants import is_sql, mutants_of_sql

_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OTHER: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
# The path from the module to a node: names of fields, each with an index where the field is a list.
Trail = tuple[tuple[str, int | None], ...]
_LOGGERS = {"logger", "_log", "log", "warnings"}


@dataclass(frozen=True)
class Mutant:
    """A change at one place, with a description."""

    file: str
    line: int
    scope: str  # the function, or the constant of a module
    change: str
    other: ast.AST | str  # the new source of the node, or the whole text of a database function
    path: Trail


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a Python file."""
    file = str(path.relative_to(PROJECT))
    return [mutant for node, trail, scope in _places(path) for mutant in _mutants(file, node, trail, scope)]


def _places(path: Path) -> Iterator[tuple[ast.AST, Trail, str]]:
    module = ast.parse(path.read_text())
    for number, statement in enumerate(module.body):
        trail: Trail = (("body", number),)
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield from _inside(statement, trail, "")
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = statement.value
            if isinstance(value, ast.Constant) and is_sql(value.value):
                yield value, (*trail, ("value", None)), statement.targets[0].id


def _inside(node: ast.AST, trail: Trail, scope: str) -> Iterator[tuple[ast.AST, Trail, str]]:
    """Yield the mutable places below the node; `scope` is the enclosing function, if any."""
    if isinstance(node, ast.ClassDef):
        for number, child in enumerate(node.body):
            if isinstance(child, ast.FunctionDef):
                yield from _inside(child, (*trail, ("body", number)), f"{scope}{node.name}.")
        return
    if isinstance(node, ast.FunctionDef):
        if not scope or scope.endswith("."):
            scope += node.name
        fields = [("body", node.body[1:] if ast.get_docstring(node) else node.body)]
        first = 1 if ast.get_docstring(node) else 0
    else:
        yield node, trail, scope
        fields, first = (
            [item for item in ast.iter_fields(node) if item[0] not in {"annotation", "returns"}],
            0,
        )
    if _is_for_people(node):
        return
    for name, value in fields:
        if isinstance(value, ast.AST):
            yield from _inside(value, (*trail, (name, None)), scope)
        elif isinstance(value, list):
            for number, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield from _inside(child, (*trail, (name, number + first)), scope)


def _is_for_people(node: ast.AST) -> bool:
    """Return whether the node writes to a log or builds an error message."""
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return True
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        owner = call.func.value
        return isinstance(owner, ast.Name) and owner.id in _LOGGERS
    return False


def _mutants(file: str, node: ast.AST, trail: Trail, scope: str) -> Iterator[Mutant]:
    line = getattr(node, "lineno", 0)
    for change, other in _changes(node):
        yield Mutant(file, line, scope, change, other, trail)
    if isinstance(node, ast.Constant) and is_sql(node.value):
        for mutant in mutants_of_sql(str(node.value)):
            yield Mutant(file, line + mutant.line - 1, scope, mutant.change, ast.Constant(mutant.text), trail)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield replacements of the node, each with a description."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = _FLIPPED[type(node.ops[0])]
        flipped = ast.Compare(node.left, [other()], node.comparators)
        yield _change(node, flipped)
    elif isinstance(node, ast.BoolOp):
        swapped = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield _change(node, swapped)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER and not isinstance(node.left, ast.JoinedStr):
        yield _change(node, ast.BinOp(node.left, _OTHER[type(node.op)](), node.right))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield _change(node, node.operand)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        negated = copy.copy(node)
        negated.test = ast.UnaryOp(ast.Not(), node.test)
        yield f"if {ast.unparse(node.test)} → not", negated
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield _change(node, ast.Constant(node.value + 1))
        yield _change(node, ast.Constant(node.value - 1))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _change(node, ast.Constant(not node.value))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _change(node, ast.Return(ast.Constant(None)))
    elif isinstance(node, ast.Raise) or _is_call(node):
        yield f"{_short(node)} → dropped", ast.Pass()


def _is_call(node: ast.AST) -> bool:
    """Return whether the node is a statement that calls something other than a logger."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_for_people(node)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _change(node: ast.AST, other: ast.AST) -> tuple[str, ast.AST]:
    return f"{_short(node)} → {_short(ast.fix_missing_locations(other))}", other


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:60]} … {text[-25:]}"


def put_in(mutant: Mutant) -> bool:
    """Apply the mutant to this process; return False if it does not compile or no function uses the code."""
    path = PROJECT / mutant.file
    module = ast.parse(path.read_text())
    _replace(module, mutant)
    if mutant.path[-1] == ("value", None) and len(mutant.path) == 2:
        return _put_in_constant(mutant)
    code = compile(ast.fix_missing_locations(module), str(path), "exec")
    changed = {inner.co_qualname: inner for inner in _codes(code) if inner.co_qualname}
    return _put_in_code(str(path), mutant.scope, changed)


def _replace(module: ast.Module, mutant: Mutant) -> None:
    parent: Any = module
    for name, number in mutant.path[:-1]:
        parent = getattr(parent, name) if number is None else getattr(parent, name)[number]
    name, number = mutant.path[-1]
    other = cast("ast.AST", mutant.other)
    if number is None:
        setattr(parent, name, ast.copy_location(other, getattr(parent, name)))
    else:
        getattr(parent, name)[number] = ast.copy_location(other, getattr(parent, name)[number])


def _put_in_constant(mutant: Mutant) -> bool:
    """Replace a constant in every module that has it."""
    new = cast("ast.Constant", mutant.other)
    owner = sys.modules[mutant.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")]
    old = getattr(owner, mutant.scope)
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new.value)
    return True


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _codes(inner)


def _put_in_code(filename: str, scope: str, changed: dict[str, types.CodeType]) -> bool:
    """Replace the code of every function made from this code object, and of nested functions."""
    done = False
    for function in _functions_by_file()[filename]:
        code = function.__code__
        name = code.co_qualname
        if not (name == scope or name.startswith(f"{scope}.<locals>.")):
            continue
        new = changed.get(name)
        if new is None or len(new.co_freevars) != len(code.co_freevars):
            return False
        function.__code__ = new
        done = True
    return done


@functools.cache
def _functions_by_file() -> dict[str, list[types.FunctionType]]:
    """Return the functions of this process by source file."""
    by_file: dict[str, list[types.FunctionType]] = defaultdict(list)
    for thing in gc.get_objects():
        # isinstance() would evaluate lazy objects, some of which fail.
        if type(thing) is types.FunctionType and thing.__code__.co_filename.startswith(str(PROJECT)):
            by_file[thing.__code__.co_filename].append(thing)
    return by_file


def find_functions() -> None:
    """Find the functions of this process once, before it forks."""
    _functions_by_file()
