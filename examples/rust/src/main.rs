//! Calls the kernel and compares it with loops.

extern "C" {
    fn dense(y: &mut [f32; 64 * 32], x: &[f32; 64 * 128], w: &[f32; 128 * 32]);
}

fn main() {
    let mut x = [0.0; 64 * 128];
    let mut w = [0.0; 128 * 32];
    let mut y = [0.0; 64 * 32];
    x.iter_mut().enumerate().for_each(|(i, v)| *v = (i % 7) as f32 - 3.0);
    w.iter_mut().enumerate().for_each(|(i, v)| *v = (i % 5) as f32 - 2.0);
    unsafe { dense(&mut y, &x, &w) };
    for i in 0..64 {
        for j in 0..32 {
            let sum: f32 = (0..128).map(|k| x[128 * i + k] * w[32 * k + j]).sum();
            assert_eq!(y[32 * i + j], sum.max(0.0), "row {i}, column {j}");
        }
    }
    println!("all {} elements agree", y.len());
}
