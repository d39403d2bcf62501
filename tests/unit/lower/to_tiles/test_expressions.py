"""Trees of ordinary instructions: each operation on each element type means the same at every stage, at odd sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.unit.lower.to_tiles.tree_texts import TARGETS, Array, Case, Tree, check, module_text, stages
from tlx.diagnostics import LoweringError
from tlx.ir.parser.module import parse
from tlx.lower.context import LoweringContext, is_kernel
from tlx.lower.remarks import Remarks
from tlx.lower.to_tiles import to_tiles
from tlx.target.lookup import find_target

SIZES = ((1, 1), (3, 17), (5, 64), (33, 100))
INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("half", "bfloat", "float", "double")
EXTREMES = ("minimum", "maximum", "minimumnum", "maximumnum")
BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}


def _two(element: str, opcode: str, shape: tuple[int, int] = (3, 17)) -> Case:
    tree = Tree(*shape)
    return tree.stored(tree.binary(opcode, element, tree.leaf(element), tree.leaf(element, 2)), element)


def _calls(element: str, name: str, operands: int, immediates: str = "") -> Case:
    tree = Tree(3, 17)
    values = [tree.leaf(element) for _ in range(operands)]
    return tree.stored(tree.call(name, element, *values, immediates=immediates), element)


def _with_its_negative(element: str, name: str) -> Case:
    """A function of a number and its negative: of two zeros, among others."""
    tree = Tree(3, 17)
    x = tree.leaf(element)
    return tree.stored(tree.call(name, element, x, tree.one("fneg", element, x)), element)


def _compared(element: str, comparison: str) -> Case:
    """One of two numbers, by a comparison."""
    tree = Tree(3, 17)
    x, y = tree.leaf(element), tree.leaf(element)
    mask = tree.binary(comparison, element, x, y)
    return tree.stored(tree.select(f"{tree.vector('i1')} {mask}", element, x, y), element)


def _divided(element: str, opcode: str) -> Case:
    """A division whose divisor is nowhere zero in the data."""
    tree = Tree(3, 17)
    divisor = tree.binary("or", element, tree.leaf(element), tree.constant(element, "1"))
    dividend = tree.binary("and", element, tree.leaf(element), tree.constant(element, "127"))
    return tree.stored(tree.binary(opcode, element, dividend, divisor), element)


def _shifted(element: str, opcode: str) -> Case:
    tree = Tree(3, 17)
    count = tree.binary("and", element, tree.leaf(element), tree.constant(element, "7"))
    return tree.stored(tree.binary(opcode, element, tree.leaf(element), count), element)


def _cast(opcode: str, source: str, to: str) -> Case:
    tree = Tree(3, 17, small=opcode in ("fptosi", "fptoui"))
    value = tree.leaf(source)
    if opcode == "fptoui":
        value = tree.call("fabs", source, value)
    return tree.stored(tree.cast(opcode, source, to, value), to)


@pytest.mark.parametrize("element", INTEGERS)
def test_integer_instructions(element: str) -> None:
    cases = [_two(element, opcode) for opcode in ("add", "sub", "mul", "and", "or", "xor")]
    cases += [_divided(element, opcode) for opcode in ("udiv", "urem", "sdiv", "srem")]
    cases += [_shifted(element, opcode) for opcode in ("shl", "lshr", "ashr")]
    cases += [_compared(element, f"icmp {p}") for p in "eq ne ugt uge ult ule sgt sge slt sle".split()]
    cases += [_calls(element, n, 1) for n in ("ctpop", "bitreverse")]
    cases += [_calls(element, n, 1, "i1 false") for n in ("abs", "ctlz", "cttz")]
    cases += [_calls(element, n, 3) for n in ("fshl", "fshr")]
    tree = Tree(3, 17)
    check([*cases, tree.stored(tree.unary("relu", element, tree.leaf(element)), element)])


@pytest.mark.parametrize("element", FLOATS)
def test_float_instructions(element: str) -> None:
    cases = [_two(element, opcode) for opcode in ("fadd", "fsub", "fmul", "fdiv")]
    predicates = "oeq one ogt oge olt ole ueq une ugt uge ult ule ord uno true false".split()
    cases += [_compared(element, f"fcmp {predicate}") for predicate in predicates]
    for opcode in ("fneg", "freeze"):
        tree = Tree(3, 17)
        cases.append(tree.stored(tree.one(opcode, element, tree.leaf(element)), element))
    check(cases)


@pytest.mark.parametrize("element", FLOATS)
def test_float_intrinsics_and_tensor_functions(element: str) -> None:
    roundings = ("floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven")
    cases = [_calls(element, n, 1) for n in ("fabs", "sqrt", "canonicalize", *roundings)]
    cases += [_calls(element, n, 2) for n in ("copysign", *EXTREMES)]
    cases += [_with_its_negative(element, n) for n in EXTREMES]
    for name in ("relu", "sqrt", "fabs", "floor", "ceil"):
        tree = Tree(3, 17)
        cases.append(tree.stored(tree.unary(name, element, tree.leaf(element)), element))
    check(cases)


@pytest.mark.parametrize("element", ["half", "bfloat", "float"])
def test_multiply_add_is_rounded_once(element: str) -> None:
    check([_calls(element, "fma", 3)])


def _same_number(expected: Array, got: Array) -> Array:
    """Of two zeros, either may come."""
    with np.errstate(all="ignore"):
        return ~((expected == got) | (np.isnan(expected) & np.isnan(got)))


@pytest.mark.parametrize("element", FLOATS)
def test_minnum_and_maxnum_give_the_number(element: str) -> None:
    check([_calls(element, "minnum", 2), _calls(element, "maxnum", 2)], compare=_same_number)


def _casts(source: str) -> list[Case]:
    cases: list[Case] = []
    for to in (*INTEGERS, *FLOATS):
        narrower = BITS[to] < BITS[source]
        if source == to:
            continue
        if source in FLOATS and to in FLOATS:
            opcodes = [] if BITS[to] == BITS[source] else ["fptrunc" if narrower else "fpext"]
        elif source in FLOATS:
            opcodes = ["fptosi", "fptoui"]
        elif to in FLOATS:
            opcodes = ["sitofp", "uitofp"]
        else:
            opcodes = ["trunc"] if narrower else ["zext", "sext"]
        cases += [_cast(o, source, to) for o in [*opcodes, *(["bitcast"] if BITS[to] == BITS[source] else [])]]
    return cases


@pytest.mark.parametrize("source", ["i1", *INTEGERS, *FLOATS])
def test_conversions_round_once(source: str) -> None:
    check(_casts(source))


def test_operations_on_masks() -> None:
    cases: list[Case] = []
    for opcode in ("and", "or", "xor", "add", "mul"):
        tree = Tree(3, 17)
        x, y = tree.leaf("float"), tree.leaf("double")
        masks = [tree.binary("fcmp ogt", "float", x, tree.constant("float", "0.5"))]
        masks.append(tree.binary("fcmp ult", "double", y, tree.constant("double", "0.0")))
        both = tree.binary(opcode, "i1", *masks)
        cases.append(tree.stored(tree.cast("sext", "i1", "i16", both), "i16"))
        cases.append(_two("i1", opcode))
    check(cases)


# Shapes ------------------------------------------------------------------------------------------------------------


def _mixed(rows: int, cols: int, element: str) -> Case:
    """Every kind of leaf."""
    tree = Tree(rows, cols)
    kind = "f" if element in FLOATS else ""
    one = "1.0" if kind else "1"
    value = tree.binary(f"{kind}add", element, tree.leaf(element), tree.leaf(element, 3, column=True))
    value = tree.binary(f"{kind}mul", element, value, tree.repeated(element, 1, cols))
    value = tree.binary(f"{kind}sub", element, value, tree.repeated(element, rows, 1, 2))
    value = tree.binary(f"{kind}add", element, value, tree.repeated(element, 1, 1))
    value = tree.binary(f"{kind}mul", element, value, tree.scalar(element, 2))
    value = tree.binary(f"{kind}add", element, value, tree.constant(element, one))
    return tree.stored(value, element, 2)


@pytest.mark.parametrize("element", ["i8", "half", "float"])
def test_operands_of_every_kind_and_size(element: str) -> None:
    check([_mixed(rows, cols, element) for rows, cols in SIZES])


def test_the_destination_may_be_an_operand_and_a_value_may_have_two_users() -> None:
    cases: list[Case] = []
    for (rows, cols), spare in itertools.product(SIZES, (0, 3)):
        tree = Tree(rows, cols)
        old = tree.in_place("float", spare)
        twice = tree.binary("fadd", "float", old, old)
        cases.append(tree.stored(tree.binary("fmul", "float", old, twice), "float", spare))
    check(cases)


def test_a_scalar_condition_chooses_between_tensors() -> None:
    cases: list[Case] = []
    for flag in (False, True):
        tree = Tree(5, 7)
        x, y = tree.leaf("float"), tree.leaf("float")
        cases.append(tree.stored(tree.select(f"i1 {tree.number('i1', flag)}", "float", x, y), "float"))
    check(cases)


PRODUCTS = (("float", "float"), ("bfloat", "float"), ("i8", "i32"), ("bfloat", "bfloat"), ("i32", "i32"))
CONVERTED = (
    ("trunc", "i8", "i32", "i8"),
    ("fptrunc", "bfloat", "float", "bfloat"),
    ("sitofp", "i8", "i32", "double"),
)


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (3, 17), (17, 33)])
def test_epilogues_of_products(rows: int, cols: int) -> None:
    cases: list[Case] = []
    for operand, result in PRODUCTS[:: 2 if rows > 3 else 1]:
        kind = "" if result == "i32" else "f"
        tree = Tree(rows, cols, small=True)
        value = tree.binary(f"{kind}add", result, tree.matmul(operand, result, 9), tree.repeated(result, 1, cols))
        value = tree.unary("relu", result, value)
        value = tree.binary(f"{kind}mul", result, value, tree.repeated(result, rows, 1))
        cases.append(tree.stored(tree.binary(f"{kind}add", result, value, tree.in_place(result)), result))
    for opcode, operand, result, to in CONVERTED:
        tree = Tree(rows, cols, small=True)
        cases.append(tree.stored(tree.cast(opcode, result, to, tree.matmul(operand, result, 70, "cc")), to))
    check(cases, (*TARGETS, "amx"))


# Reductions --------------------------------------------------------------------------------------------------------


def _near(expected: Array, got: Array) -> Array:
    """Sums may be added up in any order."""
    if expected.dtype.kind in "iub":
        return expected != got
    x, y = expected.astype(np.float64), got.astype(np.float64)
    unit = 2.0**-6 if expected.dtype.itemsize == 2 else 2.0**-18
    with np.errstate(all="ignore"):
        return ~((np.abs(x - y) <= unit * np.maximum(np.abs(x), 1)) | (x == y) | (np.isnan(x) & np.isnan(y)))


_SMALL = itertools.product([(1, 1), (3, 17)], ["i8", "i32", "bfloat", "float", "double"])
_WIDE = itertools.product([(33, 100)], ["i8", "float"])


@pytest.mark.parametrize(("size", "element"), [*_SMALL, *_WIDE])
def test_reductions(size: tuple[int, int], element: str) -> None:
    rows, cols = size
    cases: list[Case] = []
    operations = ["add", "max", "min", *(["mul", "and", "or", "xor"] if element in INTEGERS else [])]
    operations = operations[:3] if rows > 3 else operations
    for axis, operation, column in itertools.product((0, 1), operations, (False, True)):
        tree = Tree(rows, cols, small=operation == "add")
        cases.append(tree.reduction(operation, element, tree.leaf(element, 1, column=column), axis))
    check(cases, compare=_near)


@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_of_expressions_and_products(axis: int) -> None:
    cases: list[Case] = []
    for (rows, cols), element in itertools.product(((3, 17), (17, 33)), ("i32", "float")):
        kind = "f" if element == "float" else ""
        tree = Tree(rows, cols, small=True)
        value = tree.binary(f"{kind}mul", element, tree.leaf(element), tree.repeated(element, rows, 1, 2))
        value = tree.binary(f"{kind}add", element, value, tree.repeated(element, 1, cols))
        cases.append(tree.reduction("add", element, value, axis))
        tree = Tree(rows, cols, small=True)
        cases.append(tree.reduction("max", element, tree.matmul("i8" if not kind else "bfloat", element, 5), axis))
        tree = Tree(rows, cols, small=True)
        value = tree.binary(f"{kind}add", element, tree.matmul(element, element, 9), tree.leaf(element))
        value = tree.unary("relu", element, value)
        cases.append(tree.reduction("add", element, value, axis))
    check(cases, (*TARGETS, "amx"), compare=_near)


# Kernels -----------------------------------------------------------------------------------------------------------


def _affine(scale: str) -> Case:
    tree = Tree(4, 8)
    return tree.stored(tree.binary("fmul", "float", tree.leaf("float"), tree.constant("float", scale)), "float")


def test_equal_expressions_share_a_kernel_and_others_do_not() -> None:
    tiles = stages(module_text([_affine("2.0"), _affine("2.0"), _affine("3.0")]), "generic")[1]
    assert sum(is_kernel(tiles, function) for function in tiles.functions) == 2


def test_remarks_say_what_was_fused() -> None:
    remarks = Remarks()
    tree = Tree(8, 16)
    value = tree.binary("fadd", "float", tree.matmul("float", "float", 4), tree.repeated("float", 1, 16))
    value = tree.binary("fmul", "float", tree.unary("relu", "float", value), tree.scalar("float", 3))
    stages(module_text([tree.stored(value, "float"), _affine("2.0")]), "avx512", remarks)
    messages = [remark.message for remark in remarks]
    assert "; epilogue: fadd, relu, fmul (2 extra operands)" in messages[0]
    bound = "moves 256 bytes, in the L1 cache: bound by that cache"
    assert messages[1] == f"map 4x8 float: fmul (1 extra operand) in one pass; {bound}"


def test_no_tree_is_left() -> None:
    tiles = stages(module_text([_mixed(5, 64, "float")]), "generic")[1]
    function = next(f for f in tiles.functions if f.name == "f0")
    assert [i.opcode for i in function.instructions()] == ["call", "ret"]


COUNTED = ", ".join(f"float {i}.0" for i in range(8))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%w = shufflevector <8 x float> %v, <8 x float> %v, <8 x i32> zeroinitializer", "'shufflevector' is not"),
        (f"%w = fadd <8 x float> %v, <{COUNTED}>", "a constant that is not a splat"),
    ],
)
def test_other_instructions_are_refused(line: str, message: str) -> None:
    tree = Tree(2, 4)
    text = tree.stored(tree.leaf("float"), "float").text
    text = text.replace("<8 x float> %v1,", "<8 x float> %w,").replace("%v1 = ", "%v = ")
    text = text.replace("%v2 = ", f"{line}\n  %v2 = ")
    with pytest.raises(LoweringError, match=message):
        to_tiles(parse(text), LoweringContext(find_target("generic")))
