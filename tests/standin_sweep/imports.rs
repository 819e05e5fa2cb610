//! The functions that the crate calls: those that this program imports, and the entries of
//! operations tables that the source names.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

/// Functions that cannot fail: they give nothing, or have no way to say so.
const INFALLIBLE: [&str; 19] = [
    "ibv_ack_async_event",
    "ibv_ack_cq_events",
    "ibv_event_type_str",
    "ibv_get_device_name",
    "ibv_node_type_str",
    "ibv_port_state_str",
    "ibv_query_qp_data_in_order",
    "ibv_qp_to_qp_ex",
    "ibv_wc_status_str",
    "ibv_wr_abort",
    "ibv_wr_start",
    "rdma_destroy_ep",
    "rdma_destroy_event_channel",
    "rdma_destroy_qp",
    "rdma_event_str",
    "rdma_free_devices",
    "rdma_freeaddrinfo",
    "rdma_get_dst_port",
    "rdma_get_src_port",
];

/// Those that can fail, which some scenario has to make fail.
///
/// `crate_src` is the folder of the crate's source.
pub fn used(crate_src: &Path) -> Vec<String> {
    let mut names = imported();
    names.extend(in_source(crate_src));
    names
        .into_iter()
        .map(|name| match name.as_str() {
            // The macro of C's header, and what it calls.
            "ibv_reg_mr_iova2" | "ibv_reg_mr_iova" => "ibv_reg_mr".to_owned(),
            "ibv_query_gid_table" => "_ibv_query_gid_table".to_owned(),
            _ => name,
        })
        .filter(|name| !INFALLIBLE.contains(&name.as_str()))
        .filter(|name| !elsewhere(name))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The builders of extended work requests give nothing: what is wrong with them `ibv_wr_complete`
/// says. The older query is called where the newer one has failed: `tests/standin_failures.rs`
/// fails both.
fn elsewhere(name: &str) -> bool {
    (name.starts_with("ibv_wr_") && name != "ibv_wr_complete") || name == "ibv_query_device"
}

/// The dynamic symbols of this program that another library defines.
fn imported() -> BTreeSet<String> {
    let this = std::env::current_exe().expect("the path of this program");
    let out = Command::new("nm")
        .args(["-D", "--undefined-only"])
        .arg(this)
        .output();
    let Ok(out) = out else {
        println!("SKIP: imports: no nm (binutils)");
        return BTreeSet::new();
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let names: BTreeSet<_> = text
        .split_whitespace()
        .map(|word| word.split('@').next().unwrap_or(word))
        .filter(|word| is_foreign(word))
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 20, "this program imports more: {names:?}");
    names
}

/// What the crate's source calls through `ffi`. EFA's part has a device and tests of its own.
fn in_source(crate_src: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders = vec![crate_src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the source of the crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "efa") {
                    folders.push(path);
                }
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source file");
            // Examples in comments call methods, which are no operations of C's tables.
            let code = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            let text = code.collect::<Vec<_>>().join("\n");
            for part in text.split("ffi::").skip(1) {
                let name: String = part
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                let called = part[name.len()..].starts_with('(');
                if called && is_foreign(&name) {
                    names.insert(name);
                }
            }
            for part in text
                .split("ops.")
                .skip(1)
                .filter(|part| !part.starts_with("rs"))
            {
                let name: String = part
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                if !name.is_empty() {
                    names.insert(format!("ibv_{name}"));
                }
            }
        }
    }
    assert!(names.len() > 20, "the source calls more: {names:?}");
    names
}

fn is_foreign(name: &str) -> bool {
    name.starts_with("ibv_") || name.starts_with("rdma_") || name.starts_with("_ibv_")
}
