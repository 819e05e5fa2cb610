//! What the process holds: the device's objects, fds, mappings, heap.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    sync::atomic::{AtomicI64, Ordering},
};

use standin_control::{Objects, Standin};

/// Counts what is allocated by Rust code of this program. The stand-in is a library with a heap of
/// its own.
struct Counting;

static LIVE: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is the system allocator's; only a number is counted beside.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's word.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// What is held at one moment.
pub struct Snapshot {
    objects: Objects,
    fds: usize,
    pages: i64,
    heap: i64,
}

/// Regions of the scenarios have more pages than this, and heaps grow by less.
const SLACK: i64 = 160;

impl Snapshot {
    pub fn take(standin: &Standin) -> Snapshot {
        // The stand-in's timers are threads, with stacks.
        for _ in 0..2000 {
            if threads() <= 3 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let statm = fs::read_to_string("/proc/self/statm").expect("/proc/self/statm");
        let pages = statm.split(' ').next().and_then(|n| n.parse().ok());
        Snapshot {
            objects: standin.objects(),
            fds: fs::read_dir("/proc/self/fd")
                .expect("/proc/self/fd")
                .count(),
            pages: pages.expect("a number"),
            heap: LIVE.load(Ordering::Relaxed),
        }
    }

    /// What `after` has more.
    pub fn left(&self, after: &Snapshot) -> Option<String> {
        let mut left = String::new();
        if after.objects != self.objects {
            left += &format!("objects {:?} -> {:?} ", self.objects, after.objects);
        }
        if after.fds != self.fds {
            left += &format!("fds {} -> {} ", self.fds, after.fds);
        }
        if after.pages > self.pages + SLACK {
            left += &format!("mapped pages {} -> {} ", self.pages, after.pages);
        }
        if after.heap > self.heap {
            left += &format!("heap {} -> {} bytes", self.heap, after.heap);
        }
        (!left.is_empty()).then_some(left)
    }
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}
