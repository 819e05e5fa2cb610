//! Tells the linker where libibverbs and librdmacm are. No headers, no compiler, no code
//! generation.

use std::env;

/// A folder that holds the libraries (or the linker's names for them). Set, it replaces pkg-config.
const LIB_DIR: &str = "RPMA_SYS_LIB_DIR";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={LIB_DIR}");
    println!("cargo:rerun-if-env-changed=DOCS_RS");
    // Documentation is built without linking, on machines that have no RDMA libraries.
    if env::var_os("DOCS_RS").is_some() {
        return;
    }
    let lib_dir = env::var_os(LIB_DIR);
    if let Some(dir) = &lib_dir {
        println!("cargo:rustc-link-search=native={}", dir.to_string_lossy());
    }
    for name in ["ibverbs", "rdmacm"] {
        let found = lib_dir.is_none() && pkg_config::probe_library(&format!("lib{name}")).is_ok();
        if !found {
            // No pkg-config, or no .pc file: the linker's own search path decides.
            println!("cargo:rustc-link-lib={name}");
        }
    }
}
