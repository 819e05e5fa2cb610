//! The memory of a batch, and its way to the device.

use std::ptr::{NonNull, addr_of_mut};

use rdma_sys as ffi;

use super::{
    outcome::{list_result, no_extended, post_failed, taken},
    place::{Entry, NO_SGE, Place, UNEVEN},
    qp::Qp,
    request::Request,
    submit::{chain, submit_list},
};
use crate::{
    Call, Error, Result,
    mr::{FlushPlan, quick},
};

/// The operations of a [`Batch`](super::Batch) that were not submitted yet.
///
/// Its places are linked once, when they are made: each to its own element and to the place behind it. To post them takes an end to the
/// list, which is taken away again.
#[repr(C)]
pub(crate) struct SendBuffer {
    /// What a post named as refused; null at any other time.
    bad: *mut ffi::ibv_send_wr,
    /// Where the next operation goes.
    pub(super) next: Place,
    /// The first place, from which the list is posted; or `UNUSUAL`, where submitting is more than that.
    origin: *mut Entry,
    /// The memory of the places and the mark: the vector itself stays empty.
    places: Vec<Entry>,
    /// What the last post returned where that was not 0.
    ret: i32,
    /// The queue pair's key for the quick check.
    key: u32,
    /// The elements of the operations that have more than one.
    sges: Vec<ffi::ibv_sge>,
    /// Inline data; the elements that use it hold offsets into it until the batch is submitted.
    inline: Vec<u8>,
    /// There are elements or inline data in these two.
    gathered: bool,
    /// An operation of the batch gathers slices of different lengths.
    uneven: bool,
}

/// Above all places: nothing is posted by the quick way.
const UNUSUAL: *mut Entry = std::ptr::without_provenance_mut(usize::MAX);

// SAFETY: the pointers point into the buffer itself; those inside of the places are followed only by the provider within `submit`.
unsafe impl Send for SendBuffer {}
// SAFETY: as above.
unsafe impl Sync for SendBuffer {}

impl SendBuffer {
    /// A buffer for a queue pair with this send queue and this key for the quick check.
    pub(super) fn new(depth: usize, key: u32) -> Self {
        let capacity = depth.clamp(4, 64);
        let mut buffer = SendBuffer {
            next: Place(std::ptr::null_mut()),
            origin: std::ptr::null_mut(),
            bad: std::ptr::null_mut(),
            places: Vec::with_capacity(capacity + 1),
            ret: 0,
            key,
            sges: Vec::new(),
            inline: Vec::with_capacity(capacity * 8),
            gathered: false,
            uneven: false,
        };
        buffer.origin = buffer.first();
        buffer.next = Place(buffer.origin);
        buffer.make_places();
        buffer
    }

    fn first(&mut self) -> *mut Entry {
        self.places.as_mut_ptr()
    }

    fn len(&self) -> usize {
        self.len_at(self.next)
    }

    /// The number of operations where `next` is the next place.
    #[inline]
    pub(super) fn len_at(&self, next: Place) -> usize {
        (next.0.addr() - self.places.as_ptr().addr()) / size_of::<Entry>()
    }

    /// The operations.
    fn entries(&mut self) -> &mut [Entry] {
        let len = self.len();
        // SAFETY: so many places were written to.
        unsafe { std::slice::from_raw_parts_mut(self.first(), len) }
    }

    /// Forgets all operations, wherever the next place is.
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.origin != UNUSUAL {
            self.next = Place(self.origin);
        } else {
            self.clear_unusual(usize::MAX);
        }
    }

    /// Forgets `len` operations or fewer.
    #[inline(never)]
    fn clear_unusual(&mut self, len: usize) {
        if self.gathered {
            self.sges.clear();
            self.inline.clear();
            self.gathered = false;
            self.uneven = false;
            self.link(len);
        }
        self.origin = self.first();
        self.next = Place(self.origin);
    }

    /// Links the first `len` places where they are now: each to its element and to the place behind it. Sets the mark, too.
    #[inline(never)]
    fn link(&mut self, len: usize) {
        let first = self.first();
        let capacity = self.places.capacity() - 1;
        // SAFETY: the places and the mark behind them lie in the buffer, and nothing of them is read.
        unsafe {
            for n in 0..len.min(capacity) {
                let entry = first.add(n);
                let wr = (*entry).wr.as_mut_ptr();
                addr_of_mut!((*wr).sg_list).write(addr_of_mut!((*entry).sge));
                addr_of_mut!((*wr).next).write(entry.add(1).cast());
                addr_of_mut!((*entry).key).write(self.key);
                addr_of_mut!((*entry).flushes).write(FlushPlan::all());
            }
            let mark = first.add(capacity);
            addr_of_mut!((*mark).key).write(quick::NOTHING);
            addr_of_mut!((*mark).flushes).write(FlushPlan::empty());
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let len = self.len();
        let mut places = Vec::<Entry>::with_capacity(2 * len + 1);
        let first = places.as_mut_ptr();
        // SAFETY: both have room for `len` places, and are apart.
        unsafe { first.copy_from_nonoverlapping(self.first(), len) };
        self.places = places;
        if self.origin != UNUSUAL {
            self.origin = first;
        }
        self.next = Place(first.wrapping_add(len));
        self.make_places();
    }

    /// Makes the places from the next one on, and links all.
    fn make_places(&mut self) {
        let (first, len) = (self.first(), self.len());
        for n in len..self.places.capacity() {
            // SAFETY: there is memory for so many.
            unsafe { addr_of_mut!((*first.add(n)).sge).write(NO_SGE) };
        }
        self.link(usize::MAX);
    }

    /// Makes room for one more operation.
    #[inline]
    fn make_room(&mut self) {
        // SAFETY: the place is of this buffer.
        if unsafe { self.next.flushes() }.is_empty() {
            self.grow();
        }
    }

    /// Adds an operation with at most one element.
    #[inline]
    pub(super) fn add(&mut self, request: Request, num_sge: usize, sge: &ffi::ibv_sge) {
        self.make_room();
        // SAFETY: there is room now.
        self.next = unsafe { self.next.put(request, num_sge, sge) };
    }

    /// Adds an operation that exists only on the extended queue pair.
    #[inline]
    pub(super) fn add_extended(&mut self, request: Request) {
        self.make_room();
        // SAFETY: there is room now.
        self.next = unsafe { self.put_extended(self.next, request) };
    }

    /// Puts an operation that exists only on the extended queue pair to `place`; gives the next place.
    ///
    /// # Safety
    /// It must be this buffer's next place, and there must be room.
    #[inline(always)]
    pub(super) unsafe fn put_extended(&mut self, place: Place, request: Request) -> Place {
        self.origin = UNUSUAL;
        // SAFETY: the caller's word.
        unsafe { place.put_alone(request) }
    }

    /// Adds an operation with any number of elements.
    pub(super) fn push(&mut self, request: Request, sges: &[ffi::ibv_sge]) {
        match sges {
            [] => self.add(request, 0, &NO_SGE),
            [sge] => self.add(request, 1, sge),
            [first, rest @ ..] => {
                self.gathered = true;
                self.origin = UNUSUAL;
                self.sges.extend_from_slice(sges);
                let uneven = rest.iter().any(|sge| sge.length != first.length);
                self.uneven |= uneven;
                self.add(request, sges.len(), if uneven { &UNEVEN } else { &NO_SGE });
            }
        }
    }

    /// Adds an operation whose data are copied.
    #[inline]
    pub(super) fn push_inline(&mut self, mut request: Request, data: &[u8]) {
        self.gathered = true;
        self.origin = UNUSUAL;
        request.flags |= ffi::IBV_SEND_INLINE;
        let sge = ffi::ibv_sge {
            addr: self.inline.len() as u64,
            length: data.len() as u32,
            lkey: 0,
        };
        self.inline.extend_from_slice(data);
        self.add(request, usize::from(!data.is_empty()), &sge);
    }

    /// Posts all operations up to the place `end` with one doorbell, where that takes no more than that; gives the next place then, the
    /// first one. Else the batch is as it was, and `submit` does it or says why not: `None`.
    #[inline(always)]
    pub(super) fn submit_quick(&mut self, qp: &Qp, end: Place) -> Option<Place> {
        let (first, Place(last)) = (self.origin, end);
        if last <= first {
            return match self.start_all(qp, end) {
                true => Some(Place(self.origin)),
                false => None,
            };
        }
        // SAFETY: there is an operation behind `first`. The last one ends the list, the others are linked to the next; the list lies in
        // the buffer with all that it points at.
        unsafe {
            let link = addr_of_mut!((*(*last.sub(1)).wr.as_mut_ptr()).next);
            link.write(std::ptr::null_mut());
            let ret = qp.post_list(first.cast(), &mut self.bad);
            if !taken(ret, self.bad) {
                self.ret = ret;
                return None;
            }
            link.write(last.cast());
        }
        Some(Place(self.origin))
    }

    /// What `submit_quick` left to do.
    #[cold]
    #[inline(never)]
    pub(super) fn submit(&mut self, qp: &Qp) -> Result<()> {
        if !taken(self.ret, self.bad) {
            return self.refused();
        }
        if self.len() == 0 {
            return Ok(());
        }
        if self.gathered {
            return self.submit_gathered(qp);
        }
        Err(no_extended())
    }

    /// What `body` did when the next place was `next`, with the next place now.
    #[inline]
    pub(super) fn settled<R>(
        &mut self,
        next: Place,
        body: impl FnOnce(&mut Self) -> R,
    ) -> (Place, R) {
        self.next = next;
        let result = body(self);
        (self.next, result)
    }

    /// After a post that may have failed in its midst.
    #[cold]
    #[inline(never)]
    fn refused(&mut self) -> Result<()> {
        let ret = std::mem::replace(&mut self.ret, 0);
        let bad = std::mem::replace(&mut self.bad, std::ptr::null_mut());
        if self.origin == UNUSUAL {
            return Err(post_failed(Call::IbvWrComplete, ret, 0));
        }
        let (first, len) = (self.first().addr(), self.len());
        let result = list_result(
            Call::IbvPostSend,
            ret,
            first,
            bad.addr(),
            size_of::<Entry>(),
            len,
            0,
        );
        self.settle(result)
    }

    /// Forgets what the device accepted; the rest stays, linked.
    #[inline(never)]
    fn settle(&mut self, result: Result<()>) -> Result<()> {
        let len = self.len();
        match &result {
            Ok(()) => self.clear(),
            Err(Error::QueueFull { accepted, .. } | Error::PartlyPosted { accepted, .. }) => {
                self.remove_first(*accepted);
            }
            Err(_) => {}
        }
        self.link(len);
        result
    }

    /// Posts all operations up to the place `end` by the extended queue pair, where none has more than one element or inline data.
    #[inline(never)]
    fn start_all(&mut self, qp: &Qp, end: Place) -> bool {
        let first = self.first();
        let Some(ex) = qp.extended() else {
            return false;
        };
        if self.gathered || first == end.0 {
            return false;
        }
        // SAFETY: these are the operations, at least one, and they are as said.
        self.ret = unsafe { chain::<false>(ex, first, end.0, std::ptr::null(), std::ptr::null()) };
        if self.ret != 0 {
            return false;
        }
        self.origin = first;
        true
    }

    #[inline(never)]
    fn submit_gathered(&mut self, qp: &Qp) -> Result<()> {
        let extended = self.entries().iter().any(Entry::is_extended);
        let (first, len, end) = (self.first(), self.len(), self.next.0);
        let (sges, inline) = (self.sges.as_mut_ptr(), self.inline.as_ptr());
        let result = match (extended, qp.extended()) {
            // SAFETY: these are the operations with their elements.
            (false, _) => unsafe { submit_list(qp, first, len, sges, &self.inline, 0) },
            (true, None) => Err(no_extended()),
            (true, Some(ex)) if !self.uneven => {
                // SAFETY: as above.
                match unsafe { chain::<true>(ex, first, end, sges, inline) } {
                    0 => Ok(()),
                    ret => Err(post_failed(Call::IbvWrComplete, ret, 0)),
                }
            }
            (true, Some(ex)) => self.submit_uneven(qp, ex),
        };
        if result.is_ok() {
            self.clear_unusual(len);
            return result;
        }
        self.settle(result)
    }

    /// Runs of operations, one after the other: those that gather slices of different lengths go by lists. rdma-core's provider for rxe
    /// (seen in 44 to 56) takes the first slice's length for that of each when it is told of them by `ibv_wr_set_sge_list`, and would
    /// cut or overrun the data without a word.
    #[cold]
    fn submit_uneven(&mut self, qp: &Qp, ex: NonNull<ffi::ibv_qp_ex>) -> Result<()> {
        let (mut first, mut left) = (self.first(), self.len());
        let mut sges = self.sges.as_mut_ptr();
        let mut before = 0;
        while left > 0 {
            // SAFETY: `left` operations lie from `first` on, and their elements from `sges` on.
            unsafe {
                let rest = std::slice::from_raw_parts(first, left);
                let uneven = (*first).is_uneven();
                let run = rest.iter().take_while(|entry| entry.is_uneven() == uneven);
                let (len, listed) = run.fold((0, 0), |(len, listed), entry| {
                    (len + 1, listed + entry.listed())
                });
                let end = first.add(len);
                if uneven {
                    submit_list(qp, first, len, sges, &self.inline, before)?;
                } else {
                    let inline = self.inline.as_ptr();
                    let ret = chain::<true>(ex, first, end, sges, inline);
                    if ret != 0 {
                        return Err(post_failed(Call::IbvWrComplete, ret, before));
                    }
                }
                first = end;
                sges = sges.add(listed);
                before += len;
                left -= len;
            }
        }
        Ok(())
    }

    /// Removes the first `n` operations.
    fn remove_first(&mut self, n: usize) {
        let len = self.len();
        let n = n.min(len);
        let listed: usize = self.entries()[..n].iter().map(Entry::listed).sum();
        self.sges.drain(..listed);
        let first = self.first();
        // SAFETY: those that stay lie behind the first `n`.
        unsafe { first.copy_from(first.add(n), len - n) };
        self.next = Place(first.wrapping_add(len - n));
        if n == len {
            self.clear();
        }
    }
}
