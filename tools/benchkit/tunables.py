"""What may be tuned in a kernel and what it refuses, read from the .cl file itself.

The file is the one place for both: `#define TILE_K 16  // tune: 8 16 32` under its #ifndef lists
the values to try, `#if … / #error "…"` states a constraint that the compiler enforces too, and
LOCAL_BYTES is the local memory of a work-group. Pure: text in, answers out.
"""

import ast
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchkit.errors import UserError

Configuration = Mapping[str, int]

_PARAMETER = re.compile(
    r"^#ifndef (\w+)\n#define \1 (?P<value>[^\n/]*(?:/(?!/)[^\n/]*)*?)"
    r"(?:[ ]*//[ ]*tune:(?P<tune>[^\n]*)|[ ]*//[^\n]*)?\n#endif$",
    re.M,
)
_MACRO = re.compile(r"^#define (\w+) ([\w()+\-*/%<>=!&|?: ]+?)[ ]*(?://.*)?$", re.M)
_CHOICE = re.compile(r"^\((.+) \? (.+) : (.+)\)$")  # a whole macro, "(A > B ? A : B)"
_REFUSAL = re.compile(r'^#if (.+)\n#error "(.+)"\n#endif$', re.M)
_ARITHMETIC = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.BinOp, ast.Add,
    ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE,
    ast.Gt, ast.GtE, ast.IfExp, ast.Name, ast.Load, ast.Constant,
)  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """A device's, as bench tells them."""

    work_group: int
    items: tuple[int, ...]
    local_bytes: int


@dataclass(frozen=True)
class Tunables:
    kernel: str
    text: str

    @cached_property
    def values(self) -> dict[str, tuple[int, ...]]:
        """Of every parameter, in the file's order; one that is not tuned has its default alone."""
        found = {}
        for match in _PARAMETER.finditer(self.text):
            listed = (match["tune"] or "").split()
            if not all(value.isdigit() for value in listed):
                raise self._error(match.start("tune"), "tune: expects whole numbers")
            found[match[1]] = tuple(map(int, listed)) or (int(self._value(match[1], {})),)
        return found

    @property
    def capability(self) -> int:
        """Of the NVIDIA GPU it needs: 80 and 90 for assembly of that generation, 0 for none."""
        return 90 if self.retargeted else 80 if "__asm__" in self.text else 0

    @property
    def retargeted(self) -> bool:
        """Whether only bench can build it: some instructions are comments to other compilers."""
        return "//@sm_90a " in self.text

    @property
    def tuned(self) -> bool:
        return "// tune:" in self.text

    @cached_property
    def _macros(self) -> dict[str, str]:
        macros = dict(match.groups() for match in _MACRO.finditer(self.text))
        return {name: _CHOICE.sub(r"((\2) if (\1) else (\3))", macros[name]) for name in macros}

    @cached_property
    def _refusals(self) -> list[tuple[object, str]]:
        return [
            (self._compiled(match[1], frozenset(self.values), match.start()), match[2])
            for match in _REFUSAL.finditer(self.text)
        ]

    def configurations(self) -> list[dict[str, int]]:
        combinations = itertools.product(*self.values.values())
        return [dict(zip(self.values, some, strict=True)) for some in combinations]

    def obstacle(self, config: Configuration, limits: Limits | None = None) -> str:
        """Why this configuration cannot run, as the compiler or gpu/limits would say; else ""."""
        for code, message in self._refusals:
            try:
                if eval(code, {"__builtins__": {}}, dict(config)):
                    return message
            except ZeroDivisionError:  # the compiler refuses it as well
                return "division by zero in a constraint"
        if limits is None:
            return ""
        items = config["WG_X"] * config["WG_Y"]
        if items > limits.work_group:
            return f"needs {items} work-items in a work-group, allowed are {limits.work_group}"
        if config["WG_X"] > limits.items[0] or config["WG_Y"] > limits.items[1]:
            return f"needs work-items {config['WG_X']}x{config['WG_Y']}"
        local = self.local_bytes(config)
        if local > limits.local_bytes:
            return f"needs {local} bytes of local memory, the device has {limits.local_bytes}"
        return ""

    def local_bytes(self, config: Configuration) -> int:
        return self._value("LOCAL_BYTES", config) if "LOCAL_BYTES" in self._macros else 0

    def _value(self, macro: str, config: Configuration) -> int:
        code = self._compiled(macro, frozenset(config), self.text.index(f"#define {macro} "))
        return eval(code, {"__builtins__": {}}, dict(config))

    def _compiled(self, expression: str, known: frozenset[str], position: int) -> object:
        """The preprocessor's expression over whole numbers, every macro but `known` replaced."""
        text = self._expanded(expression, known)
        text = text.replace("&&", " and ").replace("||", " or ").replace("/", "//")
        text = re.sub(r"!(?!=)", " not ", text)
        try:
            tree = ast.parse(text.strip(), self.kernel, "eval")
        except SyntaxError as error:
            raise self._error(position, f"cannot read the expression {expression}") from error
        for node in ast.walk(tree):
            chain = isinstance(node, ast.Compare) and len(node.ops) > 1
            if chain or not isinstance(node, _ARITHMETIC):
                raise self._error(position, f"cannot compute the expression {expression}")
            if isinstance(node, ast.Name) and node.id not in known:
                raise self._error(position, f"{node.id} is no macro of this file")
        return compile(tree, self.kernel, "eval")

    def _expanded(self, expression: str, known: frozenset[str], depth: int = 0) -> str:
        def replacement(match: re.Match) -> str:
            name = match[0]
            if name in known or name not in self._macros or depth > 20:
                return name
            return f"({self._expanded(self._macros[name], known, depth + 1)})"

        return re.sub(r"\b[A-Za-z_]\w*", replacement, expression)

    def _error(self, position: int, what: str) -> UserError:
        line = self.text.count("\n", 0, position) + 1
        return UserError(f"{self.kernel}.cl:{line}: {what}")


def read(path: Path) -> Tunables:
    try:
        return Tunables(path.stem, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the kernel {path}: {error.strerror}") from error
