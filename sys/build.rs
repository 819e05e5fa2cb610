fn main() {
    for (lib, pc) in [("ibverbs", "libibverbs"), ("rdmacm", "librdmacm")] {
        if pkg_config::probe_library(pc).is_err() {
            println!("cargo:rustc-link-lib={lib}");
        }
    }
}
