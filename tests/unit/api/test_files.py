"""Reading files, and writing them atomically."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import click
import pytest
from click.testing import CliRunner

from tlx.api import files
from tlx.api.files import InputFormat
from tlx.cli.convert import translate
from tlx.diagnostics import TlxError, UsageError
from tlx.lower import pipeline


def test_text_keeps_its_newlines(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    data = b"; one\r\n; two\n; three\r; four"
    path.write_bytes(data)
    text = files.read_ir(str(path))
    files.write_output(str(path), text)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.ll", "No such file or directory"),
        ("", "Is a directory"),
        ("a\0b", "Invalid argument"),
        ("x" * 300, "File name too long"),
    ],
)
def test_unreadable_inputs(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"could not open input file '.*: {said}"):
        files.read_bytes(f"{tmp_path}/{name}")


def test_sizes(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_bytes(b"12345")
    assert files.file_size(str(path)) == 5
    assert [files.file_size(name) for name in ("-", "none.ll", "a\0b")] == [0, 0, 0]


def test_errors_point_at_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_bytes(b"; one\n; caf\xe9\n")
    with pytest.raises(UsageError) as error:
        files.read_ir(str(path))
    assert error.value.render() == (
        f"{path}:2:6: error: byte 0xe9 at offset 11 is not UTF-8 text (nor is the file bitcode)"
    )


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_text("old")
    with pytest.raises(TypeError), files.atomic_file(path) as file:
        file.writelines([b"half of the new", None])  # pyright: ignore[reportCallIssue, reportArgumentType]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_of_a_new_file_follow_the_mask(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        files.write_output(str(tmp_path / "x"), "text")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_the_umask_of_the_process_does_not_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask is shared by all threads: changing it for a moment affects files that others create."""

    def changed(mask: int) -> int:
        pytest.fail(f"the mask is changed to {mask:o}")

    monkeypatch.setattr(os, "umask", changed)
    files.write_output(str(tmp_path / "x"), "text")
    files.write_output(str(tmp_path / "x"), "again")
    assert (tmp_path / "x").read_text() == "again"


def test_large_text_of_multibyte_characters(tmp_path: Path) -> None:
    text = "é" * (3 << 20)
    files.write_output(str(tmp_path / "x"), text)
    assert (tmp_path / "x").read_bytes() == text.encode()


def test_binary_output_to_a_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    terminal = Terminal(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", terminal)
    with pytest.raises(UsageError, match="refusing to write binary output to a terminal"):
        files.write_output("-", b"BC")
    files.write_output("-", b"BC", force=True)
    assert isinstance(terminal.buffer, io.BytesIO)
    assert terminal.buffer.getvalue() == b"BC"


KERNEL: Final = "; a kernel\nfunc @k(%A: memref<f32x4>) {}\n"
OLD: Final = "func @k(%A: memref<f32x4>) { axpby.n 1.0, %A, 0.0, %A : f32, memref<f32x4>, f32, memref<f32x4> }"
ASSEMBLY: Final = '; a module\n\nsource_filename = "x"\n@x = global i32 0\ndefine void @k() {\n  ret void\n}\n'


@pytest.mark.parametrize("name", ["k.tl", "k.ir", "k", "k.ll", "k.txt"])
@pytest.mark.parametrize("language", ["", "tl"])
def test_languages_are_those_of_names_or_of_options(tmp_path: Path, name: str, language: str) -> None:
    path = tmp_path / name
    path.write_text(KERNEL)
    input_format = InputFormat(language)
    if language or path.suffix in (".tl", ".ir"):
        assert "define dso_local void @k(ptr %A" in files.read_ir(str(path), input_format=input_format)
        assert files.ir_name(str(path), input_format) == f"{path} (translated)"
    else:
        with pytest.raises(UsageError, match="this is the tensor language, not LLVM IR: read it with -x tl") as caught:
            files.read_ir(str(path), input_format=input_format)
        assert caught.value.name == str(path)


@pytest.mark.parametrize("language", ["", "ll", "ir"])
@pytest.mark.parametrize("text", [ASSEMBLY, "@x = global i32 0", "%t = type { i32 }", "attributes #0 = { nounwind }"])
def test_assembly_is_recognised(tmp_path: Path, text: str, language: str) -> None:
    path = tmp_path / "x.ir"
    path.write_text(text)
    assert files.read_ir(str(path), input_format=InputFormat(language)) == text
    assert files.ir_name(str(path), InputFormat(language)) == str(path)
    assert files.assembly_of(text, "x", input_format=InputFormat(language)) == text


def test_bitcode_is_recognised(tmp_path: Path) -> None:
    from tlx.llvm.codegen import emit_code

    path = tmp_path / "x.ir"
    path.write_bytes(emit_code(ASSEMBLY, "bc", 0))
    assert "define void @k()" in files.read_ir(str(path))


def test_unrecognised_text_is_an_error_of_its_language(tmp_path: Path) -> None:
    path = tmp_path / "x.ir"
    path.write_text("hello")
    with pytest.raises(TlxError, match="expected 'func', found 'hello'"):
        files.read_ir(str(path))
    path.write_text("")
    assert "define" not in files.read_ir(str(path))


@pytest.mark.parametrize("name", ["k.tl", "k.ir", "k"])
def test_versions(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(OLD)
    assert "define dso_local void @k(ptr %A" in files.read_ir(str(path), input_format=InputFormat(std="v1"))
    assert "define dso_local void @k(ptr %A" in files.assembly_of(OLD, "<string>", input_format=InputFormat("tl", "v1"))
    with pytest.raises(TlxError):
        files.read_ir(str(path), input_format=InputFormat("tl"))


@pytest.mark.parametrize(
    ("input_format", "said"),
    [
        (InputFormat("bc"), "unknown language 'bc'; choose from ll, ir, stablehlo, onnx, tl"),
        (InputFormat(std="v3"), "unknown version 'v3'; choose from v1, v2 of the tensor language"),
        (InputFormat("ll", "v1"), "there is no version 'v1' of LLVM IR"),
        (InputFormat("", "v1"), "there is no version 'v1' of LLVM IR"),
        (InputFormat("tl"), "this is LLVM IR, not the tensor language"),
    ],
)
def test_mismatching_languages(tmp_path: Path, input_format: InputFormat, said: str) -> None:
    path = tmp_path / "x.ll"
    path.write_text(ASSEMBLY)
    with pytest.raises(UsageError, match=said):
        files.read_ir(str(path), input_format=input_format)


def test_all_commands_with_inputs_take_a_language() -> None:
    from tlx.cli.group import group

    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        reads = any(
            isinstance(p, click.Argument) and p.name in ("file", "files", "inputs", "rows") for p in command.params
        )
        spelled = {spelling for parameter in command.params for spelling in parameter.opts}
        assert {"-x", "--std"} <= spelled or not reads, f"tlx {name}"


def test_translate_reads_the_files_of_added_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def translated(text: str, _filename: str, _threads: str, _std: str) -> str:
        return f"define i32 @f() {{\n  ret i32 {text.strip()}\n}}\n"

    added = SimpleNamespace(
        LANGUAGE="number", TITLE="numbers", STANDARDS=("1",), SUFFIXES=(".number",), OPENINGS=(), TRANSLATE=translated
    )
    known = pipeline.front_ends()
    monkeypatch.setattr(pipeline, "front_ends", lambda: (*known, added))
    (path := tmp_path / "seven.number").write_text("7\n")
    CliRunner().invoke(translate, [str(path), "-o", str(out := tmp_path / "seven.ll")], catch_exceptions=False)
    assert out.read_text() == translated("7", "", "", "")
    refused = CliRunner().invoke(translate, [str(path), "--emit=v2"])
    assert isinstance(refused.exception, UsageError)
    assert "other languages and models are written as --emit=ll" in refused.exception.message
