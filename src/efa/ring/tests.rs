use std::{
    cell::Cell,
    sync::atomic::{AtomicU64, fence},
    thread,
};

use super::*;
use crate::efa::{Queue, Status};

/// A ring and its device in one.
struct Fake {
    words: Vec<AtomicU32>,
    stride: usize,
}

impl Fake {
    fn new(entries: usize, stride: usize) -> Self {
        let words = (0..entries * stride / WORD)
            .map(|_| AtomicU32::new(0))
            .collect();
        Fake { words, stride }
    }

    fn attr(&self) -> CqAttr {
        CqAttr {
            buffer: self.words.as_ptr().cast(),
            entry_size: self.stride as u32,
            entries: (self.words.len() * WORD / self.stride) as u32,
            doorbell: None,
        }
    }

    fn ring(&self) -> CqRing<'_> {
        // SAFETY: the ring is this one, and borrowed.
        unsafe { CqRing::from_attr(&self.attr(), 0xefa1) }.unwrap()
    }

    /// Writes entry number `passed` as the device does: the word with the flags last.
    fn write(&self, passed: u64) {
        let cursor = Cursor::at(self.ring().len(), passed);
        let words =
            &self.words[cursor.index() as usize * self.stride / WORD..][..self.stride / WORD];
        for (index, word) in words.iter().enumerate().skip(1) {
            word.store(tail_word(passed, index), Ordering::Relaxed);
        }
        fence(Ordering::Release);
        words[0].store(first_word(passed, cursor.phase()), Ordering::Relaxed);
    }
}

/// A receive with a request id that tells the entries apart.
fn first_word(passed: u64, phase: Phase) -> u32 {
    let [a, b, ..] = passed.to_le_bytes();
    u32::from_le_bytes([a, b, 0, 0b100 | u8::from(phase.bit())]).to_le()
}

fn tail_word(passed: u64, index: usize) -> u32 {
    (passed as u32)
        .wrapping_mul(0x9e37_79b9)
        .wrapping_add(index as u32)
}

fn is_entry(entry: &Entry, passed: u64) -> bool {
    let tail = entry.as_bytes()[WORD..].chunks_exact(WORD).enumerate();
    entry.request_id() == passed as u16
        && entry.queue() == Queue::RECEIVE
        && tail
            .into_iter()
            .all(|(i, word)| word == tail_word(passed, i + 1).to_ne_bytes())
}

#[test]
fn entries_show_one_by_one_over_many_laps() {
    for stride in [16, 32, 64] {
        let fake = Fake::new(4, stride);
        let ring = fake.ring();
        assert_eq!((ring.len().get(), ring.stride()), (4, stride));
        let mut cursor = ring.start();
        for passed in 0..30 {
            assert_eq!(ring.ready(&cursor), None);
            fake.write(passed);
            let entry = ring.ready(&cursor).unwrap();
            assert!(is_entry(&entry, passed), "{passed}: {entry:?}");
            assert_eq!(entry.is_extended(), stride >= 32);
            assert_eq!(ring.peek(cursor.index()), Some(entry));
            cursor.advance();
        }
    }
}

#[test]
fn looking_consumes_nothing() {
    let fake = Fake::new(4, 32);
    let ring = fake.ring();
    fake.write(0);
    for _ in 0..3 {
        assert!(ring.ready(&ring.start()).is_some());
    }
    assert_eq!(ring.peek(1).unwrap().phase(), Phase::FIRST.flipped());
    assert_eq!(ring.peek(1).unwrap().status(), Status::OK);
    assert_eq!(ring.peek(4), None);
    assert_eq!(ring.peek(u32::MAX), None);
}

#[test]
fn a_cursor_of_a_longer_ring_finds_nothing_past_the_end() {
    let fake = Fake::new(4, 32);
    let longer = Cursor::at(NonZeroU32::new(8).unwrap(), 5);
    assert_eq!(fake.ring().ready(&longer), None);
}

#[test]
fn rings_that_are_not_understood_are_refused() {
    let fake = Fake::new(4, 32);
    let refused = |attr: CqAttr, part| {
        // SAFETY: nothing is read of a ring that is refused.
        let err = unsafe { CqRing::from_attr(&attr, part) }.unwrap_err();
        assert!(matches!(err, Error::NotSupported { .. }), "{err}");
        err.to_string()
    };
    assert!(refused(fake.attr(), 0xefa0).contains("several rings"));
    assert!(
        refused(
            CqAttr {
                buffer: std::ptr::null(),
                ..fake.attr()
            },
            0xefa1
        )
        .contains("no ring")
    );
    assert!(
        refused(
            CqAttr {
                entries: 0,
                ..fake.attr()
            },
            0xefa1
        )
        .contains("no ring")
    );
    for entry_size in [0, 8, 12, 18, 33] {
        refused(
            CqAttr {
                entry_size,
                ..fake.attr()
            },
            0xefa1,
        );
    }
    refused(
        CqAttr {
            buffer: fake.attr().buffer.wrapping_add(1),
            ..fake.attr()
        },
        0xefa1,
    );
}

#[test]
fn a_thread_fills_the_ring_while_others_look() {
    const TOTAL: u64 = 50_000;
    let fake = Fake::new(16, 32);
    let consumed = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for passed in 0..TOTAL {
                // One entry stays free: the looker may be one behind.
                while passed >= consumed.load(Ordering::Acquire) + 15 {
                    thread::yield_now();
                }
                fake.write(passed);
            }
        });
        scope.spawn(|| {
            let ring = fake.ring();
            while consumed.load(Ordering::Acquire) < TOTAL {
                let at = consumed.load(Ordering::Acquire);
                let Some(entry) = ring.ready(&Cursor::at(ring.len(), at)) else {
                    continue;
                };
                // Unless the consumer went on meanwhile, it is that entry and no other.
                if consumed.load(Ordering::Acquire) == at {
                    assert!(is_entry(&entry, at), "{at}: {entry:?}");
                }
            }
        });
        let ring = fake.ring();
        let mut cursor = ring.start();
        while cursor.passed() < TOTAL {
            let Some(entry) = ring.ready(&cursor) else {
                thread::yield_now();
                continue;
            };
            assert!(
                is_entry(&entry, cursor.passed()),
                "{}: {entry:?}",
                cursor.passed()
            );
            cursor.advance();
            consumed.store(cursor.passed(), Ordering::Release);
        }
    });
}

#[test]
fn an_entry_that_changes_while_it_is_read_is_not_taken() {
    /// Its first word turns into the next lap's at the given load.
    struct Overtaken {
        loads: Cell<u32>,
        turns_at: u32,
    }
    impl Words for Overtaken {
        fn len(&self) -> usize {
            8
        }
        fn load(&self, index: usize) -> u32 {
            if index != 0 {
                return 7;
            }
            self.loads.set(self.loads.get() + 1);
            let phase = if self.loads.get() < self.turns_at {
                Phase::FIRST
            } else {
                Phase::FIRST.flipped()
            };
            first_word(1, phase)
        }
        fn fence(&self) {}
    }
    let read = |turns_at| {
        read_if(
            &Overtaken {
                loads: Cell::new(0),
                turns_at,
            },
            Phase::FIRST,
        )
    };
    assert_eq!(read(1), None);
    assert_eq!(read(3), None);
    assert!(read(4).is_some());
    // Between the first and the second load: the entry itself is of the other lap.
    assert_eq!(read(2), None);
}

/// All orders in which a device's writes and a looker's loads can come.
mod model {
    use loom::sync::{
        Arc,
        atomic::{AtomicU32, Ordering, fence},
    };

    use super::*;

    /// A ring of one entry, and how often it was consumed.
    struct Model {
        words: [AtomicU32; 4],
        consumed: AtomicU32,
        with_fence: bool,
    }

    impl Words for Model {
        fn len(&self) -> usize {
            self.words.len()
        }

        fn load(&self, index: usize) -> u32 {
            self.words[index].load(Ordering::Relaxed)
        }

        fn fence(&self) {
            if self.with_fence {
                fence(Ordering::Acquire);
            }
        }
    }

    impl Model {
        fn new(with_fence: bool) -> Arc<Self> {
            let words = std::array::from_fn(|_| AtomicU32::new(0));
            Arc::new(Model {
                words,
                consumed: AtomicU32::new(0),
                with_fence,
            })
        }

        /// Writes each lap when the one before was consumed.
        fn device(&self, laps: u32) {
            for lap in 0..laps {
                while self.consumed.load(Ordering::Acquire) < lap {
                    loom::thread::yield_now();
                }
                for index in 1..self.words.len() {
                    self.words[index].store(tail_word(lap.into(), index), Ordering::Relaxed);
                }
                fence(Ordering::Release);
                let phase = Cursor::at(NonZeroU32::MIN, lap.into()).phase();
                self.words[0].store(first_word(lap.into(), phase), Ordering::Relaxed);
            }
        }

        /// Every entry is the right one, whole.
        fn consume(&self, laps: u32) {
            let mut cursor = Cursor::start(NonZeroU32::MIN);
            while cursor.passed() < laps.into() {
                let Some(entry) = read_if(self, cursor.phase()) else {
                    loom::thread::yield_now();
                    continue;
                };
                assert!(is_entry(&entry, cursor.passed()), "{entry:?}");
                cursor.advance();
                self.consumed
                    .store(cursor.passed() as u32, Ordering::Release);
            }
        }
    }

    fn check(laps: u32, with_fence: bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let model = Model::new(with_fence);
            let device = {
                let model = model.clone();
                loom::thread::spawn(move || model.device(laps))
            };
            model.consume(laps);
            device.join().unwrap();
        });
    }

    #[test]
    fn no_order_shows_a_torn_entry() {
        check(1, true);
        check(2, true);
    }

    /// The model has teeth.
    #[test]
    #[should_panic]
    fn without_the_fence_some_order_does() {
        check(1, false);
    }
}
