// SPDX-License-Identifier: Apache-2.0
//! Where libtrine is: in TRINE_LIB_DIR, else where pkg-config says, else where the linker looks by itself.
use std::env;
use std::process::Command;

fn main() {
    for variable in ["TRINE_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={}", variable);
    }
    if let Ok(folder) = env::var("TRINE_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder);
        return;
    }
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    if let Ok(said) = Command::new(program).args(["--libs-only-L", "trine"]).output() {
        for word in String::from_utf8_lossy(&said.stdout).split_whitespace() {
            println!("cargo:rustc-link-search=native={}", word.trim_start_matches("-L"));
        }
    }
}
