"""Arguments of the builder's methods: wrong ones are errors at the call, right ones give a text that parses.

`CALLS` has a call of each method. Its arguments are replaced, one by one and at random, by words, numbers and objects
that may or may not be legal there.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast, get_type_hints

import numpy as np
import pytest

from tlx.diagnostics import TlxError
from tlx.frontends import tensor_language as tl
from tlx.frontends.tensor_language.builder.kernel import instruction_methods
from tlx.frontends.tensor_language.operations.blas import Axpby
from tlx.frontends.tensor_language.syntax.annotations import literal_words
from tlx.frontends.tensor_language.syntax.nodes import Program
from tlx.frontends.tensor_language.types import F32, MemrefType, ScalarType

MATRIX: Final = "coopmatrix<f32x16x16,matrix_acc>"
TYPES: Final[dict[str, Any]] = {
    "A": "memref<f32x16x16>",
    "B": "memref<f32x16x16>",
    "I": "memref<i32x4>",
    "x": "memref<f32x16>",
    "y": "memref<f32x16>",
    "G": "group<memref<f32x16>x3>",
    "f": "f32",
    "i": "i32",
    "n": "index",
    "p": "bool",
    "z": "c32",
}


@dataclass(frozen=True)
class Call:
    """A call of a method.

    Attributes:
        arguments: Its arguments, made in the kernel it is written to.
        spmd: Whether it stands in an SPMD region.
        named: Further arguments by name.
    """

    arguments: Callable[[Any], tuple[Any, ...]]
    spmd: bool = False
    named: dict[str, Any] = field(default_factory=dict[str, Any])


def scalars(k: Any) -> tuple[Any, ...]:
    return k.f, 2.0


def one(k: Any) -> tuple[Any, ...]:
    return (k.f,)


def bits(k: Any) -> tuple[Any, ...]:
    return k.i, 3


def number(k: Any) -> tuple[Any, ...]:
    return (k.z,)


def entry(k: Any) -> tuple[Any, ...]:
    return 1, k.I, 0


def component(_: Any) -> tuple[Any, ...]:
    return ("x",)


def nothing(_: Any) -> tuple[Any, ...]:
    return ()


def value(k: Any) -> tuple[Any, ...]:
    return (k.f,)


def matrix(k: Any) -> Any:
    return k.constant(1.0, MATRIX)


def reduced(k: Any) -> tuple[Any, ...]:
    return "row", matrix(k)


def block(k: Any) -> tuple[Any, ...]:
    return matrix(k), k.A, 0, 0


def product(k: Any) -> tuple[Any, ...]:
    return (
        k.constant(1.0, "coopmatrix<f32x16x16,matrix_a>"),
        k.constant(1.0, "coopmatrix<f32x16x16,matrix_b>"),
        matrix(k),
    )


def wide(k: Any) -> tuple[Any, ...]:
    return 1.0, k.A, k.A, 0.0, k.B


ATOMIC: Final = {"scope": "device", "semantics": "acquire_release"}
ACCESS: Final = {"transpose": "t", "checked": "both_checked"}
UPDATE: Final = {**ACCESS, **ATOMIC}
LOAD: Final = {**ACCESS, "atomic": True, "scope": "subgroup", "semantics": "acquire"}
STORE: Final = {**ACCESS, "atomic": True, "scope": "cross_device", "semantics": "release"}
CALLS: Final[dict[str, Call]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "max", "min", "pow"), Call(scalars)),
    **dict.fromkeys(("shl", "shr", "and_", "or_", "xor"), Call(bits)),
    **dict.fromkeys(("abs", "neg", "sqrt", "tanh"), Call(one)),
    "not_": Call(lambda k: (k.i,)),
    **dict.fromkeys(("conj", "im", "re"), Call(number)),
    **dict.fromkeys(("equal", "not_equal", "greater_than", "greater_than_equal"), Call(scalars)),
    **dict.fromkeys(("less_than", "less_than_equal"), Call(scalars)),
    **dict.fromkeys((n + f for n in ("", "native_") for f in ("cos", "sin", "exp", "exp2", "log", "log2")), Call(one)),
    "cast": Call(lambda k: (k.f, "i32")),
    "constant": Call(lambda _: (1.0, "f32")),
    "alloca": Call(lambda _: ("memref<f32x4,local>",), named={"alignment": 64}),
    "lifetime_stop": Call(lambda k: (k.alloca("memref<f32x4,local>"),)),
    "axpby": Call(lambda k: (1.0, k.A, 0.0, k.B), named={"transpose": "n", "atomic": False}),
    "cumsum": Call(lambda k: (1.0, k.A, 1, 0.0, k.A), named={"atomic": False}),
    "sum": Call(lambda k: (1.0, k.A, 1.0, k.x), named={"transpose": "n", "atomic": True}),
    "gemm": Call(wide, named={"transpose_a": "n", "transpose_b": "t", "atomic": False}),
    "gemv": Call(lambda k: (1.0, k.A, k.x, 0.0, k.y), named={"transpose": "n", "atomic": False}),
    "ger": Call(lambda k: (1.0, k.x, k.x, 0.0, k.A), named={"atomic": True}),
    "hadamard": Call(wide, named={"atomic": False}),
    "parallel": Call(nothing),
    "foreach": Call(lambda k: (0, k.n)),
    "foreach_tile": Call(lambda k: ((0, 0), (k.n, 4), (16, 2))),
    "if_": Call(lambda k: (k.p,)),
    "otherwise": Call(nothing),
    "for_": Call(lambda k: (0, k.n, 2), named={"unroll": 2}),
    "yield_": Call(one),
    **dict.fromkeys(("group_id", "num_groups", "num_subgroups"), Call(component)),
    "subgroup_id": Call(component, spmd=True),
    "subgroup_size": Call(nothing),
    **dict.fromkeys(("subgroup_linear_id", "subgroup_local_id"), Call(nothing, spmd=True)),
    **dict.fromkeys(("atomic_add", "atomic_max", "atomic_min"), Call(entry, named=ATOMIC)),
    "associated": Call(lambda k: (k.G,)),
    "barrier": Call(nothing, named={"fence_global": True, "fence_local": False}),
    "load": Call(lambda k: (k.A, 0, k.n)),
    "atomic_load": Call(lambda k: (k.I, 0), named={"scope": "device", "semantics": "acquire"}),
    "store": Call(lambda k: (1.0, k.A, 0, k.n)),
    "atomic_store": Call(entry, named={"scope": "device", "semantics": "release"}),
    "size": Call(lambda k: (k.A, 1)),
    "expand": Call(lambda k: (k.x, 0, [4, 4])),
    "fuse": Call(lambda k: (k.A, 0, 1)),
    "subview": Call(lambda k: (k.A, (k.n, 4), slice(None))),
    **{
        f"subgroup_{kind}_{op}": Call(value, spmd=True)
        for kind in ("exclusive_scan", "inclusive_scan", "reduce")
        for op in ("add", "max", "min")
    },
    **{f"cooperative_matrix_reduce_{op}": Call(reduced, spmd=True) for op in ("add", "max", "min")},
    **{f"cooperative_matrix_atomic_{op}": Call(block, spmd=True, named=UPDATE) for op in ("add", "max", "min")},
    "subgroup_broadcast": Call(lambda k: (k.f, 3), spmd=True),
    "cooperative_matrix_apply": Call(lambda k: (matrix(k),), spmd=True),
    "cooperative_matrix_load": Call(lambda k: (MATRIX, k.A, 0, 0), spmd=True, named=LOAD),
    "cooperative_matrix_store": Call(block, spmd=True, named=STORE),
    "cooperative_matrix_construct": Call(lambda k: (k.f, MATRIX), spmd=True),
    "cooperative_matrix_extract": Call(lambda k: (matrix(k), 0), spmd=True),
    "cooperative_matrix_insert": Call(lambda k: (k.f, matrix(k), 0), spmd=True),
    "cooperative_matrix_mul_add": Call(product, spmd=True, named={"type_": MATRIX}),
    "cooperative_matrix_prefetch": Call(lambda k: (0, k.A, 0, 0, 4, 4), spmd=True),
    "cooperative_matrix_scale": Call(lambda k: (2.0, matrix(k)), spmd=True),
}
WORDS: Final = (
    "n",
    "t",
    "T",
    "both",
    "both_checked",
    "rows",
    "workgroup",
    "seq_cst",
    "relaxed",
    "x",
    "w",
    "row",
    "f32",
    "",
)
JUNK: Final[tuple[Any, ...]] = (
    *WORDS, None, True, False, np.True_, 0, 1, 7, -1, np.int64(1), 1.0, 1e300, np.float32(0.5), 1j, 1 << 63,
    (), (0, 1), [4], {"a": 1}, slice(0, 2), object(), np.zeros(3),
    "memref<f32x4,local>", "memref<f32x4", "coopmatrix<f32x16x16,matrix_c>",
    F32, MemrefType(F32, (4,), (1,), "local"), MemrefType(F32, [4], [1]), ScalarType("f8", "float", 8),  # pyright: ignore[reportArgumentType]
)  # fmt: skip


def run(k: Any, name: str, arguments: tuple[Any, ...], named: dict[str, Any], *, spmd: bool = False) -> None:
    """Call a method, in a region where it needs one; with what a complete kernel has after it."""
    if spmd:
        with k.parallel():
            run(k, name, arguments, named)
    elif name == "yield_":
        with k.for_(0, 4, init=[k.f]):
            k.yield_(*arguments, **named)
    elif name == "otherwise":
        with k.if_(k.p):
            pass
        with k.otherwise(*arguments, **named):
            pass
    else:
        made: Any = getattr(k, name)(*arguments, **named)
        if isinstance(made, AbstractContextManager):
            block = cast("AbstractContextManager[Any]", made)
            with block as region:
                if name == "cooperative_matrix_apply":
                    k.yield_(region.value)


def check_place(error: TlxError) -> None:
    assert error.span is not None, error
    assert Path(error.span.source.name).name == Path(__file__).name, error


def text_of(name: str, change: Callable[[Any, list[Any], dict[str, Any]], None]) -> str | None:
    """The text of a kernel with a call whose arguments are changed; None where the call or the kernel is refused."""
    call = CALLS[name]
    try:
        with tl.kernel("k", **TYPES) as k:
            arguments, named = list(call.arguments(k)), dict(call.named)
            change(k, arguments, named)
            run(k, name, tuple(arguments), named, spmd=call.spmd)
    except TlxError as error:
        check_place(error)
        return None
    text = tl.text(k)
    assert tl.parse(text) == Program([k.function])
    return text


def changes(name: str) -> Iterator[tuple[str | int, Any]]:
    call = CALLS[name]
    with tl.kernel("k", **TYPES) as k:
        count = len(call.arguments(k))
    for place in [*range(count), *call.named]:
        for junk in JUNK:
            yield place, junk


def put(place: str | int, junk: Any) -> Callable[[Any, list[Any], dict[str, Any]], None]:
    def change(_k: Any, arguments: list[Any], named: dict[str, Any]) -> None:
        if isinstance(place, int):
            arguments[place] = junk
        else:
            named[place] = junk

    return change


def test_all_methods_are_called() -> None:
    assert set(CALLS) == set(instruction_methods())


@pytest.mark.parametrize("name", CALLS)
def test_any_argument_is_refused_or_gives_a_text_that_parses(name: str) -> None:
    assert text_of(name, lambda _k, _arguments, _named: None) is not None
    for place, junk in changes(name):
        text_of(name, put(place, junk))


def literals() -> list[tuple[str, str, tuple[str, ...]]]:
    """Each parameter of a method that takes words, and the words."""
    return [
        (name, parameter, literal_words(hint))
        for name in instruction_methods()
        for parameter, hint in get_type_hints(inspect.unwrap(getattr(tl.Kernel, name))).items()
        if literal_words(hint)
    ]


@pytest.mark.parametrize(("name", "parameter", "legal"), literals())
def test_words_are_those_of_the_grammar(name: str, parameter: str, legal: tuple[str, ...]) -> None:
    place: str | int = parameter if parameter in CALLS[name].named else 0
    texts = {word: text_of(name, put(place, word)) for word in legal}
    refused = {word for word, text in texts.items() if text is None}
    orders = {"release", "acquire_release"} if "load" in name else {"acquire", "acquire_release"}
    assert refused == (orders if parameter == "semantics" and ("load" in name or "store" in name) else set())
    k = tl.kernel("k", **TYPES)
    arguments, named = list(CALLS[name].arguments(k)), dict(CALLS[name].named)
    put(place, f"{legal[-1]}s")(k, arguments, named)
    with pytest.raises(TlxError) as caught:
        run(k, name, tuple(arguments), named)
    assert f"{name}: {parameter} must be '{legal[0]}'" in caught.value.message
    assert f"got '{legal[-1]}s'" in caught.value.message


@pytest.mark.parametrize("seed", range(20))
def test_random_kernels_parse_again(seed: int) -> None:
    draw = random.Random(seed)
    written = 0
    with tl.kernel("k", **TYPES) as k:
        for _ in range(60):
            name = draw.choice(sorted(CALLS))
            call = CALLS[name]
            arguments, named = list(call.arguments(k)), dict(call.named)
            if draw.random() < 0.5:
                place = draw.choice([*range(len(arguments)), *named] or [None])
                if place is not None:
                    put(place, draw.choice(JUNK))(k, arguments, named)
            try:
                run(k, name, tuple(arguments), named, spmd=call.spmd)
                written += 1
            except TlxError as error:
                check_place(error)
    assert written > 20
    assert tl.parse(tl.text(k)) == tl.program(k)


def test_did_you_mean() -> None:
    k: Any = tl.kernel("k", **TYPES)
    for wrong, right in {"both": "both_checked", "row_checked": "rows_checked"}.items():
        with pytest.raises(TlxError, match=f"did you mean '{right}'"):
            k.cooperative_matrix_load(MATRIX, k.A, 0, 0, checked=wrong)
    for wrong, right in {"workgroup": "work_group", "DEVICE": "device"}.items():
        with pytest.raises(TlxError, match=f"did you mean '{right}'"):
            k.atomic_add(1, k.I, 0, scope=wrong)
    with pytest.raises(
        TlxError, match="alloca: got an unexpected keyword argument 'alignmnt'; did you mean 'alignment'"
    ):
        k.alloca("memref<f32x4,local>", alignmnt=64)
    with pytest.raises(TlxError, match="gemm: missing a required argument: 'a'"):
        k.gemm(1.0)
    with pytest.raises(TlxError, match=r"'memrf<f32x4>' is not a type: .*did you mean 'memref'"):
        k.alloca("memrf<f32x4>")
    with pytest.raises(TlxError, match="did you mean 'sequentially_consistent'"):
        k.atomic_add(1, k.I, 0, semantics="seq_cst")


def test_blocks_are_not_values() -> None:
    k: Any = tl.kernel("k", **TYPES)
    with k.for_(0, 4) as loop:
        for use in (lambda: k.x[loop], lambda: loop + 1, lambda: 2 * loop, lambda: k.n + loop, lambda: loop < k.n):
            with pytest.raises(TlxError, match=r"<SequentialLoop>.*: write \.index") as caught:
                use()
            assert caught.value.span is not None
    with (
        k.foreach_tile(0, k.n, 16) as tile,
        pytest.raises(TlxError, match=r"<ForeachTileBody>.*: write \.offset\[mode\]"),
    ):
        k.load(k.x, tile)


HEADS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"subgroup_size": 24}, "subgroup_size must be a power of two"),
    ({"subgroup_size": "16"}, "kernel: subgroup_size must be an integer of 64 bits or None, got '16'"),
    ({"work_group_size": 16}, "kernel: work_group_size must be a list, each entry an integer of 64 bits or None"),
    ({"work_group_size": [16]}, "work_group_size must be an array of 2 integers"),
    ({"subgroup_size": 16, "attributes": {"subgroup_size": 8}}, "subgroup_size is given twice"),
    ({"attributes": {"é": 1}}, "the name of an attribute is a string of printable ASCII"),
    ({"attributes": {"a": "\n"}}, "an attribute's string is a string of printable ASCII"),
    ({"attributes": {"a": None}}, "an attribute is a truth value"),
    ({"attributes": {3: 1}}, "the name of an attribute is a string"),
    ({"A": "memref<f32x4> {alignment=3}"}, "alignment must be a positive multiple of 4"),
    ({"A": ("memref<f32x4>", {"alignment": 3})}, "alignment must be a positive multiple of 4"),
    ({"A": ("memref<f32x4>", {}, 3)}, "kernel: A must be a type such as"),
    ({"A": "memref<f32x4,local>"}, "%A must be global"),
    ({"A": MATRIX}, "a parameter cannot be a coopmatrix"),
    ({"A": "group<memref<f32x4>x?,offset:-1>"}, "the offset of a group must not be negative"),
    ({"A": MemrefType(F32, (4, 4), (1,))}, "strided<> needs an entry for each of the 2 modes"),
    (
        {"A": MemrefType(F32, (4,), (1,), cast("Any", "shared"))},
        "address_space must be 'global' or 'local', got 'shared'",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), HEADS)
def test_signatures_are_checked_at_the_call(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TlxError) as caught:
        tl.kernel("k", **arguments)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert Path(caught.value.span.source.name).name == Path(__file__).name


def test_trees_are_checked_before_they_are_compiled() -> None:
    with tl.kernel("k", **TYPES) as k:
        k.axpby(1.0, k.x, 0.0, k.x)
    (axpby,) = (i for i in k.function.body.instructions if isinstance(i, Axpby))
    axpby.transpose = "T"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(tl.ProgramError, match="Axpby: transpose must be 'n' or 't', got 'T'; did you mean 't'"):
        tl.compile(Program([k.function]))
