declare <3 x float> @llvm.convert.from.arbitrary.fp.v3f32.v3i8(<3 x i8>, metadata)

define void @widen(ptr %x, ptr %y) {
  %bytes = load <3 x i8>, ptr %x
  %wide = call <3 x float> @llvm.convert.from.arbitrary.fp.v3f32.v3i8(<3 x i8> %bytes, metadata !"Float8E4M3FN")
  store <3 x float> %wide, ptr %y
  ret void
}
