//! All of the EFA room without a device: a library with libefa's symbols and versions stands in for
//! it, and a few functions of this executable for libibverbs.

mod cq;
mod library;
mod queries;
mod ring;
mod verbs;

use std::mem::offset_of;

use library::{Standin, State};
use rpma::efa::Device;

/// A device on a stand-in of that release, or a return from the test.
macro_rules! device {
    ($standin:ident, $device:ident = $release:literal) => {
        let Some(mut $standin) = crate::library::Standin::of_release($release) else {
            return;
        };
        let $device = crate::open(&mut $standin);
    };
}
pub(crate) use device;

const ALL_CAPS: u32 = 0x7f;

fn open(standin: &mut Standin) -> Device {
    let attr = &mut standin.state().device_attr;
    put(attr, 8, &1000u32.to_ne_bytes());
    put(attr, 12, &2000u32.to_ne_bytes());
    put(attr, 16, &3u16.to_ne_bytes());
    put(attr, 18, &4u16.to_ne_bytes());
    put(attr, 20, &32u16.to_ne_bytes());
    put(attr, 22, &64u16.to_ne_bytes());
    put(attr, 24, &ALL_CAPS.to_ne_bytes());
    put(attr, 28, &(1u32 << 30).to_ne_bytes());
    Device::open_with(verbs::NAME, standin.library).unwrap()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The C struct has no holes that Rust's does not have.
#[test]
fn the_state_is_that_of_c() {
    assert_eq!(offset_of!(State, cq) % 8, 0);
    assert_eq!(offset_of!(State, cq), 8 + 32 + 32 + 16 + 80);
}
