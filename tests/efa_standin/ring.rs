//! The ring in memory, seen through the whole room: the query, the view, the poller, the doorbell.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering, fence},
    },
    thread,
};

use rpma::{
    Error,
    efa::{Cq, CqOptions, Cursor, Entry, Operation, Poller, Queue},
};

use crate::{
    cq::create,
    device,
    library::Standin,
    put,
    verbs::{self, VENDOR_PART_ID},
};

const ENTRIES: u32 = 8;
const WORDS: usize = 8;

/// What a device would write to: the ring, and the register.
struct Hardware {
    words: Vec<AtomicU32>,
    doorbell: AtomicU32,
}

impl Hardware {
    /// Behind a queue of the stand-in's, with its doorbell or without.
    fn install(standin: &mut Standin, with_doorbell: bool) -> &'static Self {
        let hardware: &'static Hardware = Box::leak(Box::new(Hardware {
            words: (0..ENTRIES as usize * WORDS)
                .map(|_| AtomicU32::new(0))
                .collect(),
            doorbell: AtomicU32::new(u32::MAX),
        }));
        // Still known at the end: no leak.
        static ALL: Mutex<Vec<&Hardware>> = Mutex::new(Vec::new());
        ALL.lock().unwrap().push(hardware);
        let attr = &mut standin.state().cq_attr;
        put(
            attr,
            8,
            &hardware.words.as_ptr().expose_provenance().to_ne_bytes(),
        );
        put(attr, 16, &32u32.to_ne_bytes());
        put(attr, 20, &ENTRIES.to_ne_bytes());
        let doorbell = hardware.doorbell.as_ptr().expose_provenance();
        put(
            attr,
            24,
            &(if with_doorbell { doorbell } else { 0 }).to_ne_bytes(),
        );
        hardware
    }

    /// Completion number `passed`: a received write of as many bytes.
    fn complete(&self, passed: u64) {
        let count = std::num::NonZeroU32::new(ENTRIES).unwrap();
        let cursor = Cursor::at(count, passed);
        let words = &self.words[cursor.index() as usize * WORDS..][..WORDS];
        let length = passed as u32;
        words[1].store(
            u32::from_le_bytes([7, 0, length as u8, (length >> 8) as u8]).to_le(),
            Ordering::Relaxed,
        );
        words[4].store((length >> 16).to_le(), Ordering::Relaxed);
        fence(Ordering::Release);
        let flags = 0b0010_0100 | u8::from(cursor.phase().bit());
        let first = u32::from_le_bytes([passed as u8, (passed >> 8) as u8, 0, flags]);
        words[0].store(first.to_le(), Ordering::Relaxed);
    }
}

fn assert_is(entry: &Entry, passed: u64) {
    assert_eq!(entry.request_id(), passed as u16, "{entry:?}");
    assert_eq!(entry.length(), Some(passed as u32), "{entry:?}");
    assert_eq!(
        (entry.queue(), entry.operation()),
        (Queue::RECEIVE, Operation::WRITE)
    );
    assert_eq!((entry.qp_num(), entry.is_ok()), (7, true));
}

fn poller(cq: &Cq) -> rpma::Result<Poller<'_>> {
    // SAFETY: there is neither a libibverbs that keeps books about this queue, nor another
    // consumer.
    unsafe { cq.poller(0) }
}

#[test]
fn the_query_describes_the_ring() {
    device!(standin, device = 65);
    let hardware = Hardware::install(&mut standin, true);
    let cq = create(&mut standin, &device, CqOptions::new(ENTRIES));
    let attr = cq.attr().unwrap();
    assert_eq!(attr.buffer.addr(), hardware.words.as_ptr().addr());
    assert_eq!((attr.entry_size, attr.entries), (32, ENTRIES));
    assert_eq!(
        attr.doorbell.unwrap().as_ptr().addr(),
        hardware.doorbell.as_ptr().addr()
    );
    let state = standin.state();
    assert_eq!((state.inlen, state.object), (32, state.cq));
    state.error = libc::EINVAL;
    assert_eq!(cq.attr().unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert_eq!(cq.ring().unwrap_err().raw_os_error(), Some(libc::EINVAL));
}

#[test]
fn a_thread_fills_the_ring_entry_by_entry() {
    const TOTAL: u64 = 100_000;
    device!(standin, device = 65);
    let hardware = Hardware::install(&mut standin, true);
    let cq = create(
        &mut standin,
        &device,
        CqOptions {
            channel: true,
            ..CqOptions::new(ENTRIES)
        },
    );
    hardware.doorbell.store(0, Ordering::Relaxed);
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut told = 0;
            for passed in 0..TOTAL {
                // As far as the doorbell says, and a view may be one behind.
                while passed - told >= u64::from(ENTRIES) - 1 {
                    let doorbell = hardware.doorbell.load(Ordering::Acquire);
                    told += u64::from((doorbell as u16).wrapping_sub(told as u16));
                    thread::yield_now();
                }
                hardware.complete(passed);
            }
        });
        scope.spawn(|| {
            let ring = cq.ring().unwrap();
            while taken.load(Ordering::Acquire) < TOTAL {
                let at = taken.load(Ordering::Acquire);
                let seen = ring.ready(&Cursor::at(ring.len(), at));
                if let Some(entry) = seen.filter(|_| taken.load(Ordering::Acquire) == at) {
                    assert_is(&entry, at);
                }
                assert!(ring.peek((at % 8) as u32).is_some());
            }
        });
        let mut poller = poller(&cq).unwrap();
        assert_eq!(
            (poller.len().get(), poller.ring().len().get()),
            (ENTRIES, ENTRIES)
        );
        let mut buf = vec![Entry::decode(&[0; 32]).unwrap(); 5];
        while poller.cursor().passed() < TOTAL {
            let start = poller.cursor().passed();
            // By turns one by one and in bulk.
            let n = if start % 2 == 0 {
                poller.poll(&mut buf)
            } else {
                let one = poller.next_entry();
                poller.update();
                one.map_or(0, |entry| {
                    buf[0] = entry;
                    1
                })
            };
            for (entry, passed) in buf[..n].iter().zip(start..) {
                assert_is(entry, passed);
            }
            taken.store(poller.cursor().passed(), Ordering::Release);
            if n == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(poller.next_entry(), None);
    });
}

#[test]
fn the_view_leaves_everything_to_the_poller() {
    device!(standin, device = 65);
    let hardware = Hardware::install(&mut standin, false);
    let cq = create(&mut standin, &device, CqOptions::new(ENTRIES));
    let ring = cq.ring().unwrap();
    let mut looking = ring.start();
    let mut poller = poller(&cq).unwrap();
    for passed in 0..20 {
        hardware.complete(passed);
        assert_is(&ring.ready(&looking).unwrap(), passed);
        looking.advance();
        assert_is(&poller.next_entry().unwrap(), passed);
    }
}

#[test]
fn a_poller_goes_on_where_another_ended() {
    device!(standin, device = 65);
    let hardware = Hardware::install(&mut standin, false);
    let cq = create(&mut standin, &device, CqOptions::new(ENTRIES));
    for passed in 0..6 {
        hardware.complete(passed);
    }
    let mut first = poller(&cq).unwrap();
    for _ in 0..6 {
        first.next_entry().unwrap();
    }
    let passed = first.cursor().passed();
    for passed in 6..11 {
        hardware.complete(passed);
    }
    // SAFETY: the first one is gone.
    let mut second = unsafe { cq.poller(passed) }.unwrap();
    for passed in 6..11 {
        assert_is(&second.next_entry().unwrap(), passed);
    }
    assert_eq!(second.next_entry(), None);
}

#[test]
fn the_doorbell_is_told_what_changed() {
    device!(standin, device = 65);
    let hardware = Hardware::install(&mut standin, true);
    let cq = create(
        &mut standin,
        &device,
        CqOptions {
            channel: true,
            ..CqOptions::new(ENTRIES)
        },
    );
    let doorbell = || u32::from_le(hardware.doorbell.load(Ordering::Relaxed));
    let mut poller = poller(&cq).unwrap();
    poller.update();
    assert_eq!(doorbell(), u32::MAX, "nothing to tell");
    for passed in 0..3 {
        hardware.complete(passed);
        poller.next_entry().unwrap();
    }
    assert_eq!(doorbell(), u32::MAX, "not told yet");
    poller.update();
    assert_eq!(doorbell(), 3);
    poller.arm().unwrap();
    assert_eq!(doorbell(), 1 << 31 | 3);

    // The number of events that were taken goes with it.
    verbs::send_event();
    assert!(cq.wait(None).unwrap());
    hardware.complete(3);
    assert!(poller.next_entry().is_some());
    poller.arm().unwrap();
    assert_eq!(doorbell(), 1 << 31 | 1 << 29 | 4);
    for _ in 1..5 {
        verbs::send_event();
        assert!(cq.take_event().unwrap());
    }
    poller.arm().unwrap();
    assert_eq!(
        doorbell(),
        1 << 31 | 1 << 29 | 4,
        "five events are one, by two bits"
    );
}

/// rdma-core 59 knows no doorbell, and does not write what it does not know.
#[test]
fn a_library_without_doorbell_gives_none() {
    device!(standin, device = 59);
    let hardware = Hardware::install(&mut standin, true);
    let cq = create(
        &mut standin,
        &device,
        CqOptions {
            channel: true,
            ..CqOptions::new(ENTRIES)
        },
    );
    assert_eq!(cq.attr().unwrap().doorbell, None);
    let mut poller = poller(&cq).unwrap();
    hardware.complete(0);
    assert_is(&poller.next_entry().unwrap(), 0);
    poller.update();
    let err = poller.arm().unwrap_err();
    assert!(matches!(err, Error::NotSupported { .. }), "{err:?}");
    assert!(err.to_string().contains("older than 60"));
    assert_eq!(hardware.doorbell.load(Ordering::Relaxed), u32::MAX);
}

#[test]
fn the_first_generation_has_no_view() {
    VENDOR_PART_ID.set(0xefa0);
    device!(standin, device = 65);
    Hardware::install(&mut standin, true);
    let cq = create(&mut standin, &device, CqOptions::new(ENTRIES));
    assert!(cq.attr().is_ok());
    for err in [cq.ring().unwrap_err(), poller(&cq).unwrap_err()] {
        assert!(matches!(err, Error::NotSupported { .. }), "{err:?}");
        assert!(err.to_string().contains("0xefa0"), "{err}");
    }
}

#[test]
fn a_queue_elsewhere_has_no_view() {
    device!(standin, device = 65);
    let cq = create(&mut standin, &device, CqOptions::new(ENTRIES));
    let err = cq.ring().unwrap_err();
    assert!(matches!(err, Error::NotSupported { .. }), "{err:?}");
}
