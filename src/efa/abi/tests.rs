//! The layouts against C: a program that prints sizes, offsets and constants of the header.
//!
//! The header is the machine's, or of the folder that `RPMA_SYS_INCLUDE` names. What an older
//! header does not have is skipped, and said.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::*;
use crate::efa::{DeviceCaps, WqCaps};

/// One fact: a C expression, and its value here.
struct Fact {
    expression: String,
    value: u64,
}

fn facts() -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut fact = |expression: String, value: u64| facts.push(Fact { expression, value });
    for (name, size, fields) in STRUCTS {
        fact(format!("sizeof(struct {name})"), *size as u64);
        for (field, offset, width) in *fields {
            fact(format!("offsetof(struct {name}, {field})"), *offset as u64);
            fact(
                format!("sizeof(((struct {name} *)0)->{field})"),
                *width as u64,
            );
        }
    }
    let base = std::mem::offset_of!(efadv_cq_init_attr, ext_mem_dmabuf);
    for (field, offset) in [
        ("buffer", std::mem::offset_of!(ext_mem_dmabuf, buffer)),
        ("length", std::mem::offset_of!(ext_mem_dmabuf, length)),
        ("offset", std::mem::offset_of!(ext_mem_dmabuf, offset)),
        ("fd", std::mem::offset_of!(ext_mem_dmabuf, fd)),
        ("reserved", std::mem::offset_of!(ext_mem_dmabuf, reserved)),
    ] {
        fact(
            format!("offsetof(struct efadv_cq_init_attr, ext_mem_dmabuf.{field})"),
            (base + offset) as u64,
        );
    }
    for (field, offset) in [
        ("comp_mask", std::mem::offset_of!(efadv_cq, comp_mask)),
        ("wc_read_sgid", std::mem::offset_of!(efadv_cq, wc_read_sgid)),
        (
            "wc_is_unsolicited",
            std::mem::offset_of!(efadv_cq, wc_is_unsolicited),
        ),
    ] {
        fact(format!("offsetof(struct efadv_cq, {field})"), offset as u64);
    }
    for (name, value) in [
        ("EFADV_WC_EX_WITH_SGID", EFADV_WC_EX_WITH_SGID),
        (
            "EFADV_WC_EX_WITH_IS_UNSOLICITED",
            EFADV_WC_EX_WITH_IS_UNSOLICITED,
        ),
        (
            "EFADV_CQ_INIT_FLAGS_EXT_MEM_DMABUF",
            EFADV_CQ_INIT_FLAGS_EXT_MEM_DMABUF,
        ),
        (
            "EFADV_SQ_DEPTH_ATTR_INLINE_WRITE",
            EFADV_SQ_DEPTH_ATTR_INLINE_WRITE.into(),
        ),
        (
            "EFADV_MR_ATTR_VALIDITY_RECV_IC_ID",
            EFADV_MR_ATTR_VALIDITY_RECV_IC_ID.into(),
        ),
        (
            "EFADV_MR_ATTR_VALIDITY_RDMA_READ_IC_ID",
            EFADV_MR_ATTR_VALIDITY_RDMA_READ_IC_ID.into(),
        ),
        (
            "EFADV_MR_ATTR_VALIDITY_RDMA_RECV_IC_ID",
            EFADV_MR_ATTR_VALIDITY_RDMA_RECV_IC_ID.into(),
        ),
        (
            "EFADV_WQ_CAPS_64_BIT_REQ_ID",
            WqCaps::WIDE_REQUEST_ID.bits().into(),
        ),
        (
            "EFADV_DEVICE_ATTR_CAPS_RDMA_READ",
            DeviceCaps::RDMA_READ.bits().into(),
        ),
        (
            "EFADV_DEVICE_ATTR_CAPS_RNR_RETRY",
            DeviceCaps::RNR_RETRY.bits().into(),
        ),
        (
            "EFADV_DEVICE_ATTR_CAPS_CQ_WITH_SGID",
            DeviceCaps::CQ_WITH_SGID.bits().into(),
        ),
        (
            "EFADV_DEVICE_ATTR_CAPS_RDMA_WRITE",
            DeviceCaps::RDMA_WRITE.bits().into(),
        ),
        (
            "EFADV_DEVICE_ATTR_CAPS_UNSOLICITED_WRITE_RECV",
            DeviceCaps::UNSOLICITED_WRITE_RECV.bits().into(),
        ),
        (
            "EFADV_DEVICE_ATTR_CAPS_CQ_WITH_EXT_MEM_DMABUF",
            DeviceCaps::CQ_WITH_EXT_MEM_DMABUF.bits().into(),
        ),
        (
            "EFADV_DEVICE_ATTR_CAPS_COMP_CNTR",
            DeviceCaps::COMP_CNTR.bits().into(),
        ),
    ] {
        fact(format!("(uint64_t){name}"), value);
    }
    facts
}

#[test]
fn layouts_are_those_of_c() {
    let c = C::new();
    if let Err(why) = c.run("") {
        assert!(env::var_os("CI").is_none(), "{why}");
        eprintln!("SKIP: layouts_are_those_of_c: no C compiler, or no infiniband/efadv.h: {why}");
        return;
    }
    let facts = facts();
    // Structs grow: in an older header their sizes differ, and what is younger is missing.
    let missing: Vec<bool> = c.missing(&facts);
    let known = || {
        facts
            .iter()
            .zip(&missing)
            .filter(|(_, missing)| !**missing)
            .map(|(fact, _)| fact)
    };
    let body: String = known()
        .map(|fact| {
            format!(
                "printf(\"%llu\\n\", (unsigned long long)({}));\n",
                fact.expression
            )
        })
        .collect();
    let out = c.run(&body).unwrap();
    let newest = !missing.contains(&true);
    let (mut compared, mut wrong) = (0, Vec::new());
    for (fact, line) in known().zip(out.lines()) {
        let there: u64 = line.parse().unwrap();
        let grows = !newest && fact.expression.starts_with("sizeof(struct");
        if there == fact.value || (grows && there < fact.value) {
            compared += 1;
        } else {
            wrong.push(format!(
                "{}: {} here, {there} in C",
                fact.expression, fact.value
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!("{compared} of {} facts compared with C", facts.len());
    if !newest {
        let young = missing.iter().filter(|missing| **missing).count();
        eprintln!("SKIP: layouts_are_those_of_c: {young} facts are younger than this efadv.h");
    }
}

/// A C compiler and a folder for its files.
struct C {
    dir: PathBuf,
}

impl C {
    fn new() -> Self {
        let dir = env::temp_dir().join(format!("rpma-efa-layouts-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        C { dir }
    }

    fn compile(&self, body: &str, output: &Path) -> Result<(), String> {
        let source = self.dir.join("facts.c");
        let program = format!(
            "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <infiniband/efadv.h>\n\
             int main(void) {{\n{body}return 0;\n}}\n"
        );
        fs::write(&source, program).unwrap();
        let mut cc = Command::new(env::var_os("CC").unwrap_or("cc".into()));
        if let Some(include) = env::var_os("RPMA_SYS_INCLUDE") {
            cc.arg("-isystem").arg(include);
        }
        // Every missing item shall be named, however many.
        cc.args(["-fmax-errors=0", "-o"]).arg(output).arg(&source);
        let done = cc.output().map_err(|err| err.to_string())?;
        if done.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned())
        }
    }

    fn run(&self, body: &str) -> Result<String, String> {
        let program = self.dir.join("facts");
        self.compile(body, &program)?;
        let done = Command::new(&program)
            .output()
            .map_err(|err| err.to_string())?;
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Which facts the header cannot state, found by the lines that the compiler complains of.
    fn missing(&self, facts: &[Fact]) -> Vec<bool> {
        const FIRST_LINE: usize = 6;
        let body: String = facts
            .iter()
            .map(|fact| format!("(void)({});\n", fact.expression))
            .collect();
        let errors = self
            .compile(&body, &self.dir.join("probe"))
            .err()
            .unwrap_or_default();
        let mut missing = vec![false; facts.len()];
        for line in errors.lines().filter(|line| line.contains("error:")) {
            let number = line
                .split("facts.c:")
                .nth(1)
                .and_then(|rest| rest.split(':').next());
            let number: usize = number.and_then(|number| number.parse().ok()).unwrap();
            missing[number - FIRST_LINE] = true;
        }
        missing
    }
}

impl Drop for C {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
