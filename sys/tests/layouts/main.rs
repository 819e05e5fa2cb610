//! Sizes, offsets and constants against C: a program made of one probe per item is compiled with
//! the rdma-core headers of this machine, or of the folder that `RPMA_SYS_INCLUDE` names, and its
//! answers are compared with the bindings.
//!
//! `ci/layouts` runs this against several releases. Without a C compiler or headers the test says
//! so and passes, unless the variable `CI` is set.

mod known;
mod probe;

use probe::Probe;
use rpma_sys as ffi;
use std::mem::{offset_of, size_of};

macro_rules! layouts {
    ($($c:literal $rust:ident { $($field:literal $($path:ident).+;)* })*) => {
        fn layouts() -> Vec<Probe> {
            let mut probes = Vec::new();
            $(
                let size = size_of::<ffi::$rust>();
                probes.push(Probe::size($c, size));
                $(
                    // Fields of unions are only named, never read.
                    #[allow(unused_unsafe)]
                    let width = size_behind(|s: &ffi::$rust| unsafe { &raw const s.$($path).+ });
                    probes.push(Probe::field($c, $field, offset_of!(ffi::$rust, $($path).+), width));
                )*
            )*
            probes
        }
    };
}

macro_rules! constants {
    ($($name:ident,)*) => {
        fn constants() -> Vec<Probe> {
            let mut probes = vec![$(Probe::constant(stringify!($name), ffi::$name as i128)),*];
            probes.extend([
                // By hand in src/constants.rs.
                Probe::constant("IBV_ACCESS_OPTIONAL_RANGE", ffi::IBV_ACCESS_OPTIONAL_RANGE.into()),
                Probe::constant("IBV_ADVISE_MR_ADVICE_PREFETCH", ffi::IBV_ADVISE_MR_ADVICE_PREFETCH.into()),
                Probe::constant("IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE", ffi::IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE.into()),
                Probe::constant("IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT", ffi::IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT.into()),
                Probe::constant("IBV_ADVISE_MR_FLAG_FLUSH", ffi::IBV_ADVISE_MR_FLAG_FLUSH.into()),
                Probe::constant("IBV_QPF_GRH_REQUIRED", ffi::IBV_QPF_GRH_REQUIRED.into()),
                Probe::constant("RDMA_IB_IP_PS_MASK", ffi::RDMA_IB_IP_PS_MASK.into()),
                Probe::constant("(uintptr_t)__VERBS_ABI_IS_EXTENDED", ffi::__VERBS_ABI_IS_EXTENDED().addr() as i128),
            ]);
            probes
        }
    };
}

include!("table.rs");

/// The size of what a field's address points to.
fn size_behind<S, F>(_: fn(&S) -> *const F) -> usize {
    size_of::<F>()
}

#[test]
fn structs_and_constants_are_those_of_c() {
    let mut probes = layouts();
    probes.extend(constants());
    let answers = match probe::run(&probes) {
        Ok(answers) => answers,
        Err(why) if std::env::var_os("CI").is_none() => {
            println!("SKIP: layouts: {}", why.lines().next().unwrap_or_default());
            return;
        }
        Err(why) => panic!("{why}"),
    };
    let release = probe::release();
    let mut wrong = Vec::new();
    for (index, probe) in probes.iter().enumerate() {
        match answers.get(&index) {
            None if known::may_be_absent(probe.name(), release) => {}
            None => wrong.push(format!("{}: not in the headers", probe.name())),
            Some(c) if probe.agrees(c) => {}
            Some(c) if known::differs(probe, c, release) => {}
            Some(c) => wrong.push(format!(
                "{}: {:?} here, {c:?} in C",
                probe.name(),
                probe.values()
            )),
        }
    }
    println!(
        "{} of {} items compared with rdma-core {}",
        answers.len(),
        probes.len(),
        release.map_or("of an unknown release".into(), |r| format!("v{r}"))
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
