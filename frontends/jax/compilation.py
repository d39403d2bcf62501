"""`tlx.jax.jit` and `tlx.jax.lower`: functions of JAX as machine code of TLX."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial, update_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tlx.api.device import is_on_device
from tlx.diagnostics import UsageError
from tlx.frontends.jax.operations import REFUSED, RULES
from tlx.frontends.jax.program import Function
from tlx.frontends.jax.reader import read
from tlx.frontends.jax.translation import Translation
from tlx.graph import Graph, GraphFunction

if TYPE_CHECKING:
    from tlx.target.target import Target

_MAIN: Final = "main"
_KEYS: Final = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}
"""Implementations of random numbers by the element types of their keys."""


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    target: Target | str = "native",
    **settings: Any,
) -> Any:
    """A function of JAX, compiled by TLX for each signature that it is called with.

    Arguments and results are pytrees, as in `jax.jit`. Their leaves are numpy arrays, arrays of JAX, or numbers; those
    of results are new numpy arrays. On a GPU, leaves may be in its memory; then those of results are, too. There, calls
    take `stream=`, as those of `tlx.compile` do.

    Args:
        function: The function; None to use `jit` as a decorator with options.
        static_argnums: Positions of arguments that are constants of the program, and hashable.
        static_argnames: Names of such arguments.
        donate_argnums: Positions of arguments whose memory results may take: numpy arrays among their leaves are
            overwritten, and must not be used after the call.
        target: The machine to aim at, which must be this one.
        **settings: As for `tlx.compile`: `threads="openmp"`, `cache=True`, ...
    """
    if function is None:
        return partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            target=target,
            **settings,
        )
    donated = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    return Jitted(function, static_argnums, static_argnames, donated, target, settings)


def lower(function: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """The TLX IR of a function of JAX for arguments of these shapes and types.

    Args:
        function: The function, or the result of `jit`.
        *arguments: Its arguments; `jax.ShapeDtypeStruct` is enough for arrays.
        **named: Its arguments that are passed by name.
    """
    jitted = function if isinstance(function, Jitted) else jit(function)
    return jitted.lower(*arguments, **named)


@dataclass(frozen=True, slots=True)
class _JaxGraph:
    """A function as a graph.

    Attributes:
        graph: The graph.
        inputs: For each parameter, the number of the leaf that it is, and JAX's type of it.
        outputs: JAX's types of the results.
        tree: The structure of the results.
    """

    graph: Graph
    inputs: Sequence[tuple[int, Any]]
    outputs: Sequence[Any]
    tree: Any


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A function that is compiled for one signature; attributes as those of `_JaxGraph`."""

    code: GraphFunction
    inputs: Sequence[tuple[int, Any]]
    outputs: Sequence[Any]
    tree: Any

    def __call__(self, leaves: Sequence[Any], stream: int) -> Any:
        """The results for the leaves of the arguments."""
        resident = self.code.is_resident
        passed = (leaves[k] if resident(leaves[k], stream) else _array(leaves[k], type_) for k, type_ in self.inputs)
        results: Any = self.code(*passed, stream=stream)
        arrays: tuple[Any, ...] = (results,) if len(self.outputs) == 1 else results
        return self.tree.unflatten([_result(a, type_) for a, type_ in zip(arrays, self.outputs, strict=True)])


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function may be passed an argument by a name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some functions written in C
        return False
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)


class Jitted:
    """A function of JAX that TLX compiles; see `jit`."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        donated: tuple[int, ...],
        target: Target | str,
        settings: dict[str, Any],
    ) -> None:
        jax = _jax()
        update_wrapper(self, function)
        self._traced = jax.jit(function, static_argnums=static_argnums, static_argnames=static_argnames)
        self._static = {static_argnums} if isinstance(static_argnums, int) else set(static_argnums)
        self._static_names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
        self._has_stream = _takes(function, "stream")
        self._donated = donated
        self._target = target
        self._settings = settings
        self._compiled: dict[Hashable, _Compiled] = {}
        self._flatten = jax.tree_util.tree_flatten
        self._config = jax.config

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The results.

        Args:
            *arguments: The arguments.
            **named: Those that are passed by name; and `stream`, if the function has no argument of that name: on a
                GPU, the stream in whose order kernels run and new arrays are allocated and freed, as the driver's
                handle.

        Raises:
            TlxError: An operation is not supported, or an argument is no array.
        """
        stream = 0 if self._has_stream else named.pop("stream", 0)
        leaves, key = self._signature(arguments, named)
        try:
            hash(key)
        except TypeError as error:
            raise UsageError(f"a static argument of {self._traced.__name__} is no constant: {error}") from None
        if key not in self._compiled:
            self._compiled[key] = self._compile(arguments, named)
        return self._compiled[key](leaves, stream)

    def lower(self, *arguments: Any, **named: Any) -> str:
        """The TLX IR for arguments of these shapes and types."""
        return self._graph(arguments, named).graph.text()

    def _donated_leaves(self, arguments: Sequence[Any]) -> set[int]:
        """The numbers of the leaves of donated arguments."""
        leaves: set[int] = set()
        count = 0
        for k, argument in enumerate(arguments):
            if k not in self._static:
                size = len(self._flatten(argument)[0])
                leaves.update(range(count, count + size) if k in self._donated else ())
                count += size
        return leaves

    def _signature(self, arguments: Sequence[Any], named: dict[str, Any]) -> tuple[list[Any], Hashable]:
        """The leaves of the arguments, and what determines the program."""
        dynamic = [a for k, a in enumerate(arguments) if k not in self._static]
        by_name = {k: a for k, a in named.items() if k not in self._static_names}
        constants = tuple((k, arguments[k]) for k in sorted(self._static) if k < len(arguments))
        constants += tuple(sorted((k, a) for k, a in named.items() if k in self._static_names))
        leaves, tree = self._flatten((dynamic, by_name))
        return leaves, (tree, constants, tuple(map(_leaf_key, leaves)), self._config.jax_enable_x64)

    def _compile(self, arguments: Sequence[Any], named: dict[str, Any]) -> _Compiled:
        graph = self._graph(arguments, named)
        code = graph.graph.compile(self._target, **self._settings)
        return _Compiled(code, graph.inputs, graph.outputs, graph.tree)

    def _graph(self, arguments: Sequence[Any], named: dict[str, Any]) -> _JaxGraph:
        """The function as a graph, by way of the portable artifact of `jax.export`."""
        jax = _jax()
        arguments, named = jax.tree_util.tree_map(_abstract, (tuple(arguments), named))
        try:
            exported = jax.export.export(self._traced, platforms=["cpu"])(*arguments, **named)
        except NotImplementedError as error:
            reason = f"JAX cannot export {self._traced.__name__} ({error})"
            raise UsageError(f"{reason}: call Python outside of the compiled function") from None
        program = read(exported.mlir_module_serialized, self._traced.__name__)
        main = program.functions[_MAIN]
        graph = Graph(self._traced.__name__)
        translation = Translation(program, graph, RULES, REFUSED, has_weights=True)
        inputs = [(k, exported.in_avals[k]) for k in exported.module_kept_var_idx]
        places = _places(self._donated_leaves(arguments), inputs, main)
        values = [
            translation.parameter(name, type_, donated=k in places.values())
            for k, (name, type_) in enumerate(zip(main.names, main.types, strict=True))
        ]
        results = translation.inline_all(main.body, values, {})
        if not results:
            raise UsageError(f"{self._traced.__name__} returns no array")
        for k, value in enumerate(results):
            graph.output(value, "result", values[places[k]] if k in places else None)
        return _JaxGraph(graph, inputs, exported.out_avals, exported.out_tree)


def _places(donated: AbstractSet[int], inputs: Sequence[tuple[int, Any]], main: Function) -> dict[int, int]:
    """For each result that takes the memory of a donated parameter, the number of that parameter."""
    free = [k for k, (leaf, _) in enumerate(inputs) if leaf in donated]
    places: dict[int, int] = {}
    for number, type_ in enumerate(main.results):
        place = next((k for k in free if main.types[k] == type_), None)
        if place is not None:
            places[number] = place
            free.remove(place)
    return places


def _abstract(leaf: Any) -> Any:
    """An array of a device that JAX does not know as its shape and type; other leaves as they are."""
    if isinstance(leaf, _jax().Array) or not is_on_device(leaf):
        return leaf
    return _jax().ShapeDtypeStruct(tuple(leaf.shape), np.dtype(str(leaf.dtype).removeprefix("torch.")))


def _leaf_key(leaf: Any) -> Hashable:
    """What a program depends on of an argument."""
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return tuple(leaf.shape), leaf.dtype, getattr(leaf, "weak_type", False)
    return cast("Hashable", type(leaf))


def _array(leaf: Any, type_: Any) -> Any:
    """A leaf as a numpy array; keys of JAX are arrays of integers."""
    if _is_key(type_):
        return np.asarray(_jax().random.key_data(leaf))
    return np.asarray(leaf, type_.dtype)


def _result(array: Any, type_: Any) -> Any:
    return _jax().random.wrap_key_data(array, impl=_KEYS[str(type_.dtype)]) if _is_key(type_) else array


def _is_key(type_: Any) -> bool:
    return not isinstance(type_.dtype, np.dtype)


def _jax() -> Any:
    try:
        import_module("jax.export")
        return import_module("jax")
    except ImportError as error:
        raise UsageError(f"tlx.jax needs JAX ({error}): pip install 'tlx-ir[jax]'") from None
