"""
Contractions of dense arrays, compiled by `tlx-lower`.

    @tensor C[i, j] = A[i, k] * B[k, j]

The IR of a contraction is `contract.ll` with the shapes filled in; `tlx-lower` compiles it once for each combination of
types and shapes, and `Base.llvmcall` calls it. `library` makes a shared object instead, for `ccall`.
"""
module TLX

export @tensor, contract!, library

const TEMPLATE = read(joinpath(@__DIR__, "contract.ll"), String)
const TYPES = Dict(Float16 => "half", Float32 => "float", Float64 => "double")

"Whether this Julia's LLVM has opaque pointers: that of Julia 1.12 and newer."
const OPAQUE = VERSION >= v"1.12-"

list(values) = join(("i32 $value" for value in values), ", ")

"""
The IR of `C = A * B`.

Indices are tuples of symbols, shapes those of Julia: the first index is contiguous, so it is the last one of a tensor in
memory. The product has the indices of `A` that stay, then those of `B`, and is row-major; it is transposed to the layout of `C`.
"""
function contraction(T, c, a, b, shape_a, shape_b; opaque = OPAQUE)
    sums = [index for index in a if index in b]
    product = [index for index in [a..., b...] if !(index in sums)]
    sizes = Dict([(a .=> shape_a)..., (b .=> shape_b)...])
    shape_c = [sizes[index] for index in c]
    isempty(sums) && throw(ArgumentError("no index of $a is summed over"))
    all(allunique, (a, b, c)) || throw(ArgumentError("an array has an index twice"))
    sort(product) == sort(collect(c)) || throw(ArgumentError("the product has the indices $product, the result $c"))
    type = TYPES[T]
    # Shapes and layouts list dimensions from the outermost to the innermost, which is Julia's first one.
    columns(rank) = list(rank-1:-1:0)
    values = [
        "POINTER" => opaque ? "ptr" : "$type*",
        "ELEMENTTYPE" => opaque ? "elementtype($type)" : "",
        "TYPE" => type,
        "RANK_A" => length(a), "SHAPE_A" => list(reverse(shape_a)), "LAYOUT_A" => columns(length(a)),
        "RANK_B" => length(b), "SHAPE_B" => list(reverse(shape_b)), "LAYOUT_B" => columns(length(b)),
        "RANK_C" => length(c), "SHAPE_C" => list(reverse(shape_c)),
        "LAYOUT_C" => list(findfirst(==(index), product) - 1 for index in reverse(c)),
        "SHAPE_P" => list(sizes[index] for index in product), "LAYOUT_P" => list(0:length(c)-1),
        "COUNT" => prod(shape_c), "SUMS" => length(sums),
        "AXES_A" => list(findfirst(==(index), a) - 1 for index in sums),
        "AXES_B" => list(findfirst(==(index), b) - 1 for index in sums),
    ]
    return replace(TEMPLATE, ("{$name}" => string(value) for (name, value) in values)...)
end

"The output of `tlx-lower` for IR."
lower(ir, options = ``) = read(pipeline(`tlx-lower $options -`; stdin = IOBuffer(ir)), String)

"""
    contract!(C, A, B, c, a, b)

Store the contraction of `A` and `B` in `C`; `c`, `a` and `b` are `Val`s of tuples of symbols.
"""
function contract!(C::Array{T}, A::Array{T}, B::Array{T}, ::Val{c}, ::Val{a}, ::Val{b}) where {T, c, a, b}
    sizes = Dict([(a .=> size(A))..., (b .=> size(B))...])
    size(C) == map(index -> sizes[index], c) || throw(DimensionMismatch("the result has the size $(size(C))"))
    GC.@preserve C A B call(Val(c), Val(a), Val(b), Val(size(A)), Val(size(B)), pointer(C), pointer(A), pointer(B))
    return C
end

@generated function call(
    ::Val{c}, ::Val{a}, ::Val{b}, ::Val{shape_a}, ::Val{shape_b}, C::Ptr{T}, A::Ptr{T}, B::Ptr{T}
) where {c, a, b, shape_a, shape_b, T}
    ir = lower(contraction(T, c, a, b, shape_a, shape_b))
    return :(Base.llvmcall(($ir, "entry"), Cvoid, Tuple{Ptr{T}, Ptr{T}, Ptr{T}}, C, A, B))
end

"""
    library(path, T, c, a, b, shape_a, shape_b)

Compile a contraction into a shared object. Its function takes `C`, `A` and `B`:

    const gemm = library("gemm.so", Float32, (:i, :j), (:i, :k), (:k, :j), (64, 128), (128, 32))
    ccall((:kernel, gemm), Cvoid, (Ptr{Float32}, Ptr{Float32}, Ptr{Float32}), C, A, B)
"""
function library(path, T, c, a, b, shape_a, shape_b)
    object = tempname() * ".o"
    ir = contraction(T, c, a, b, shape_a, shape_b; opaque = true)
    run(pipeline(`tlx-lower --emit=obj -O2 -o $object -`; stdin = IOBuffer(ir)))
    run(`cc -shared $object -o $path`)
    return abspath(path)
end

"""
    @tensor C[i, j] = A[i, k] * B[k, j]

Contract two arrays over the indices that both have, into an existing array.
"""
macro tensor(statement)
    shape = statement isa Expr && statement.head === :(=) ? statement.args[2] : nothing
    valid = shape isa Expr && shape.head === :call && shape.args[1] === :* && length(shape.args) == 3
    valid || error("expected C[i, j] = A[i, k] * B[k, j], got $statement")
    references = [statement.args[1], shape.args[2:3]...]
    all(r -> r isa Expr && r.head === :ref, references) || error("expected arrays with indices in $statement")
    arrays = [esc(r.args[1]) for r in references]
    indices = [:(Val($(Tuple(r.args[2:end])))) for r in references]
    return :(contract!($(arrays...), $(indices...)))
end

end
