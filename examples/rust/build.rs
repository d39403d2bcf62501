//! Compiles `kernels.rs` with rustc and `tlx-lower`, and links it into the program.
//!
//!     rustc --emit=llvm-ir    kernels.rs -> kernels.ll     calls of tensor_...
//!     tlx-lower --emit=obj    kernels.ll -> kernels.o      machine code
//!     ar                      kernels.o  -> libkernels.a
//!
//! `TLX_LOWER` names another `tlx-lower`, and `TLX_TARGET` the targets; without it the code is for this machine.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

fn variable(name: &str, default: &str) -> String {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).unwrap_or_else(|_| default.to_string())
}

fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) {
    match Command::new(program).args(arguments).status() {
        Ok(status) if status.success() => (),
        Ok(status) => panic!("{program}: {status}"),
        Err(error) => panic!("{program}: {error}"),
    }
}

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
    let source = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("kernels.rs");
    let (target, rustc) = (env::var("TARGET").unwrap(), env::var("RUSTC").unwrap());
    println!("cargo:rerun-if-changed={}", source.display());

    let file = |name: &str| out.join(name).to_str().unwrap().to_string();
    let (ir, object, library) = (file("kernels.ll"), file("kernels.o"), file("libkernels.a"));
    let module = ["--crate-type=lib", "--emit=llvm-ir", "-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1"];
    let source = source.to_str().unwrap();
    run(&rustc, &[&module[..], &["--edition=2021", "--target", &target, source, "-o", &ir]].concat());

    let machine = format!("--target={}", variable("TLX_TARGET", "native"));
    run(&variable("TLX_LOWER", "tlx-lower"), &["--emit=obj", "-O2", &machine, &ir, "-o", &object]);
    run(&variable("AR", "ar"), &["crs", &library, &object]);
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=kernels");
}
