//! Nothing is allocated on the data path: counted by an allocator that counts.

mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use common::*;
use rpma::{Completion, ConnCfg, Cq, FlushKind, RemoteRegion, Result, Signal, Usage, Wait};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system's allocator does it all; the counter is a plain cell that itself allocates
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(ptr, layout, len) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn count() {
    // A thread that ends has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

/// How often this thread allocates in it.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Does it once, so that what is made once and for all is there; then it must allocate nothing.
fn none(what: &str, mut work: impl FnMut() -> Result<()>) {
    work().unwrap();
    let counted = allocations(|| {
        for _ in 0..8 {
            work().unwrap();
        }
    });
    assert_eq!(counted, 0, "{what} allocates");
}

/// Polls for one completion, which must be good.
fn one(cq: &Cq) -> Result<()> {
    let mut room = [Completion::default()];
    loop {
        if let [wc] = cq.poll(&mut room)? {
            assert!(wc.ok().is_ok(), "{wc:?}");
            return Ok(());
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    assert_eq!(
        allocations(|| {
            let mut grown = Vec::with_capacity(1);
            grown.extend(std::hint::black_box([1, 2, 3]));
            std::hint::black_box(grown);
        }),
        2
    );
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn nothing_is_allocated_on_the_data_path() {
    let _alone = alone();
    let peer = device!();
    let ends = pair(&peer, &ConnCfg::new().sq_size(32).rq_size(32).rcq_size(32));
    let (conn, server) = (&ends.client, &ends.server);
    let near = region(&peer, 4096, local_usage() | Usage::SEND | Usage::RECV, byte);
    let far = region(&peer, 4096, remote_usage(), |_| 0);
    let far = remote(&far);
    let (local, range, word) = (
        near.slice(..64).unwrap(),
        far.slice(..64).unwrap(),
        far.slice(..8).unwrap(),
    );
    let (loud, quiet) = (Signal::Always(1), Signal::OnError(1));

    none("a write", || {
        conn.write(&local, &range, loud)
            .and_then(|()| one(conn.cq()))
    });
    none("a read", || {
        conn.read(&local, &range, loud)
            .and_then(|()| one(conn.cq()))
    });
    none("a flush", || {
        conn.flush(&range, FlushKind::Visibility, loud)?;
        one(conn.cq())
    });
    none("an atomic write", || {
        conn.atomic_write(&word, [7; 8], loud)?;
        one(conn.cq())
    });
    let rcq = server.rcq().unwrap();
    none("a message", || {
        server.recv(&local, 1)?;
        conn.send(&local, loud)?;
        one(conn.cq())?;
        one(rcq)
    });
    let mut batch = conn.batch();
    none("a batch", || {
        for _ in 0..16 {
            batch.write(&local, &range, quiet)?;
        }
        batch.flush(&range, FlushKind::Visibility, loud)?;
        batch.submit()?;
        one(conn.cq())
    });
    none("a batch that is made anew", || {
        let mut batch = conn.batch();
        batch.write(&local, &range, quiet)?;
        batch.flush(&range, FlushKind::Visibility, loud)?;
        batch.submit()?;
        one(conn.cq())
    });
    none("waiting", || {
        conn.write(&local, &range, loud)?;
        let mut room = [Completion::default()];
        let taken = conn.cq().take(&mut room, Wait::block().timeout(LONG))?;
        assert_eq!(taken.len(), 1);
        Ok(())
    });
    none("slices and descriptors", || {
        let descriptor = near.descriptor();
        RemoteRegion::from_descriptor(descriptor.as_bytes())?.slice(8..16)?;
        near.slice(8..16).map(drop)
    });
    none("an empty queue", || {
        let taken = conn
            .cq()
            .poll(&mut [Completion::default()])
            .map(<[_]>::len)?;
        assert_eq!(taken, 0);
        Ok(())
    });
}
