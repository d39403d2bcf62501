"""Version 1 of the language: its grammar, and the conversion to version 2.

A text is parsed by its own grammar into the instructions of `tree`, within the functions and regions of the common
tree; `convert` then turns them into instructions of version 2, with one rule for each instruction.

    parser, grammar                 programs and functions; instructions and types
    tree                            its instructions, and why they differ from the common tree
    convert                         programs and functions; scopes, fresh names, and the writer of instructions
    instructions                    a rule for each instruction

    version 1                                       version 2

    %t = alloca -> memref<f32x16x8>                 %t = alloca : memref<f32x16x8,local>
    %g = group_id                                   %g = group_id.x : index
    %a = load %A[%g] : group<memref<f32x16x8>>      %a = load %A[%g] : memref<f32x16x8>
    %v = subview %t[:,0] : memref<f32x16x8>         %v = subview %t[0:16,0] : memref<f32x16,local>
    gemm.n.t.atomic 1.0, %a, %B, 1.0, %C : ...      %c1_f32 = constant 1.0 : f32
                                                    gemm.atomic.n.t %c1_f32, %a, %B, %c1_f32, %C
    %c = cmp.lt %i, %n : index                      %c = less_than %i, %n : bool
    foreach %i=%g,%n { ... }                        foreach (%i)=(%g),(%n) { ... }
    barrier                                         barrier.global.local
    work_group_size(16,2) subgroup_size(16)         attributes {work_group_size=[16,2], subgroup_size=16}
    group<memref<f32x16x8>>                         group<memref<f32x16x8>x?>, and the function does not get the size

Version 1 writes the types of operands, version 2 those of results: the former are checked against the operands, the
latter follow from them. What version 2 cannot express is an error with a suggestion.
"""
