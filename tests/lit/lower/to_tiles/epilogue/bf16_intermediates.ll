; With --bf16-intermediates=float an epilogue of bfloat operations is computed in float: the bias is extended, and only the
; result is rounded, not the product; the sigmoid is only multiplied, so that an error of 2^-14 is enough. A remark says
; so. By default each operation is rounded.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --bf16-intermediates=float | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --bf16-intermediates=exact | FileCheck %s --check-prefix=EXACT
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=EXACT
; RUN: tlx-lower %s -o /dev/null --target=avx512 --bf16-intermediates=float --remarks 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: tlx-lower %s -o /dev/null --target=avx512 --remarks 2>&1 | FileCheck %s --check-prefix=NONE --implicit-check-not="computed in float"
; RUN: tlx-lower %s -o /dev/null --target=amx --bf16-intermediates=float --check
; RUN: not tlx-lower %s -o /dev/null --bf16-intermediates=flaot 2>&1 | FileCheck %s --check-prefix=MISSPELT

; CHECK: define internal void @tlx.matmul.6x32x20.bf16.bf16.bf16.fused
; CHECK-NOT: fptrunc
; CHECK: %[[ROW:.*]] = call <32 x bfloat> @llvm.tensor.tovector
; CHECK: %[[BIAS:.*]] = fpext <32 x bfloat> %[[ROW]] to <32 x float>
; CHECK: %[[SUM:.*]] = fadd contract <32 x float> %{{.*}}, %[[BIAS]]
; CHECK: call token @llvm.tensor.typeinfo.v32f32.v2i32(<32 x float> %[[SUM]]
; CHECK: %[[SIGMOID:.*]] = call <32 x float> @llvm.tensor.sigmoid.v32f32(token %{{.*}}), !tlx.short
; CHECK: %[[RESULT:.*]] = fmul contract <32 x float> %[[SUM]], %[[SIGMOID]]
; CHECK-NEXT: %[[ROUNDED:.*]] = fptrunc <32 x float> %[[RESULT]] to <32 x bfloat>
; CHECK: typeinfo.v32bf16.v2i32(<32 x bfloat> %[[ROUNDED]]
; CHECK: call void @llvm.tensor.store
; CHECK: define internal void @tlx.map.1x192.bf16.1(
; CHECK: @llvm.tensor.tanh.v{{[0-9]+}}f32(token %{{[^,]*}}){{$}}

; 1 + tanh u is 2 sigmoid(2 u), in which nothing cancels; the halved result is the sigmoid itself, and u = 3/4 x is doubled
; by its constant.
; CHECK: define internal void @tlx.map.1x192.bf16.2(
; CHECK: fmul contract <[[N:[0-9]+]] x float> %{{.*}}, <float {{(1.5|0x3FF8)}}
; CHECK: %[[GATE:.*]] = call <[[N]] x float> @llvm.tensor.sigmoid.v[[N]]f32(token %{{.*}}), !tlx.short !{}, !tlx.no_subnormals !{}
; CHECK-NEXT: fmul contract <[[N]] x float> %{{.*}}, %[[GATE]]

; So is that of a halved factor: x / 2 * (1 + tanh x) is x sigmoid(2 x).
; CHECK: define internal void @tlx.map.1x192.bf16.3(
; CHECK: %[[X:.*]] = fpext <[[N:[0-9]+]] x bfloat>
; CHECK: fmul contract <[[N]] x float> %[[X]], <float {{(2|0x4000000)}}
; CHECK: %[[GATE:.*]] = call <[[N]] x float> @llvm.tensor.sigmoid
; CHECK-NEXT: fmul contract <[[N]] x float> %[[X]], %[[GATE]]
; CHECK-NEXT: fptrunc

; CHECK: define internal void @tlx.map.1x192.bf16.4(
; CHECK: @llvm.tensor.sigmoid.v{{[0-9]+}}f32(token %{{[^,]*}}), !tlx.absolute !{}

; EXACT: fadd <32 x bfloat>
; EXACT: @llvm.tensor.sigmoid.v32bf16
; EXACT: fmul <32 x bfloat>
; EXACT-NOT: fpext

; REMARK: remark: bfloat expression computed in float: not rounded after product, fadd, sigmoid [to-tiles]
; REMARK-NEXT: %r = fmul
; A single operation is rounded either way, and so is one of which only the sign or the larger one is taken.
; REMARK: remark: bfloat expression computed in float: not rounded after tanh [to-tiles]
; REMARK: remark: bfloat expression computed in float: not rounded after fmul, tanh, fadd, fmul [to-tiles]
; REMARK: remark: bfloat expression computed in float: not rounded after fmul, tanh, fadd [to-tiles]
; REMARK: remark: bfloat expression computed in float: not rounded after tanh, fadd [to-tiles]
; REMARK-NOT: computed in float
; NONE: remark: fused
; MISSPELT: error: {{.*}}'flaot' is not one of 'exact', 'float'{{.*}}float

define void @f(ptr noalias %c, ptr %a, ptr %b, ptr %bias) {
  %ta = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 6, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %tb = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 20, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <192 x bfloat> @llvm.tensor.matmul(token %ta, token %tb)
  %tx = call token @llvm.tensor.load(ptr elementtype(bfloat) %bias, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %vx = call <192 x bfloat> @llvm.tensor.broadcast(token %tx, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>)
  %sum = fadd <192 x bfloat> %m, %vx
  %t = call token @llvm.tensor.typeinfo(<192 x bfloat> %sum, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %s = call <192 x bfloat> @llvm.tensor.sigmoid(token %t)
  %r = fmul <192 x bfloat> %sum, %s
  %u = call token @llvm.tensor.typeinfo(<192 x bfloat> %r, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}

define void @once(ptr noalias %c, ptr %a, ptr %b) {
  %ta = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %x = call <192 x bfloat> @llvm.tensor.tovector(token %ta)
  %tb = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call <192 x bfloat> @llvm.tensor.tovector(token %tb)
  %sum = fadd <192 x bfloat> %x, %y
  %larger = call <192 x bfloat> @llvm.maximum.v192bf16(<192 x bfloat> %sum, <192 x bfloat> %y)
  %minus = fneg <192 x bfloat> %larger
  %u = call token @llvm.tensor.typeinfo(<192 x bfloat> %minus, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}

; The sum may cancel.
define void @sum(ptr noalias %c, ptr %a) {
  %ta = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %x = call <192 x bfloat> @llvm.tensor.tanh(token %ta)
  %y = fadd <192 x bfloat> %x, splat (bfloat 0xR3F00)
  %u = call token @llvm.tensor.typeinfo(<192 x bfloat> %y, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}

define void @gate(ptr noalias %c, ptr %a) {
  %ta = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %x = call <192 x bfloat> @llvm.tensor.tovector(token %ta)
  %u = fmul <192 x bfloat> %x, splat (bfloat 0xR3F40)
  %tu = call token @llvm.tensor.typeinfo(<192 x bfloat> %u, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %tanh = call <192 x bfloat> @llvm.tensor.tanh(token %tu)
  %sum = fadd <192 x bfloat> splat (bfloat 0xR3F80), %tanh
  %half = fmul <192 x bfloat> %sum, splat (bfloat 0xR3F00)
  %y = fmul <192 x bfloat> %x, %half
  %ty = call token @llvm.tensor.typeinfo(<192 x bfloat> %y, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %ty, <2 x i32> zeroinitializer)
  ret void
}

define void @halved(ptr noalias %c, ptr %a) {
  %ta = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %x = call <192 x bfloat> @llvm.tensor.tovector(token %ta)
  %half = fmul <192 x bfloat> %x, splat (bfloat 0xR3F00)
  %tanh = call <192 x bfloat> @llvm.tensor.tanh(token %ta)
  %sum = fadd <192 x bfloat> %tanh, splat (bfloat 0xR3F80)
  %y = fmul <192 x bfloat> %half, %sum
  %ty = call token @llvm.tensor.typeinfo(<192 x bfloat> %y, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %ty, <2 x i32> zeroinitializer)
  ret void
}

; What is subtracted may be near 1 + tanh u, whose error is that of the sum of floats.
define void @cancels(ptr noalias %c, ptr %a) {
  %ta = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %x = call <192 x bfloat> @llvm.tensor.tovector(token %ta)
  %tanh = call <192 x bfloat> @llvm.tensor.tanh(token %ta)
  %sum = fadd <192 x bfloat> %tanh, splat (bfloat 0xR3F80)
  %y = fsub <192 x bfloat> %sum, %x
  %ty = call token @llvm.tensor.typeinfo(<192 x bfloat> %y, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %ty, <2 x i32> zeroinitializer)
  ret void
}
