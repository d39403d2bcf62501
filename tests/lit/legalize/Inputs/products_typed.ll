; Products of every element type with edges in every dimension, column-major operands, an accumulator, and one whose
; panels come from the heap; with the pointers of LLVM 14.

define void @f32(float* noalias %c, float* %a, float* %b) {
  %lhs = call token @llvm.tensor.load(float* %a, <2 x i32> <i32 7, i32 11>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(float* %b, <2 x i32> <i32 11, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x float> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @bf16(bfloat* noalias %c, bfloat* %a, bfloat* %b) {
  %lhs = call token @llvm.tensor.load(bfloat* %a, <2 x i32> <i32 7, i32 11>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(bfloat* %b, <2 x i32> <i32 11, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x bfloat> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x bfloat> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(bfloat* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @bf16_f32(float* noalias %c, bfloat* %a, bfloat* %b) {
  %lhs = call token @llvm.tensor.load(bfloat* %a, <2 x i32> <i32 7, i32 11>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(bfloat* %b, <2 x i32> <i32 21, i32 11>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x float> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @f16(half* noalias %c, half* %a, half* %b) {
  %lhs = call token @llvm.tensor.load(half* %a, <2 x i32> <i32 7, i32 11>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(half* %b, <2 x i32> <i32 11, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x half> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x half> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(half* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @f16_f32(float* noalias %c, half* %a, half* %b) {
  %lhs = call token @llvm.tensor.load(half* %a, <2 x i32> <i32 11, i32 7>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(half* %b, <2 x i32> <i32 11, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x float> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @s8(i32* noalias %c, i8* %a, i8* %b) {
  %lhs = call token @llvm.tensor.load(i8* elementtype(i8) %a, <2 x i32> <i32 7, i32 11>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(i8* elementtype(i8) %b, <2 x i32> <i32 11, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x i32> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(i32* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @u8(i32* noalias %c, i8* %a, i8* %b) {
  %acc = call token @llvm.tensor.load(i32* %c, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(i8* elementtype(i8) %a, <2 x i32> <i32 7, i32 11>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(i8* elementtype(i8) %b, <2 x i32> <i32 11, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x i32> @llvm.tensor.umma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x i32> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(i32* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @f64(double* noalias %c, double* %a, double* %b) {
  %lhs = call token @llvm.tensor.load(double* %a, <2 x i32> <i32 7, i32 11>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(double* %b, <2 x i32> <i32 11, i32 21>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <147 x double> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<147 x double> %m, <2 x i32> <i32 7, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(double* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @heap(float* noalias %c, bfloat* %a, bfloat* %b) {
  %lhs = call token @llvm.tensor.load(bfloat* %a, <2 x i32> <i32 40, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(bfloat* %b, <2 x i32> <i32 64, i32 500>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <20000 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<20000 x float> %m, <2 x i32> <i32 40, i32 500>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @i64(i64* noalias %c, i64* %a, i64* %b) {
  %lhs = call token @llvm.tensor.load(i64* %a, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(i64* %b, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x i64> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16 x i64> %m, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(i64* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
