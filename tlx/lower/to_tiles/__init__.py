"""Stage 2: 2-D trees rooted at a store become calls to kernels made of tiles.

Rewrite:
    %a = load(%pa, <M, K>)  %b = load(%pb, <K, N>)  %m = matmul(%a, %b)  store(%pc, typeinfo(%m))
        ->
    call void @tlx.matmul.MxNxK(%pc, %pa, %pb)

    define internal void @tlx.matmul.MxNxK(...) "tlx-stage"="tiles" { loops over tiles: load, mma, store }
"""

from __future__ import annotations

from tlx.lower.to_tiles.driver import to_tiles

__all__ = ["to_tiles"]
