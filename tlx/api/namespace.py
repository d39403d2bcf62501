"""Functions by name: attributes, or items where the name is no Python name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from tlx.diagnostics import UsageError

T = TypeVar("T")


class Namespace(ABC, Generic[T]):
    """Things by name: attributes, or items where the name is no Python name; iteration gives the names."""

    def __init__(self, named: Mapping[str, T]) -> None:
        self._named = named

    @abstractmethod
    def __getitem__(self, name: str) -> T:
        """The thing of that name.

        Raises:
            UsageError: There is none.
        """

    def __getattr__(self, name: str) -> T:
        """The thing of that name.

        Raises:
            AttributeError: There is none.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except UsageError as error:
            raise AttributeError(error.message) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._named})
