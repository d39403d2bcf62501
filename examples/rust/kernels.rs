//! Kernels: calls of tensor operations, which `tlx-lower` compiles.

#![no_std]

/// A flattened tensor of `N` floats.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct Tensor<const N: usize>([f32; N]);

/// An integer for each of two dimensions: a shape, a layout, a padding, pitches.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dims([i32; 2]);

const ROWS: Dims = Dims([0, 1]);
const DENSE: Dims = Dims([0, 0]);

/// The type of an operation's elements stands after its name: rustc passes a tensor as bytes.
extern "C" {
    fn tensor_load_f32(pointer: *const f32, shape: Dims, layout: Dims, padding: Dims, pitches: Dims) -> i32;
    fn tensor_typeinfo_f32(tensor: Tensor<2048>, shape: Dims, layout: Dims, padding: Dims) -> i32;
    fn tensor_store_f32(pointer: *mut f32, token: i32, pitches: Dims);
    fn tensor_matmul_f32_64x32(a: i32, b: i32) -> Tensor<2048>;
    fn tensor_relu_f32_64x32(a: i32) -> Tensor<2048>;
}

/// `y = relu(x w)`, 64x32 = 64x128 128x32.
#[no_mangle]
pub unsafe extern "C" fn dense(y: &mut [f32; 64 * 32], x: &[f32; 64 * 128], w: &[f32; 128 * 32]) {
    let shape = Dims([64, 32]);
    let a = tensor_load_f32(x.as_ptr(), Dims([64, 128]), ROWS, DENSE, DENSE);
    let b = tensor_load_f32(w.as_ptr(), Dims([128, 32]), ROWS, DENSE, DENSE);
    let product = tensor_typeinfo_f32(tensor_matmul_f32_64x32(a, b), shape, ROWS, DENSE);
    let positive = tensor_typeinfo_f32(tensor_relu_f32_64x32(product), shape, ROWS, DENSE);
    tensor_store_f32(y.as_mut_ptr(), positive, DENSE);
}
