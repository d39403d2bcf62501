; A module without tensor operations is output byte for byte, odd spelling included.
;
; RUN: tlx-lower %s | cmp - %s
; RUN: tlx-lower --no-verify-each %s | cmp - %s
; RUN: tlx-lower --target=avx2 %s -o %t && cmp %t %s
; RUN: %python -c "import sys; d = open(sys.argv[1], 'rb').read(); open(sys.argv[2], 'wb').write(d.replace(b'\n', b'\r\n'))" %s %t.crlf
; RUN: tlx-lower %t.crlf | cmp - %t.crlf
; RUN: %python -c "import sys; d = open(sys.argv[1], 'rb').read(); open(sys.argv[2], 'wb').write(d.rstrip())" %s %t.cut
; RUN: tlx-lower %t.cut | cmp - %t.cut

source_filename = "é ; { } \22"
%"a type" = type <{ i8,i32   }>
@"a global"=private   unnamed_addr constant [4 x i8] c"{;}\00", align 1

define	i32 @f ( i32 %0 ) #0
{
  ; a comment with a brace }
  %2 = add nsw i32 %0, 1		; { another
  ret i32 %2
}

attributes #0 = { nounwind "a;}"="{" }
!0 = !{!"}"}
