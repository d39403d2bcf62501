; IR of LLVM 5 to 14 is output unchanged, too: typed pointers, and syntax that current LLVM cannot read.
;
; RUN: tlx-lower %s | cmp - %s
; RUN: tlx verify %s | count 0

%struct.S = type { i32, i8* }
@table = constant { [3 x i8*] } zeroinitializer

define void @f(%struct.S* noalias sret %out, %struct.S* byval align 8 %x, i32 (i8*)* %g, i8 addrspace(1)* %h) argmemonly {
  %p = getelementptr inbounds %struct.S, %struct.S* %x, i32 0, i32 1
  %q = load i8*, i8** %p
  %n = call i32 %g(i8* %q)
  store i8** getelementptr inbounds ({ [3 x i8*] }, { [3 x i8*] }* @table, i32 0, inrange i32 0, i32 2), i8*** undef
  call void @llvm.memset.p0i8.i64(i8* %q, i8 0, i64 4, i1 false)
  br i1 icmp ne (i32 (i8*)* @hook, i32 (i8*)* null), label %called, label %done

called:
  %m = call i32 @hook(i8* %q)
  br label %done

done:
  ret void
}

declare extern_weak i32 @hook(i8*)

declare void @llvm.memset.p0i8.i64(i8* nocapture writeonly, i8, i64, i1)
