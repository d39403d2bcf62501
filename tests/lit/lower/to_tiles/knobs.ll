; Tile, cache blocks and packing come from the options, or from a file by patterns; the first matching pattern applies.
;
; RUN: split-file %s %t
; RUN: tlx-lower %t/a.ll -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=MODEL
; RUN: tlx-lower %t/a.ll -o - --target=avx512 --stop-after=to-tiles --tile=4x32 | FileCheck %s --check-prefix=TILE
; RUN: tlx-lower %t/a.ll -o - --target=avx512 --stop-after=to-tiles --knobs=%t/k.toml | FileCheck %s --check-prefix=TILE
; RUN: tlx-lower %t/a.ll -o - --target=avx512 --stop-after=to-tiles --knobs=%t/k.json | FileCheck %s --check-prefix=TILE
; RUN: tlx-lower %t/a.ll -o - --target=avx2 --stop-after=to-tiles --knobs=%t/k.toml | FileCheck %s --check-prefix=AVX2
; RUN: tlx-lower %t/a.ll -o /dev/null --target=avx512 --tile=4x32 --remarks 2>&1 | FileCheck %s --check-prefix=OPTION
; RUN: tlx-lower %t/a.ll -o /dev/null --target=avx512 --tile=4x32 --knobs=kc=20,pack_b=true --remarks 2>&1 | FileCheck %s --check-prefix=BOTH
; RUN: tlx-lower %t/a.ll -o /dev/null --target=avx512 --knobs=%t/k.toml --remarks 2>&1 | FileCheck %s --check-prefix=FILE
; REQUIRES: split-file
;
; A register tile is a vector of its elements:
; MODEL: phi <384 x float>
; TILE-NOT: phi <384 x float>
; TILE: phi <128 x float>
; AVX2: phi <8 x float>
;
; OPTION: remark: matmul 24x96x60 float: {{.*}}, register tile 4x32, nothing packed, {{.*}}; tile=4x32 from --tile [to-tiles]
; BOTH: , register tile 4x32, packed B, blocks M 24, N 96, K 20; {{.*}}; tile=4x32,kc=20,pack_b=true from --tile and --knobs [to-tiles]
; FILE: , register tile 4x32, {{.*}}; tile=4x32 from {{.*}}k.toml, line 6 [to-tiles]
; FILE: k.toml:1:2: remark: no product matches 'matmul * bfloat'; there are matmul 24x96x60 float [to-tiles]
; FILE: k.toml:3:2: remark: no product matches 'avx2: matmul * float'
; FILE: k.toml:8:2: remark: no product matches 'matmul *'

;--- a.ll
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 24, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 60, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <2304 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<2304 x float> %m, <2 x i32> <i32 24, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

;--- k.toml
["matmul * bfloat"]
tile = "8x48"
["avx2: matmul * float"]
tile = "1x8"

["matmul 24x*x?0 float"]
tile = "4x32"
["matmul *"]
tile = "1x16"

;--- k.json
{"matmul *": {"tile": "4x32"}}
