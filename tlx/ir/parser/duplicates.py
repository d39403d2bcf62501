"""Finds duplicate code in the text before it is parsed, so that it is lowered once.

1. Functions that differ in their names only: one is lowered, the others are written as copies under their own names.

    define void @f(ptr %x) { A }            define void @f(ptr %x) { B }
                                     ->
    define void @g(ptr %x) { A }            define void @g(ptr %x) { B }, never parsed

A function may be a duplicate if its text mentions its name once (it does not call itself), and if its header has no
large vector (which would be passed by pointer, so that calls change as well). The rest is compared as text: functions
with different debug info, comdats or sections are not duplicates.

2. Equal regions of a function: one is outlined and lowered, the others become calls to it.

    define void @f(ptr noalias %c, ptr %a, ptr %b) {      define void @f(ptr noalias %c, ptr %a, ptr %b) {
      %t = load(%a)                                         call void @f.part(ptr %a, ptr %c)
      store(%c, %t)                                         call void @f.part(ptr %b, ptr %c)
      %u = load(%b)                                         ...
      store(%c, %u)                                  ->     ret void
      ...                                                 }
      ret void                                            define internal void @f.part(ptr %a, ptr noalias %c) {
    }                                                       what `%t = load(%a)  store(%c, %t)` is lowered to
                                                          }

A region is a sequence of lines in one block from one with a tensor operation to a `tensor.store`, such that no value
defined in it is used after it. Its inputs are the values from outside that it uses: pointers and scalars, with their
types in the text. Regions are equal if their texts differ in the names of values only, and if the same inputs are
`noalias`. An input is `noalias` if it points into an alloca or a `noalias` parameter, and no other input of the region
does. Only then is the alias information of the outlined function as good as that of the original one.

Outlining is all or nothing: nothing is outlined from a function that has a tensor operation outside its regions, or in
a region a line that is not known to be arithmetic on tensors. LLVM inlines the outlined functions where that pays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.functions import Argument, Function
from tlx.ir.module import Item, attribute_groups
from tlx.ir.prepared import CONSTANT

_FUNCTION_NAME: Final = re.compile(r'@("[^"]*"|[-a-zA-Z$._0-9]+)\s*\(')
_LARGE_VECTOR: Final = re.compile(r"<\s*\d{4,}\s+x\b")


def split_off_name(text: str, opening: int) -> tuple[str, str] | None:
    """The name of a function, and its text without it; None for a function that cannot be a duplicate.

    Args:
        text: The function, from `define` to the closing brace.
        opening: Where its opening brace is.
    """
    match = _FUNCTION_NAME.search(text, 0, opening)
    if (
        match is None
        or CONSTANT in text[:opening]
        or _LARGE_VECTOR.search(text, 0, opening)
        or text.count(f"@{match[1]}") > 1
    ):
        return None
    return match[1], text[: match.start(1)] + text[match.end(1) :]


MIN_REGIONS: Final = 32
"""Least number of regions for which outlining pays: fewer are lowered in less time than the search takes."""
MIN_REPEATS: Final = 4
"""Least ratio of regions to distinct regions; a function of different operations is better left whole."""

_LOCAL_NAME: Final = re.compile(r"(%[-a-zA-Z$._0-9\x80-\U0010ffff]+)")
_SCALAR: Final = r"i\d+|half|bfloat|float|double"
_STORE: Final = re.compile(r"@llvm\.tensor\.store\b")
_TENSOR: Final = re.compile(r"@llvm\.(?:tensor\.|vector\.totensor)")
_OPCODES: Final = (
    "fneg fadd fsub fmul fdiv frem add sub mul udiv sdiv urem srem shl lshr ashr and or xor icmp fcmp select "
    "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp bitcast getelementptr "
    "extractelement insertelement shufflevector freeze"
)
_FUNCTIONS: Final = (
    "fma fmuladd fabs sqrt floor ceil trunc rint nearbyint round roundeven copysign minnum maxnum minimum maximum "
    "smin smax umin umax abs exp exp2 log log2 log10 sin cos tanh"
)
_CALLED: Final = rf"""(?:{"|".join(_FUNCTIONS.split())})\."""
# Lines that a region may have, without their names: no vector of pointers, struct, string, metadata, or comment.
_ALLOWED: Final = re.compile(
    rf"""(?! .* \b(?:vscale|asm|blockaddress|inttoptr|ptrtoint|elementtype\(ptr)\b ) [ \t]+ (?:
      [ ]=[ ] (?: {"|".join(_OPCODES.split())} ) [ ]
    | [ ]=[ ] load [ ] (?:{_SCALAR}|<\d+[ ]x[ ](?:{_SCALAR})>) ,
    | store [ ] (?!volatile|atomic)
    | (?: [ ]=[ ] | (?=(?:tail[ ])?call[ ]void\b) ) (?: tail [ ] )? call [ ] [^@()]*
      @llvm\.(?: tensor\. | vector\.totensor | {_CALLED} )
    ) [^;"!{{}}\r]*+""",
    re.VERBOSE,
)
# The type and attributes before a value.
_INPUT: Final = re.compile(
    rf"""(?<![\w.*>%@-]) ( (?:{_SCALAR})(?:[ ]addrspace\(\d+\))?\* | {_SCALAR} | ptr(?:[ ]addrspace\(\d+\))? )
    (?:[ ](?: noundef | nonnull | noalias | nocapture | nofree | readonly | readnone | writeonly | returned | inreg
      | signext | zeroext | align[ ]\d+ | align\(\d+\) | captures\([^()]*\)
      | elementtype\(\w+\) | byval\(<\d+[ ]x[ ]\w+>\) | dereferenceable(?:_or_null)?\(\d+\) ))*
    [ ]\Z""",
    re.VERBOSE,
)
_LINE_BASE: Final = re.compile(
    r"= (?:getelementptr\b[^,]*,(?: ptr(?: addrspace\(\d+\))?|[^,%@]*\*)|bitcast [^,%@]*\*)"
    r" (%[-a-zA-Z$._0-9\x80-\U0010ffff]+|@[-a-zA-Z$._0-9]+)"
)
_ATTRIBUTE: Final = re.compile(
    r'"[^"]*"(?:="[^"]*")?|[a-z_0-9]+(?:\((?:[^()"]|\([^()"]*\))*\)|=\d+)?|#\d+', re.IGNORECASE
)
# Function attributes about code generation, which hold for a region of the function as well.
_INHERITED: Final = re.compile(
    r'".*|(?:cold|hot|minsize|optsize|noimplicitfloat|noredzone|null_pointer_is_valid|uwtable(?:\(\w+\))?'
    r"|ssp|sspreq|sspstrong|sanitize_\w+|nosanitize_\w+|safestack|shadowcallstack|speculative_load_hardening)"
)
_PREVENTING_OUTLINING: Final = frozenset(
    "section gc prefix prologue personality partition addrspace strictfp naked returns_twice presplitcoroutine".split()
)


@dataclass(frozen=True, slots=True)
class RegionInput:
    """An input of a region.

    Attributes:
        type: As spelled before it.
        name: With `%`.
        noalias: Whether no other input points into the same object.
    """

    type: str
    name: str
    noalias: bool


@dataclass(frozen=True, slots=True)
class RepeatedRegion:
    """A region of a function: a range of its lines.

    Attributes:
        first: Index of its first line in the body.
        last: Index of its last line.
        inputs: In order of appearance.
        indent: The indentation of its first line.
        key: Equal for equal regions.
    """

    first: int
    last: int
    inputs: tuple[RegionInput, ...]
    indent: str
    key: tuple[object, ...]

    def call(self, name: str) -> str:
        """The call that replaces it."""
        return f"call void @{name}({', '.join(f'{value.type} {value.name}' for value in self.inputs)})"

    def header(self, name: str, attributes: str) -> str:
        """The header of the outlined function, up to its brace."""
        parameters = [f"{value.type}{' noalias' if value.noalias else ''} {value.name}" for value in self.inputs]
        return f"\n\ndefine internal void @{name}({', '.join(parameters)}) {attributes} {{"


@dataclass(eq=False)
class OutlinedRegion:
    """Marks a function as an outlined region.

    Attributes:
        copies: The number of other regions that are equal to it.
    """

    copies: int = 0


def outlined_region(item: Item) -> OutlinedRegion | None:
    """The mark of an outlined region; None for other functions."""
    region = item.facts.get(OutlinedRegion) if isinstance(item, Function) else None
    return region if isinstance(region, OutlinedRegion) else None


@dataclass(frozen=True, eq=False, slots=True)
class _LineShape:
    """The properties that lines have in common if they differ in their names only.

    Attributes:
        tensor: Whether it has a tensor operation.
        store: Whether it stores a tensor.
        allowed: Whether it may be in a region.
        defines: Whether the first name is that of its result.
        types: For each name the type before it; empty if there is none.
    """

    tensor: bool
    store: bool
    allowed: bool
    defines: bool
    types: tuple[str, ...]


class RepeatedRegionFinder:
    """Finds the repeated regions of a module's functions."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, ...], _LineShape] = {}

    @staticmethod
    def may_pay(text: str) -> bool:
        """Whether a function may have enough regions: a quick test of its text."""
        return text.count("@llvm.tensor.store") >= MIN_REGIONS and '%"' not in text and "uselistorder" not in text

    def find(self, lines: list[str], arguments: list[Argument]) -> list[RepeatedRegion]:
        """The regions of a function; none if a tensor operation is outside of them, or outlining does not pay.

        Args:
            lines: The body, after the opening brace.
            arguments: The parameters.
        """
        body = _FunctionLines.read(lines, arguments, self._shapes)
        if body is None:
            return []
        regions: list[RepeatedRegion] = []
        for bounds in body.region_bounds():
            region = body.region(*bounds) if bounds is not None else None
            if region is None:
                return []
            regions.append(region)
        pays = len(regions) >= MIN_REGIONS and len({region.key for region in regions}) * MIN_REPEATS <= len(regions)
        return regions if pays else []


def inherited_attributes(attributes: str, text: str) -> str | None:
    """The attributes that the outlined regions of a function inherit; None if they prevent outlining.

    Args:
        attributes: The text after the function's parameters.
        text: The module, for its attribute groups.
    """
    groups = attribute_groups(text) if "#" in attributes else {}
    words = _ATTRIBUTE.findall(attributes)
    texts = [attributes, *(groups.get(word, "?") for word in words if word.startswith("#"))]
    if any(_ATTRIBUTE.sub("", text).strip() for text in texts):  # something else, such as metadata
        return None
    words = [word for text in texts for word in _ATTRIBUTE.findall(text)]
    if any(re.split("[(=]", word)[0] in _PREVENTING_OUTLINING or word.startswith('"tlx-stage"') for word in words):
        return None
    return " ".join(["nounwind", *dict.fromkeys(word for word in words if _INHERITED.fullmatch(word))])


@dataclass(eq=False)
class _FunctionLines:
    """The lines of a function.

    Attributes:
        lines: Their texts.
        shapes: Their properties.
        names: The names in each line.
        last: The last line that mentions a name.
        defined: The line that defines a name.
        arguments: The function's parameters, by name.
        roots: The underlying object of each pointer.
    """

    lines: list[str]
    shapes: list[_LineShape]
    names: list[list[str]]
    last: dict[str, int]
    defined: dict[str, int]
    arguments: dict[str, Argument]
    roots: dict[str, str | None] = field(default_factory=dict[str, "str | None"])

    @staticmethod
    def read(
        lines: list[str], arguments: list[Argument], known: dict[tuple[str, ...], _LineShape]
    ) -> _FunctionLines | None:
        """Scan the lines; None if a value is defined twice."""
        body = _FunctionLines(lines, [], [], {}, {}, {f"%{argument.name}": argument for argument in arguments})
        split = _LOCAL_NAME.split
        for index, line in enumerate(lines):
            pieces = split(line)
            names = pieces[1::2]
            between = tuple(pieces[::2])
            shape = known.get(between)
            if shape is None:
                shape = known[between] = _line_shape(between)
            if shape.defines:
                if names[0] in body.defined or names[0] in body.arguments:
                    return None
                body.defined[names[0]] = index
            for name in names:
                body.last[name] = index
            body.shapes.append(shape)
            body.names.append(names)
        return body

    def region_bounds(self) -> Iterator[tuple[int, int] | None]:
        """The first and the last line of each region; a final None if the last region has no end."""
        start = -1
        last_use = -1
        for index, shape in enumerate(self.shapes):
            if start < 0:
                if not shape.tensor:
                    continue
                start = last_use = index
            if not shape.allowed or not start:
                yield None
                return
            if shape.defines:
                last_use = max(last_use, self.last[self.names[index][0]])
            if shape.store and last_use <= index:
                yield start, index
                start = -1
        if start >= 0:
            yield None

    def region(self, first: int, last: int) -> RepeatedRegion | None:
        """The region of those lines; None if it cannot be outlined."""
        numbers: dict[str, int] = {}
        order: list[int] = []
        types: dict[str, str] = {}
        for index in range(first, last + 1):
            for name, type_ in zip(self.names[index], self.shapes[index].types, strict=True):
                order.append(numbers.setdefault(name, len(numbers)))
                if type_ and types.setdefault(name, type_) != type_:
                    return None
        inputs: list[tuple[str, str]] = []
        for name in numbers:
            line = self.defined.get(name, -1)
            if first <= line <= last:
                if name[1:].isdecimal():  # the numbers of later values would change
                    return None
                continue
            if not self._can_be_input(name, types.get(name, "")):
                return None
            inputs.append((types[name], name))
        region_inputs = self._region_inputs(inputs)
        noalias = tuple(value.noalias for value in region_inputs)
        line = self.lines[first]
        indent = line[: len(line) - len(line.lstrip())]
        return RepeatedRegion(
            first, last, region_inputs, indent, (tuple(self.shapes[first : last + 1]), tuple(order), noalias)
        )

    def _can_be_input(self, name: str, type_: str) -> bool:
        """Whether the lowering of a region loses nothing if a value is its input.

        An integer may be a constant that folding would find in the original. Not every LLVM can pass a bfloat.
        """
        if type_ == "bfloat":
            return False
        if not type_.startswith("i") or type_.endswith("*") or name in self.arguments:
            return bool(type_)
        line = self.defined.get(name)
        return line is not None and " = load " in self.lines[line]

    def _region_inputs(self, inputs: list[tuple[str, str]]) -> tuple[RegionInput, ...]:
        roots = {name: self._root(name) for type_, name in inputs if type_.startswith("ptr") or type_.endswith("*")}
        known = None not in roots.values()
        objects = list(roots.values())
        return tuple(
            RegionInput(type_, name, known and self._is_object(root := roots.get(name)) and objects.count(root) == 1)
            for type_, name in inputs
        )

    def _root(self, name: str) -> str | None:
        """The parameter, alloca or global that a pointer points into."""
        if name not in self.roots:
            self.roots[name] = None  # a pointer may be computed from itself, in a loop
            self.roots[name] = self._trace_root(name)
        return self.roots[name]

    def _trace_root(self, name: str) -> str | None:
        if name in self.arguments or name.startswith("@"):
            return name
        line = self.lines[self.defined[name]] if name in self.defined else ""
        if " = alloca " in line:
            return name
        base = _LINE_BASE.search(line)
        return self._root(base[1]) if base else None

    def _is_object(self, root: str | None) -> bool:
        """Whether all pointers into a root's object are derived from the root."""
        if root is None or root.startswith("@"):
            return False
        return root not in self.arguments or "noalias" in self.arguments[root].attributes.split()


def _line_shape(pieces: tuple[str, ...]) -> _LineShape:
    line = "".join(pieces)
    defines = len(pieces) > 1 and not pieces[0].strip() and pieces[1].startswith(" = ")
    types = [match[1] if (match := _INPUT.search(piece)) else "" for piece in pieces[:-1]]
    return _LineShape(
        tensor=_TENSOR.search(line) is not None,
        store=_STORE.search(line) is not None,
        allowed=_ALLOWED.fullmatch(line) is not None,
        defines=defines,
        types=tuple(types),
    )
