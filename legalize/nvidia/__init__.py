"""The target for NVIDIA's GPUs: its operations, and the launch of its kernels by the driver."""

from typing import Final

TRIPLES: Final = ("nvptx64-nvidia-cuda",)
