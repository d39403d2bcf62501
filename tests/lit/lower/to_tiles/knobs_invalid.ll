; Knobs that do not fit are errors at the entry of a file, with a note at the product; the message says what would fit.
;
; RUN: split-file %s %t
; RUN: not tlx-lower %t/a.ll --target=avx512 --tile=12x48 2>&1 | FileCheck %s --check-prefix=REGISTERS --match-full-lines
; REGISTERS: tlx-lower: error: tile 12x48 needs 40 registers, and avx512 has 32; use 12x32 or 9x48
; REGISTERS: {{.*}}a.ll:4:3: note: for matmul 24x96x60 float
; RUN: not tlx-lower %t/a.ll --target=avx512 --tile=8x40 2>&1 | FileCheck %s --check-prefix=LANES
; LANES: tlx-lower: error: tile 8x40: columns must fill whole registers of 16 elements; use 8x32 or 8x48
; RUN: not tlx-lower %t/a.ll --tile=8 2>&1 | FileCheck %s --check-prefix=FORM
; FORM: tlx-lower: error: tile '8' is not of the form ROWSxCOLUMNS, such as 8x48
; RUN: not tlx-lower %t/a.ll --knobs=kc=0 2>&1 | FileCheck %s --check-prefix=BLOCK
; BLOCK: tlx-lower: error: kc=0: a block has 1 to {{[0-9]+}} rows or columns
; RUN: not tlx-lower %t/a.ll --knobs=kc=8,kd=3 2>&1 | FileCheck %s --check-prefix=NAME
; NAME: tlx-lower: error: unknown knob 'kd'; choose from tile, kc, mc, nc, pack_a, pack_b, ahead
; RUN: not tlx-lower %t/a.ll --knobs=kc=8,pack_a=true,kc=16 2>&1 | FileCheck %s --check-prefix=AGAIN
; AGAIN: tlx-lower: error: kc is given twice: 8 and 16
; RUN: not tlx-lower %t/a.ll --tuned=%t/none.json 2>&1 | FileCheck %s --check-prefix=DATABASE
; DATABASE: tlx-lower: error: no tuning database '{{.*}}none.json'; 'tlx tune --database={{.*}}none.json' would write it
; RUN: not tlx-lower %t/a.ll --target=avx512 --knobs=mc=2 2>&1 | FileCheck %s --check-prefix=SMALL
; SMALL: tlx-lower: error: mc=2: a block holds at least one register tile of {{[0-9]+x[0-9]+}}
; RUN: not tlx-lower %t/a.ll --target=avx512 --knobs=%t/none.toml 2>&1 | FileCheck %s --check-prefix=NONE
; NONE: tlx-lower: error: could not open input file '{{.*}}none.toml'
; RUN: not tlx-lower %t/a.ll --target=avx512 --knobs=%t/large.toml 2>&1 | FileCheck %s --check-prefix=ENTRY
; ENTRY: {{.*}}large.toml:2:2: error: tile 30x48 needs 94 registers, and avx512 has 32
; ENTRY-NEXT: ["matmul *"]
; ENTRY-NEXT: {{^}} ^~~~~~~~~~
; ENTRY-NEXT: {{.*}}a.ll:4:3: note: for matmul 24x96x60 float
; RUN: not tlx-lower %t/a.ll --knobs=%t/syntax.toml 2>&1 | FileCheck %s --check-prefix=SYNTAX
; SYNTAX: {{.*}}syntax.toml:2:6: error: invalid value
; RUN: not tlx-lower %t/a.ll --knobs=%t/key.json 2>&1 | FileCheck %s --check-prefix=KEY
; KEY: {{.*}}key.json:2:4: error: unknown knob 'tiles'
; RUN: not tlx-lower %t/a.ll --knobs=%t/truth.toml 2>&1 | FileCheck %s --check-prefix=TRUTH
; TRUTH: {{.*}}truth.toml:2:1: error: kc is a number, not 'true'
; RUN: not tlx-lower %t/a.ll --knobs=%t/twice.json 2>&1 | FileCheck %s --check-prefix=TWICE
; TWICE: {{.*}}twice.json:2:2: error: duplicate key 'matmul *'
; RUN: not tlx-lower %t/a.ll --knobs=%t/words.toml 2>&1 | FileCheck %s --check-prefix=WORDS
; WORDS: {{.*}}words.toml:1:2: error: no product contains the word 'f32'; write f32 as 'float'
; RUN: not tlx-lower %t/a.ll --knobs= 2>&1 | FileCheck %s --check-prefix=EMPTY
; EMPTY: tlx-lower: error: --knobs= is empty; write NAME=VALUE,... or the name of a file
; REQUIRES: split-file

;--- a.ll
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 24, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 60, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <2304 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<2304 x float> %m, <2 x i32> <i32 24, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

;--- large.toml
# no machine has that many
["matmul *"]
tile = "30x48"

;--- syntax.toml
["matmul *"]
kc = x8

;--- key.json
{"matmul *":
  {"tiles": "8x48"}}

;--- twice.json
{"matmul *": {},
 "matmul *": {}}

;--- truth.toml
["matmul *"]
kc = true

;--- words.toml
["matmul 24x96x60 f32"]
kc = 8
