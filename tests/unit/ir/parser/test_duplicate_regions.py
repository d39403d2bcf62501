"""Equal regions become calls of one function: what a region is, when two are equal, and attributes of inputs."""

from __future__ import annotations

import pytest

from tests.bench.programs import different_sequence
from tlx.diagnostics import TlxError
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.parser import duplicates
from tlx.ir.parser.duplicates import inherited_attributes, outlined_region
from tlx.ir.parser.module import needs_lowering, parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text

DIMS = "<1 x i32> <i32 8>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
POINTERS = "ptr %c, ptr %a, ptr %b"
COPY = f"""  %t = call token @llvm.tensor.load(ptr elementtype(float) %a, {DIMS}, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <1 x i32> zeroinitializer)
"""
LOAD, STORE = COPY.splitlines(keepends=True)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "MIN_REGIONS", 2)
    monkeypatch.setattr(duplicates, "MIN_REPEATS", 1)


def function(*pieces: str, parameters: str = POINTERS, attributes: str = "nounwind", tail: str = "") -> str:
    """A function of some pieces, each with names of values of its own."""
    body = "".join(piece.replace("%t", f"%t{index}") for index, piece in enumerate(pieces))
    return f"define void @f({parameters}) {attributes} {{\nentry:\n{body}  ret void\n}}\n{tail}"


def found(text: str) -> list[Function]:
    """The functions that regions of a text became."""
    return [function for function in parse(text, outline=True).functions if outlined_region(function) is not None]


def headers(text: str) -> list[str]:
    return [function.header.strip() for function in found(text)]


def counts(text: str) -> list[int]:
    return [fact.copies for item in parse(text, outline=True).items if (fact := outlined_region(item))]


def test_equal_regions_become_calls_of_one_function() -> None:
    text = function(COPY, COPY.replace("%a", "%b"), COPY.replace("%c", "%x").replace("%a", "%c").replace("%x", "%a"))
    assert str(parse("; first\n" + text + "; last\n", outline=True)) == (
        "; first\ndefine void @f(ptr %c, ptr %a, ptr %b) nounwind {\nentry:\n"
        "  call void @f.part(ptr %a, ptr %c)\n"
        "  call void @f.part(ptr %b, ptr %c)\n"
        "  call void @f.part(ptr %c, ptr %a)\n"
        "  ret void\n}\n\n"
        "define internal void @f.part(ptr %a, ptr %c) nounwind {\nentry:\n"
        f"{COPY.replace('%t', '%t0')}  ret void\n}}\n; last\n"
    )
    assert counts(text) == [2]


def test_extraction_is_optional() -> None:
    text = function(COPY, COPY)
    assert str(parse(text)) == text


def test_few_or_different_regions_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    other = COPY.replace("8", "9")
    assert not found(function(COPY))
    assert counts(function(COPY, other, COPY, other)) == [1, 1]
    monkeypatch.setattr(duplicates, "MIN_REPEATS", 2)
    assert counts(function(COPY, other, COPY, other)) == [1, 1]
    monkeypatch.setattr(duplicates, "MIN_REPEATS", 3)
    assert not found(function(COPY, other, COPY, other))
    monkeypatch.setattr(duplicates, "MIN_REGIONS", 5)
    assert not found(function(*[COPY] * 4))
    assert counts(function(*[COPY] * 5)) == [4]


def test_a_region_ends_after_the_last_use_of_its_values() -> None:
    twice = COPY + STORE.replace("%c", "%b")
    texts = [str(function) for function in found(function(twice, twice))]
    assert len(texts) == 1
    assert texts[0].count("tensor.store") == 2


def test_instructions_between_regions_stay() -> None:
    text = function(
        "  %p = getelementptr float, ptr %a, i64 8\n" + COPY.replace("%a", "%p"),
        "  call void @g(ptr %p) ; a comment, @g\n\n" + COPY.replace("%a", "%p"),
        tail="declare void @g(ptr)\n",
    )
    module = str(parse(text, outline=True))
    assert (
        "i64 8\n  call void @f.part(ptr %p, ptr %c)\n  call void @g(ptr %p) ; a comment, @g\n\n  call void @f" in module
    )
    assert counts(text) == [1]


def test_blocks_and_loops() -> None:
    text = function(
        COPY + "  br label %loop\nloop:\n  %p = phi ptr [ %a, %entry ], [ %q, %loop ]\n",
        COPY.replace("%a", "%p"),
        "  %q = getelementptr float, ptr %p, i64 1\n  %e = icmp eq ptr %q, %b\n"
        "  br i1 %e, label %end, label %loop\nend:\n",
    )
    assert counts(text) == [1]


@pytest.mark.parametrize(
    "line",
    [
        "  call void @g(ptr %a)\n",  # might use what the part stores
        "  %tp = alloca float\n",
        "  %tv = load volatile float, ptr %a\n",
        "  store volatile float 0.0, ptr %a\n",
        "  store atomic float 0.0, ptr %a release, align 4\n",
        "  %tv = load ptr, ptr %a\n",  # points anywhere
        "  %tv = load <2 x ptr>, ptr %a\n",
        "  fence seq_cst\n",
        "  call float @llvm.fabs.f32(float 0.0)\n",  # takes a number without saying so
        "  %tv = call ptr @llvm.stacksave()\n",
        "  %tv = inttoptr i64 8 to ptr\n",
        "  %tv = getelementptr float, ptr inttoptr (i64 8 to ptr), i64 1\n",
        '  %tv = call float @llvm.fabs.f32(float 0.0) [ "deopt"() ]\n',
        "  %tv = fadd float 0.0, 0.0, !fpmath !0\n",
        "  %tv = fadd float 0.0, 0.0 ; of %nothing\n",
        "  #dbg_value(ptr %a, !0, !0, !0)\n",
        "  br label %next\nnext:\n",
        "  %5 = fadd float 0.0, 0.0\n",  # LLVM would count on without it
        "  %tv = fadd float 0.0,\n   0.0\n",
    ],
)
def test_instructions_that_end_a_region(line: str) -> None:
    text = function(LOAD + line + STORE, COPY, COPY)
    assert str(parse(text, is_parsed=lambda _text: False, outline=True)) == text
    finder = duplicates.RepeatedRegionFinder()
    assert not finder.find(text.split("\n")[1:], [])


@pytest.mark.parametrize(
    "line",
    [
        "  %tv = fadd float 0.0, 0.0\n",
        "  %tv = load float, ptr %a\n",
        "  %tv = load <8 x float>, ptr %a, align 4\n",
        "  store <2 x float> zeroinitializer, ptr %b\n",
        "  %tv = getelementptr inbounds float, ptr %b, i64 1\n",
        "  %tv = tail call fast float @llvm.fma.f32(float 0.0, float 0.0, float 0.0) #1\n",
    ],
)
def test_instructions_that_a_region_may_contain(line: str) -> None:
    assert counts(function(LOAD + line + STORE, LOAD + line + STORE)) == [1]


@pytest.mark.parametrize(
    "text",
    [
        function(COPY, COPY, LOAD),  # not stored
        function(LOAD, STORE.replace("%t", "%t0"), LOAD, STORE.replace("%t", "%t2"), COPY.replace("%t", "%t0")),
        function(COPY, COPY, '  %"t" = fadd float 0.0, 0.0\n'),
        function(COPY, COPY).replace("%t1", "%t0"),
        function(COPY, COPY, COPY).replace("%t1", "%c"),
        function(COPY, COPY).replace("%t0", "%0"),
        function(COPY, COPY).replace("entry:\n  %t0", "  %t0").replace("{\n ", "{"),
        function(COPY, COPY).replace("  ret void\n", "  ret void\nuselistorder ptr %a, { 1, 0 }\n"),
        function(COPY, COPY, "  %v = fadd <5000 x float> zeroinitializer, zeroinitializer\n"),
        function(COPY, COPY, parameters=POINTERS + ", <5000 x float> %v"),
        function(COPY, COPY, attributes="nounwind !dbg !0"),
        function(COPY, COPY, attributes="personality ptr @g"),
        function(COPY, COPY, attributes='section "x"'),
        function(COPY, COPY, attributes="#0", tail="attributes #0 = { strictfp }\n"),
        function(COPY, COPY, attributes="#1", tail="attributes #0 = { nounwind }\n"),
        function(*[COPY.replace("%a", "%0")] * 2, parameters="ptr %0, ptr %c", tail="%0 = type { i32 }\n"),
    ],
)
def test_functions_without_regions(text: str) -> None:
    try:
        assert not found(text)
    except TlxError:  # the text is wrong, which is said of the function as it stands
        with pytest.raises(TlxError):
            parse(text)


SPLAT = "  %tv = insertelement <8 x float> poison, float %x, i64 0\n"
LENGTH = "  %tn = insertelement <1 x i32> poison, i32 %n, i64 0\n"


@pytest.mark.parametrize(
    ("before", "piece", "parameters", "inputs"),
    [
        ("", LOAD + SPLAT + STORE, "ptr %c, ptr %a, float %x", "ptr %a, float %x, ptr %c"),
        ("  %x = fadd float 1.0, 1.0\n", LOAD + SPLAT + STORE, POINTERS, "ptr %a, float %x, ptr %c"),
        ("", LOAD + LENGTH + STORE, "ptr %c, ptr %a, i32 %n", "ptr %a, i32 %n, ptr %c"),
        ("  %n = load i32, ptr %b\n", LOAD + LENGTH + STORE, POINTERS, "ptr %a, i32 %n, ptr %c"),
        ("  %n = add i32 4, 4\n", LOAD + LENGTH + STORE, POINTERS, None),  # a constant
        ("", COPY.replace("ptr %c", "ptr noundef align 16 %c"), POINTERS, "ptr %a, ptr %c"),
        ("", COPY.replace("ptr %c", "ptr addrspace(1) %c"), "ptr addrspace(1) %c, ptr %a",
         "ptr %a, ptr addrspace(1) %c"),
        ("", COPY.replace("ptr", "float*"), "float* %c, float* %a", "float* %a, float* %c"),
        ("", COPY.replace("ptr", "float**"), "float** %c, float** %a", None),
        ("", COPY.replace("ptr", "%s*"), "%s* %c, %s* %a", None),
        ("", LOAD + SPLAT.replace("float %x", "bfloat %x") + STORE, "ptr %c, ptr %a, bfloat %x", None),
        ("", LOAD + "  %tv = fadd <8 x float> %x, %x\n" + STORE, "ptr %c, ptr %a, <8 x float> %x", None),
        ("", LOAD + "  %tv = fadd <8 x float> zeroinitializer, %x\n" + STORE, POINTERS, None),
    ],
)  # fmt: skip
def test_inputs_are_pointers_and_scalars(before: str, piece: str, parameters: str, inputs: str | None) -> None:
    text = function(before, piece, piece, parameters=parameters)
    assert headers(text) == ([f"define internal void @f.part({inputs}) nounwind {{"] if inputs else [])


@pytest.mark.parametrize(
    ("parameters", "before", "a", "c", "inputs"),
    [
        ("ptr noalias %c, ptr noalias %a", "", "%a", "%c", "ptr noalias %a, ptr noalias %c"),
        ("ptr noalias %c, ptr %a", "", "%a", "%c", "ptr %a, ptr noalias %c"),
        ("ptr %c, ptr %a", "", "%a", "%c", "ptr %a, ptr %c"),
        ("ptr noalias %c, ptr %a", "", "%c", "%c", "ptr noalias %c"),
        ("ptr noalias %c, ptr %a", "  %p = getelementptr float, ptr %c, i64 4\n", "%p", "%c", "ptr %p, ptr %c"),
        ("ptr noalias %c, ptr %a", "  %p = getelementptr float, ptr %c, i64 4\n", "%a", "%p", "ptr %a, ptr noalias %p"),
        ("ptr noalias %c, ptr %a", "  %p = load ptr, ptr %a\n", "%p", "%c", "ptr %p, ptr %c"),
        ("ptr noalias %c, ptr %a", "  %p = select i1 true, ptr %a, ptr %c\n", "%p", "%c", "ptr %p, ptr %c"),
        ("ptr noalias %c, ptr %a", "  %p = getelementptr i8, ptr @g, i64 4\n", "%p", "%c", "ptr %p, ptr noalias %c"),
        ("ptr %c, ptr %a", "  %p = alloca [8 x float]\n", "%p", "%c", "ptr noalias %p, ptr %c"),
        ("ptr %c, ptr %a", "  %p = alloca [8 x float]\n  %q = getelementptr float, ptr %p, i64 1\n", "%p", "%q",
         "ptr %p, ptr %q"),
        ("ptr %c, ptr %a", "  %p = alloca [8 x float]\n  %q = alloca [8 x float]\n", "%p", "%q",
         "ptr noalias %p, ptr noalias %q"),
        ("ptr noalias %c, ptr %a", "  %p = getelementptr float, ptr %p, i64 4\n", "%p", "%c", "ptr %p, ptr %c"),
    ],
)  # fmt: skip
def test_attributes_of_inputs(parameters: str, before: str, a: str, c: str, inputs: str) -> None:
    piece = COPY.replace("%a", a).replace("%c", c)
    text = function(before, piece, piece, parameters=parameters, tail="@g = global i8 0\n")
    assert headers(text) == [f"define internal void @f.part({inputs}) nounwind {{"]


def test_regions_with_fewer_attributes_are_not_equal() -> None:
    text = function(COPY, COPY.replace("%a", "%p"), parameters="ptr noalias %c, ptr noalias %a")
    text = text.replace("entry:\n", "entry:\n  %p = getelementptr float, ptr %c, i64 4\n")
    assert [header.partition("(")[2] for header in headers(text)] == [
        "ptr noalias %a, ptr noalias %c) nounwind {",
        "ptr %p, ptr %c) nounwind {",
    ]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", "nounwind"),
        ("readonly willreturn local_unnamed_addr align 16", "nounwind"),
        ('nounwind noreturn optsize "a"="b c" "d"', 'nounwind optsize "a"="b c" "d"'),
        ('#0 "x"="y"', 'nounwind "x"="y" uwtable "target-features"="+avx2,+fma"'),
        ("#2", None),
        ("#3", None),
        ('"tlx-stage"="tiles"', None),
        ("memory(argmem: readwrite) comdat($f)", "nounwind"),
        ("!dbg !4", None),
        ("naked", None),
        ('gc "statepoint-example"', None),
        ("addrspace(1)", None),
    ],
)
def test_attributes_of_region_functions(attributes: str, expected: str | None) -> None:
    groups = 'attributes #0 = { readnone uwtable "target-features"="+avx2,+fma" }\nattributes #2 = { strictfp }\n'
    assert inherited_attributes(attributes, groups) == expected


def test_name_clashes() -> None:
    text = function(COPY, COPY).replace("%t0", "%entry0").replace("entry:\n", "").replace("%a", "%entry")
    text += "declare void @f.part()\n"
    text = str(parse(text, outline=True))
    assert "call void @f.part.1(ptr %entry, ptr %c)" in text
    assert "define internal void @f.part.1(ptr %entry, ptr %c) nounwind {\nentry.1:\n" in text


@pytest.mark.parametrize(("name", "part"), [('"a b"', "va.b.part"), ("f.g", "f.g.part"), ('"f"', "f.part")])
def test_any_name(name: str, part: str) -> None:
    assert [function.name for function in found(function(COPY, COPY).replace("@f", f"@{name}"))] == [part]


def test_arguments_without_names_are_counted_anew() -> None:
    piece = COPY.replace("%a", "%2").replace("%c", "%0")
    text = str(parse(function(piece, piece, parameters="ptr %0, ptr %1, ptr %2"), outline=True))
    assert text.count("call void @f.part(ptr %2, ptr %0)\n") == 2
    assert "define internal void @f.part(ptr %0, ptr %1) nounwind {\n" in text
    assert "(ptr elementtype(float) %0," in text
    assert "@llvm.tensor.store(ptr %1," in text


def test_functions_share_regions() -> None:
    text = function(COPY, COPY) + function(COPY, COPY).replace("@f", "@g")
    assert counts(text) == [3]
    assert "@g" in str(parse(text, outline=True))
    other = function(COPY, COPY) + function(COPY, COPY, attributes='"a"="b"').replace("@f", "@g")
    assert counts(other) == [1, 1]


def errors(text: str) -> tuple[str, int]:
    with pytest.raises(TlxError) as raised:
        lower_text(text, target="avx2")
    assert raised.value.span is not None
    return raised.value.message, raised.value.span.start


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("<i32 8>", "<i32 -8>"),  # in the parts
        ("ret void", "ret i32 0"),  # around them
        ("entry:\n", "entry:\n  %v = fadd float %a, 1.0\n"),
        ("ptr %c, ptr %a", "ptr %c, i64 %a"),
        ("token @llvm.tensor.load", "float @llvm.tensor.load"),
        ("%a", "%t1"),
    ],
)
def test_errors_are_those_of_the_whole_function(right: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = function(COPY, COPY).replace(right, wrong)
    with_parts = errors(text)
    monkeypatch.setattr(duplicates, "MIN_REGIONS", 100)
    assert with_parts == errors(text)


def test_remarks_count_the_regions() -> None:
    options = Options()
    text = function(COPY, COPY, COPY)
    lower_text(text, target="avx2", options=options)
    said = [remark for remark in options.remarks if "more copies" in remark.message]
    assert [remark.message for remark in said] == [
        "2 more copies of this region are calls to @f.part, which is lowered once"
    ]
    assert said[0].span is not None
    assert said[0].span.start == text.index("%t0")


def test_the_bench_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    text = different_sequence(64)
    assert counts(text) == [3] * 16
    assert not found(different_sequence(63))
    module = parse(text, outline=True)
    assert not needs_lowering(str(module.items[0]))
    assert isinstance(module, Module)
