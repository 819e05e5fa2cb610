//! One C program that answers many questions.

use std::collections::{HashMap, HashSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A question to C with the answer of the bindings.
pub struct Probe {
    name: String,
    /// C expressions, one for each value.
    c: Vec<String>,
    values: Vec<i128>,
}

impl Probe {
    /// The size of a struct or union.
    pub fn size(of: &str, size: usize) -> Self {
        Self {
            name: of.into(),
            c: vec![format!("sizeof({of})")],
            values: vec![size as i128],
        }
    }

    /// Offset and size of a field.
    pub fn field(of: &str, field: &str, offset: usize, width: usize) -> Self {
        // The table in front of a context grows at its front, so C finds its entries by their
        // distance from the end.
        let c = if of == "struct verbs_context" {
            format!("offsetof({of}, context) - offsetof({of}, {field})")
        } else {
            format!("offsetof({of}, {field})")
        };
        let offset = if of == "struct verbs_context" {
            std::mem::offset_of!(rpma_sys::verbs_context, context) - offset
        } else {
            offset
        };
        Self {
            name: format!("{of}.{field}"),
            c: vec![c, format!("sizeof((({of} *)0)->{field})")],
            values: vec![offset as i128, width as i128],
        }
    }

    /// The value of a macro or an enumerator.
    pub fn constant(name: &str, value: i128) -> Self {
        Self {
            name: name.into(),
            c: vec![name.into()],
            values: vec![value],
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn values(&self) -> &[i128] {
        &self.values
    }

    pub fn agrees(&self, c: &[i128]) -> bool {
        self.values == c
    }

    /// One line of C.
    fn line(&self, index: usize) -> String {
        let show: String = self.c.iter().map(|c| format!("SHOW({c}); ")).collect();
        format!("printf(\"%d\", {index}); {show}puts(\"\");\n")
    }
}

const PROLOGUE: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#define SHOW(x) ((x) < 0 ? printf(" %lld", (long long)(x)) : printf(" %llu", (unsigned long long)(x)))
int main(void) {
"#;

/// C's answers by the probe's index; a probe that does not compile has none. An error when nothing
/// can be compiled.
pub fn run(probes: &[Probe]) -> Result<HashMap<usize, Vec<i128>>, String> {
    if let Some(dir) = include_dir() {
        // Without this the compiler would silently take the headers that are installed.
        let header = dir.join("infiniband/verbs.h");
        assert!(
            header.is_file(),
            "RPMA_SYS_INCLUDE: no {}",
            header.display()
        );
    }
    let dir = scratch();
    let source = dir.join("probe.c");
    let program = dir.join("probe");
    compile(&source, &program, &format!("{PROLOGUE}}}\n"))
        .and_then(|out| {
            if out.status.success() {
                Ok(())
            } else {
                Err(errors(&out))
            }
        })
        .map_err(|why| {
            format!("no C compiler, or no rdma-core headers (libibverbs-dev, librdmacm-dev): {why}")
        })?;

    let first_line = PROLOGUE.lines().count() + 1;
    let mut absent = HashSet::new();
    loop {
        let body: String = probes
            .iter()
            .enumerate()
            .map(|(index, probe)| {
                if absent.contains(&index) {
                    "\n".into()
                } else {
                    probe.line(index)
                }
            })
            .collect();
        let out = compile(&source, &program, &format!("{PROLOGUE}{body}}}\n"))?;
        if out.status.success() {
            break;
        }
        let before = absent.len();
        absent.extend(
            error_lines(&out)
                .into_iter()
                .filter_map(|line| line.checked_sub(first_line)),
        );
        if absent.len() == before {
            return Err(errors(&out));
        }
    }
    let out = Command::new(&program)
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let _ = fs::remove_dir_all(&dir);
    Ok(String::from_utf8_lossy(&out.stdout)
        .lines()
        .map(answer)
        .collect())
}

/// The rdma-core release of the headers, when it can be told.
pub fn release() -> Option<u32> {
    // Left by sys/fetch-headers beside usr/include.
    let version = match include_dir() {
        Some(dir) => fs::read_to_string(dir.join("../../VERSION")).ok()?,
        None => {
            let out = Command::new("pkg-config")
                .args(["--modversion", "libibverbs"])
                .output()
                .ok()?;
            // 1.14.44.0 is v44.
            String::from_utf8(out.stdout)
                .ok()?
                .split('.')
                .nth(2)?
                .to_owned()
        }
    };
    version
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

fn include_dir() -> Option<PathBuf> {
    env::var_os("RPMA_SYS_INCLUDE").map(PathBuf::from)
}

fn scratch() -> PathBuf {
    let dir =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layouts-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn compile(source: &Path, program: &Path, text: &str) -> Result<Output, String> {
    fs::write(source, text).map_err(|e| e.to_string())?;
    let cc = env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&cc);
    command
        .env("LC_ALL", "C")
        .args(["-w", "-o"])
        .arg(program)
        .arg(source);
    if let Some(dir) = include_dir() {
        command.arg("-I").arg(dir);
    }
    command.output().map_err(|e| format!("{cc}: {e}"))
}

/// The lines of `probe.c` that the compiler refuses.
fn error_lines(out: &Output) -> Vec<usize> {
    String::from_utf8_lossy(&out.stderr)
        .lines()
        .filter(|text| text.contains(": error: "))
        .filter_map(|text| {
            text.split_once("probe.c:")?
                .1
                .split(':')
                .next()?
                .parse()
                .ok()
        })
        .collect()
}

fn errors(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn answer(line: &str) -> (usize, Vec<i128>) {
    let mut numbers = line.split(' ').map(|n| n.parse::<i128>().unwrap());
    let index = numbers.next().unwrap() as usize;
    (index, numbers.collect())
}
