"""Small versions of the programs that the front end is for: functions of JAX with their arguments, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.support.tools import require_module
from tlx.bench.models.programs import (
    autoencoder_arguments,
    autoencoder_step,
    gpt2_caches,
    gpt2_generate,
    gpt2_loss,
    gpt2_parameters,
    gpt2_prefill,
    gpt2_step,
    lstm,
    lstm_arguments,
    lstm_loss,
    mlp,
    mlp_arguments,
    mlp_step,
    resnet,
    resnet_arguments,
    resnet_inference,
    resnet_loss,
    vit,
    vit_arguments,
    vit_loss,
)

jax: Any = require_module("jax")
jnp: Any = jax.numpy

Program = tuple[Callable[..., Any], tuple[Any, ...]]


def _full_step() -> Program:
    p = gpt2_parameters(768, 12, 50257, 1024)
    return gpt2_step, (p, np.int32(3), gpt2_caches(p), np.int32(63))


_GPT2: Final = gpt2_parameters()
_TOKENS: Final = np.arange(6, dtype="i4")

PROGRAMS: Final[dict[str, Program]] = {
    "mlp": (mlp, mlp_arguments()[:2]),
    "mlp step": (mlp_step, mlp_arguments()),
    "resnet": (resnet, resnet_arguments()),
    "resnet inference": (resnet_inference, resnet_arguments()),
    "resnet gradient": (jax.value_and_grad(resnet_loss), resnet_arguments(depths=(1,), image=8)),
    "gpt2 prefill": (gpt2_prefill, (_GPT2, _TOKENS)),
    "gpt2 gradient": (jax.value_and_grad(gpt2_loss), (gpt2_parameters(layers=1), _TOKENS)),
    "gpt2 step": (gpt2_step, (_GPT2, np.int32(3), gpt2_caches(_GPT2), np.int32(4))),
    "gpt2 generate": (gpt2_generate, (_GPT2, _TOKENS[:3], gpt2_caches(_GPT2))),
    "vit": (vit, vit_arguments()),
    "vit gradient": (jax.value_and_grad(vit_loss), vit_arguments()),
    "autoencoder step": (autoencoder_step, autoencoder_arguments()),
    "lstm": (lstm, lstm_arguments()),
    "lstm gradient": (jax.value_and_grad(lstm_loss), lstm_arguments()),
}

BFLOAT: Final[dict[str, Program]] = {
    "mlp step": (mlp_step, mlp_arguments(dtype=jnp.bfloat16)),
    "gpt2 prefill": (gpt2_prefill, (gpt2_parameters(layers=1, dtype=jnp.bfloat16), _TOKENS)),
    "lstm": (lstm, lstm_arguments(dtype=jnp.bfloat16)),
}

FULL: Final[dict[str, Callable[[], Program]]] = {
    "mlp step": lambda: (mlp_step, mlp_arguments((784, 512, 512, 10), 128)),
    "resnet-50": lambda: (resnet_inference, resnet_arguments(64, (3, 4, 6, 3), 224, 1, 1000)),
    "gpt2 prefill": lambda: (gpt2_prefill, (gpt2_parameters(768, 12, 50257, 1024), np.arange(64, dtype="i4"))),
    "gpt2 step": _full_step,
    "vit": lambda: (vit, vit_arguments(768, 12, 224, 16, 1000)),
}
"""The whole models."""
