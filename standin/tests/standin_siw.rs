//! The fault of the kernel's siw driver, as the stand-in has it.

mod common;

use std::ptr::null_mut;

use common::{End, Options, Pair, standin};
use rdma_sys as ffi;
use standin_control::Personality;

const PAGE: usize = 4096;
const SIGNALLED: u32 = ffi::IBV_SEND_SIGNALED;
const FENCE: u32 = ffi::IBV_SEND_FENCE;
const INLINE: u32 = ffi::IBV_SEND_INLINE;

/// Three pages of an end's own, registered from `from` on.
struct Pages {
    memory: *mut u8,
    mr: *mut ffi::ibv_mr,
}

impl Pages {
    unsafe fn new(end: &End, from: usize) -> Self {
        unsafe {
            let memory = libc::mmap(
                null_mut(),
                3 * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(memory, libc::MAP_FAILED);
            let memory = memory.cast::<u8>();
            for i in 0..3 * PAGE {
                *memory.add(i) = pattern(i);
            }
            let mr = ffi::ibv_reg_mr(
                end.pd,
                memory.add(from).cast(),
                3 * PAGE - from,
                (ffi::IBV_ACCESS_LOCAL_WRITE
                    | ffi::IBV_ACCESS_REMOTE_WRITE
                    | ffi::IBV_ACCESS_REMOTE_READ) as i32,
            );
            assert!(!mr.is_null());
            Self { memory, mr }
        }
    }

    fn sge(&self, at: usize, length: usize) -> ffi::ibv_sge {
        ffi::ibv_sge {
            addr: self.memory as u64 + at as u64,
            length: length as u32,
            lkey: unsafe { (*self.mr).lkey },
        }
    }

    fn remote(&self, at: usize) -> (u64, u32) {
        (self.memory as u64 + at as u64, unsafe { (*self.mr).rkey })
    }

    unsafe fn close(self) {
        unsafe {
            assert_eq!(ffi::ibv_dereg_mr(self.mr), 0);
            assert_eq!(libc::munmap(self.memory.cast(), 3 * PAGE), 0);
        }
    }
}

/// What lies at `i` of the pages: no two that a test confuses are the same.
fn pattern(i: usize) -> u8 {
    (i % 251) as u8
}

fn bytes(at: usize, length: usize) -> Vec<u8> {
    (at..at + length).map(pattern).collect()
}

/// What the driver sends of `length` bytes, `first` of them before the end of the second of the
/// pages.
fn sent(length: usize, first: usize) -> Vec<u8> {
    let at = 2 * PAGE - first;
    if length > 32 || first >= length || 2 * first == length {
        return bytes(at, length);
    }
    let taken = length - first;
    if taken < first {
        [bytes(at, taken), bytes(PAGE, first)].concat()
    } else {
        let beyond = bytes(at + first, taken - first);
        [
            bytes(at, first),
            beyond.iter().map(|b| !b).collect(),
            bytes(2 * PAGE, first),
        ]
        .concat()
    }
}

fn with_pages(personality: Personality, port: u16, test: impl FnOnce(&mut Pair, &Pages, &Pages)) {
    let s = standin(personality);
    let before = s.objects();
    unsafe {
        let mut pair = Pair::new(port, Options::default());
        let ours = Pages::new(&pair.active, 0);
        let theirs = Pages::new(&pair.passive, 0);
        test(&mut pair, &ours, &theirs);
        ours.close();
        theirs.close();
        pair.close();
    }
    assert_eq!(s.objects(), before);
    assert_eq!(s.violations(), Vec::<String>::new());
}

unsafe fn read(end: &End, length: usize, from: (u64, u32)) -> Vec<u8> {
    unsafe {
        let sge = end.sge(0, length as u32);
        assert_eq!(
            end.post_id(1, ffi::IBV_WR_RDMA_READ, SIGNALLED, sge, from),
            0
        );
        assert_eq!(end.statuses(), [(1, ffi::IBV_WC_SUCCESS)]);
    }
    end.memory[..length].to_vec()
}

/// Posts two requests in one call: a read of the peer's first word, and behind it what is asked
/// for.
unsafe fn behind_a_read(
    end: &End,
    op: u32,
    flags: u32,
    list: &mut [ffi::ibv_sge],
    to: (u64, u32),
    word: (u64, u32),
) {
    unsafe {
        let mut second = ffi::ibv_send_wr {
            wr_id: 2,
            sg_list: list.as_mut_ptr(),
            num_sge: list.len() as i32,
            opcode: op,
            send_flags: flags | FENCE | SIGNALLED,
            ..Default::default()
        };
        second.wr.rdma.remote_addr = to.0;
        second.wr.rdma.rkey = to.1;
        let mut sge = end.sge(1024, 8);
        let mut first = ffi::ibv_send_wr {
            wr_id: 1,
            next: &raw mut second,
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode: ffi::IBV_WR_RDMA_READ,
            ..Default::default()
        };
        first.wr.rdma.remote_addr = word.0;
        first.wr.rdma.rkey = word.1;
        let mut bad = null_mut();
        assert_eq!(
            ffi::ibv_post_send((*end.id).qp, &raw mut first, &raw mut bad),
            0
        );
        assert_eq!(end.statuses(), [(2, ffi::IBV_WC_SUCCESS)]);
    }
}

#[test]
fn a_short_read_across_a_page_gives_what_the_driver_sends() {
    with_pages(Personality::Siw, 7901, |pair, _, theirs| unsafe {
        let mut wrong = 0;
        for length in 1..=40 {
            for first in 1..=length {
                let got = read(&pair.active, length, theirs.remote(2 * PAGE - first));
                assert_eq!(got, sent(length, first), "{length}, {first}");
                wrong += usize::from(got != bytes(2 * PAGE - first, length));
            }
        }
        // All unequal splits of 2 to 32 bytes, as it was counted on the driver.
        assert_eq!(wrong, 480);
    });
}

#[test]
fn a_short_read_whose_destination_crosses_is_right() {
    with_pages(Personality::Siw, 7902, |pair, ours, theirs| unsafe {
        for first in 1..24 {
            let to = ours.sge(2 * PAGE - first, 24);
            let a = &pair.active;
            a.post_id(
                1,
                ffi::IBV_WR_RDMA_READ,
                SIGNALLED,
                to,
                theirs.remote(PAGE + 100),
            );
            assert_eq!(a.statuses(), [(1, ffi::IBV_WC_SUCCESS)]);
            let got = std::slice::from_raw_parts(ours.memory.add(2 * PAGE - first), 24);
            assert_eq!(got, bytes(PAGE + 100, 24));
        }
    });
}

#[test]
fn a_short_write_across_a_page_is_wrong_behind_another_request_only() {
    with_pages(Personality::Siw, 7903, |pair, ours, theirs| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        let mut wrong = 0;
        for length in 1..=40 {
            for first in 1..=length {
                let from = ours.sge(2 * PAGE - first, length);
                let right = bytes(2 * PAGE - first, length);
                let to = (b.at(64), b.rkey());

                a.post_id(1, ffi::IBV_WR_RDMA_WRITE, SIGNALLED, from, to);
                assert_eq!(a.statuses(), [(1, ffi::IBV_WC_SUCCESS)]);
                assert_eq!(b.memory[64..64 + length], right, "alone");

                let write = ffi::IBV_WR_RDMA_WRITE;
                behind_a_read(a, write, 0, &mut [from], to, theirs.remote(0));
                assert_eq!(b.memory[64..64 + length], sent(length, first));
                wrong += usize::from(b.memory[64..64 + length] != right);

                behind_a_read(a, write, INLINE, &mut [from], to, theirs.remote(0));
                assert_eq!(b.memory[64..64 + length], right, "inline");

                let mut two = [from, ours.sge(PAGE, 1)];
                behind_a_read(a, write, 0, &mut two, to, theirs.remote(0));
                assert_eq!(b.memory[64..64 + length], right, "of two elements");
            }
        }
        assert_eq!(wrong, 480);
    });
}

#[test]
fn a_short_send_across_a_page_is_wrong_behind_another_request_only() {
    with_pages(Personality::Siw, 7904, |pair, ours, theirs| unsafe {
        let (a, b) = (&pair.active, &pair.passive);
        let from = ours.sge(2 * PAGE - 10, 24);
        b.post_recv(7, b.sge(0, 64));
        a.post_id(1, ffi::IBV_WR_SEND, SIGNALLED, from, (0, 0));
        assert_eq!(a.statuses(), [(1, ffi::IBV_WC_SUCCESS)]);
        assert_eq!(b.memory[..24], bytes(2 * PAGE - 10, 24));

        b.post_recv(8, b.sge(0, 64));
        let send = ffi::IBV_WR_SEND;
        behind_a_read(a, send, 0, &mut [from], (0, 0), theirs.remote(0));
        assert_eq!(b.memory[..24], sent(24, 10));
        assert_eq!(b.statuses().len(), 2);
    });
}

#[test]
fn bytes_before_the_region_are_not_sent() {
    let s = standin(Personality::Siw);
    unsafe {
        let pair = Pair::new(7905, Options::default());
        // The page's start, which the driver would send, does not belong to the region.
        let theirs = Pages::new(&pair.passive, 2 * PAGE - 16);
        let got = read(&pair.active, 24, theirs.remote(2 * PAGE - 16));
        let right = bytes(2 * PAGE - 16, 24);
        assert_eq!(got[..8], right[..8]);
        assert!(got[8..].iter().zip(&right[8..]).all(|(got, r)| *got == !r));
        theirs.close();
        pair.close();
    }
    assert_eq!(s.violations(), Vec::<String>::new());
}

#[test]
fn other_devices_do_not_have_the_fault() {
    for (personality, port) in [(Personality::Rxe, 7906), (Personality::Mlx5, 7907)] {
        with_pages(personality, port, |pair, ours, theirs| unsafe {
            let (a, b) = (&pair.active, &pair.passive);
            let right = bytes(2 * PAGE - 8, 24);
            assert_eq!(read(a, 24, theirs.remote(2 * PAGE - 8)), right);
            let from = ours.sge(2 * PAGE - 8, 24);
            let write = ffi::IBV_WR_RDMA_WRITE;
            let to = (b.at(64), b.rkey());
            behind_a_read(a, write, 0, &mut [from], to, theirs.remote(0));
            assert_eq!(b.memory[64..88], right);
        });
    }
}

#[test]
fn each_software_device_has_its_drivers_vendor() {
    let s = standin(Personality::Rxe);
    for (personality, vendor) in [
        (Personality::Rxe, 0xff_ffff),
        (Personality::Siw, 0x62_6d74),
        (Personality::Mlx5, 0),
    ] {
        s.personality(personality);
        unsafe {
            let list = ffi::ibv_get_device_list(null_mut());
            let context = ffi::ibv_open_device(*list);
            ffi::ibv_free_device_list(list);
            let mut attr = ffi::ibv_device_attr::default();
            assert_eq!(ffi::ibv_query_device(context, &raw mut attr), 0);
            assert_eq!(attr.vendor_id, vendor);
            assert_eq!(ffi::ibv_close_device(context), 0);
        }
    }
}
