"""Signs of the operands of products, by intrinsic and back; tile code knows the mma family only, no `matmul`."""

from __future__ import annotations

from typing import Final

from tlx.target import Sign

MMA_SIGNS: Final[dict[str, tuple[Sign, Sign]]] = {
    "umma": ("u", "u"),
    "smma": ("s", "s"),
    "mma": ("s", "s"),
    "usmma": ("u", "s"),
    "summa": ("s", "u"),
}
PRODUCT_SIGNS: Final[dict[str, tuple[Sign, Sign]]] = {**MMA_SIGNS, "matmul": ("s", "s")}
MMA_NAMES: Final[dict[tuple[Sign, Sign], str]] = {
    **{MMA_SIGNS[name]: name for name in ("umma", "smma", "usmma", "summa")},
    ("f", "f"): "smma",
}
