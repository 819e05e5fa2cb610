//! The memory of a batch, and its ways to the device.

use std::ptr::addr_of_mut;

use rdma_sys as ffi;

use super::{
    Qp,
    chain::{NO_ELEMENT, chain, check_room, parts, plain_chain},
    entry::{Entry, Where, data, is_extended, put, put_alone, wr},
    outcome::{accepted, post_failed, taken},
    sink::Data,
};
use crate::{
    Call, Result,
    mr::{FlushPlan, quick},
    verbs::Request,
};

/// The operations of a [`Batch`](super::Batch) that were not submitted yet. Where the next one goes
/// is the batch's to know: it is the argument `next` here.
///
/// The places are linked once, when they are made: each to its own element and to the place behind
/// it. To post them takes an end to the list, which is taken away again.
#[repr(C)]
pub(crate) struct BatchMemory {
    /// First, so that its address is the memory's own and takes no register. What the last post
    /// named as refused; null but between a post and [`refused`](Self::refused).
    bad: *mut ffi::ibv_send_wr,
    /// The first place in the mode `List`, else [`BEHIND`] all places: one comparison tells that
    /// there is a list to post, and one store that there is none.
    pub(super) list: *mut Entry,
    /// The first place.
    pub(super) first: *mut Entry,
    /// There are elements or data that do not lie in the entries.
    mixed: bool,
    /// The queue pair's key for the quick check.
    key: u32,
    /// The length of its send queue. The place behind so many fails the quick check too, so that a
    /// batch that is longer is known.
    depth: usize,
    /// The memory of the places and the mark: the vector itself stays empty.
    places: Vec<Entry>,
    /// The elements of the operations that have more than one.
    sges: Vec<ffi::ibv_sge>,
    inline: Vec<u8>,
}

/// How a batch goes to the device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// As the linked list that it is, by `ibv_post_send(3)`.
    List,
    /// Between one `ibv_wr_start` and one `ibv_wr_complete`: it holds operations that only
    /// `ibv_wr_post(3)` has.
    Chain,
    /// Either, once the elements and data that do not lie in the entries are linked.
    Mixed,
}

/// Above all places.
const BEHIND: *mut Entry = std::ptr::without_provenance_mut(usize::MAX);

// SAFETY: the pointers point into the memory itself; those inside of the places are followed only
// by the provider within `submit`.
unsafe impl Send for BatchMemory {}
// SAFETY: as above.
unsafe impl Sync for BatchMemory {}

impl BatchMemory {
    /// Memory for a queue pair with this send queue and this key for the quick check.
    pub(super) fn new(depth: usize, key: u32) -> Self {
        let capacity = depth.clamp(4, 64);
        let mut memory = BatchMemory {
            bad: std::ptr::null_mut(),
            list: std::ptr::null_mut(),
            first: std::ptr::null_mut(),
            mixed: false,
            key,
            depth,
            places: Vec::with_capacity(capacity + 1),
            sges: Vec::new(),
            inline: Vec::with_capacity(capacity * 8),
        };
        memory.first = memory.places.as_mut_ptr();
        memory.list = memory.first;
        memory.link(usize::MAX);
        memory
    }

    #[inline(always)]
    fn mode(&self) -> Mode {
        match (self.mixed, self.list == BEHIND) {
            (true, _) => Mode::Mixed,
            (false, true) => Mode::Chain,
            (false, false) => Mode::List,
        }
    }

    /// The number of operations before `next`; the two parts of a split read are one.
    pub(super) fn len(&self, next: *mut Entry) -> usize {
        let places = self.places_before(next);
        match self.mode() {
            Mode::List | Mode::Chain => places,
            // SAFETY: they lie before `next`, so they are places.
            Mode::Mixed => places - unsafe { parts(self.first, places) },
        }
    }

    fn places_before(&self, next: *mut Entry) -> usize {
        (next.addr() - self.first.addr()) / size_of::<Entry>()
    }

    /// Forgets all operations; gives the next place.
    #[inline]
    pub(super) fn clear(&mut self) -> *mut Entry {
        if self.mixed {
            self.clear_mixed();
        }
        self.list = self.first;
        self.first
    }

    #[cold]
    #[inline(never)]
    fn clear_mixed(&mut self) {
        self.mixed = false;
        self.sges.clear();
        self.inline.clear();
        self.link(usize::MAX);
    }

    /// Links the first `len` places, as those of plain operations: each to its element and to the
    /// place behind it. Sets the mark, too.
    #[inline(never)]
    fn link(&mut self, len: usize) {
        let capacity = self.places.capacity() - 1;
        // SAFETY: the places and the mark behind them lie in the vector's memory, and nothing of
        // them is read.
        unsafe {
            for n in 0..len.min(capacity) {
                let entry = self.first.add(n);
                addr_of_mut!((*wr(entry)).sg_list).write(addr_of_mut!((*entry).sge));
                addr_of_mut!((*wr(entry)).next).write(wr(entry.add(1)));
                addr_of_mut!((*entry).key).write(self.key);
                addr_of_mut!((*entry).flushes).write(FlushPlan::all());
                addr_of_mut!((*entry).data).write(Where::Here);
                addr_of_mut!((*entry).part).write(false);
            }
            for mark in [capacity, self.depth.min(capacity)] {
                let mark = self.first.add(mark);
                addr_of_mut!((*mark).key).write(quick::NOTHING);
                addr_of_mut!((*mark).flushes).write(FlushPlan::empty());
            }
        }
    }

    /// Makes room for `more` operations behind `next`; gives the next place.
    fn reserve(&mut self, next: *mut Entry, more: usize) -> *mut Entry {
        let len = self.places_before(next);
        let capacity = self.places.capacity() - 1;
        if len + more > self.depth {
            // The full way of a submission looks whether it can ever be posted.
            self.mixed = true;
            self.list = BEHIND;
        }
        if len + more <= capacity {
            return next;
        }
        let old = std::mem::replace(
            &mut self.places,
            Vec::with_capacity(2 * capacity + more + 1),
        );
        let from = self.first;
        self.first = self.places.as_mut_ptr();
        if self.list != BEHIND {
            self.list = self.first;
        }
        self.link(usize::MAX);
        // SAFETY: both have room for `len` places, and are apart; what is moved is linked again.
        unsafe {
            self.first.copy_from_nonoverlapping(from, len);
            self.relink(len);
        }
        drop(old);
        self.first.wrapping_add(len)
    }

    /// Links the first `len` places, which hold operations, where they are now.
    ///
    /// # Safety
    /// They must be places that hold operations.
    unsafe fn relink(&mut self, len: usize) {
        let (sges, inline) = (self.sges.as_mut_ptr(), self.inline.as_mut_ptr());
        // SAFETY: the caller's places; the lists hold from `start` on what was put there for them.
        unsafe {
            for n in 0..len {
                let entry = self.first.add(n);
                let mut list = addr_of_mut!((*entry).sge);
                match data(entry) {
                    Where::Here => {}
                    Where::Listed | Where::Uneven => list = sges.add((*entry).start),
                    Where::Inline => {
                        addr_of_mut!((*list).addr).write(inline.add((*entry).start).addr() as u64);
                    }
                }
                addr_of_mut!((*wr(entry)).sg_list).write(list);
                addr_of_mut!((*wr(entry)).next).write(wr(entry.add(1)));
            }
        }
    }

    /// Puts an operation of `ibv_wr_post(3)` alone to `next`; gives the next place.
    ///
    /// # Safety
    /// There must be room.
    #[inline(always)]
    pub(super) unsafe fn put_extended(&mut self, next: *mut Entry, request: Request) -> *mut Entry {
        self.list = BEHIND;
        // SAFETY: the caller's word on the room.
        unsafe { put_alone(next, request) }
    }

    /// Adds a checked operation; gives the next place.
    pub(super) fn add(
        &mut self,
        next: *mut Entry,
        mut request: Request,
        data: Data<'_>,
    ) -> *mut Entry {
        let next = self.reserve(next, 2);
        let mut sge = NO_ELEMENT;
        // SAFETY: there is room for two.
        unsafe {
            match data {
                Data::Elements(_) if request.op.is_extended() => self.put_extended(next, request),
                Data::Elements(list) => self.add_elements(next, request, list),
                Data::Copied(bytes) => {
                    self.mark(next, Where::Inline);
                    addr_of_mut!((*next).start).write(self.inline.len());
                    self.inline.extend_from_slice(bytes);
                    request.flags |= u64::from(ffi::IBV_SEND_INLINE);
                    sge.length = bytes.len() as u32;
                    put(next, request, usize::from(!bytes.is_empty()), &sge)
                }
                Data::Behind(first, list, rest) => {
                    self.mark(next, Where::Here);
                    addr_of_mut!((*next).part).write(true);
                    let next = self.add_elements(next, *first, list);
                    put(next, request, 1, &rest)
                }
            }
        }
    }

    /// # Safety
    /// There must be room.
    unsafe fn add_elements(
        &mut self,
        next: *mut Entry,
        request: Request,
        list: &[ffi::ibv_sge],
    ) -> *mut Entry {
        // SAFETY: the caller's word on the room.
        unsafe {
            match list {
                [] => put_alone(next, request),
                [sge] => put(next, request, 1, sge),
                [first, ..] => {
                    let even = list.iter().all(|sge| sge.length == first.length);
                    self.mark(next, if even { Where::Listed } else { Where::Uneven });
                    addr_of_mut!((*next).start).write(self.sges.len());
                    self.sges.extend_from_slice(list);
                    put(next, request, list.len(), &NO_ELEMENT)
                }
            }
        }
    }

    /// # Safety
    /// `next` must be a place.
    unsafe fn mark(&mut self, next: *mut Entry, place: Where) {
        self.mixed = true;
        self.list = BEHIND;
        // SAFETY: the caller's place.
        unsafe { addr_of_mut!((*next).data).write(place) };
    }

    /// Posts the list of all operations before `next`; gives the provider's return code where not
    /// all was taken.
    ///
    /// # Safety
    /// `next` must be behind [`list`](Self::list).
    #[inline(always)]
    pub(super) unsafe fn post_list(&mut self, qp: &Qp, next: *mut Entry) -> Option<i32> {
        // SAFETY: the mode is `List` and there is an operation. The last one ends the list, the
        // others are linked to the next; the list lies in the memory with all that it points at.
        unsafe {
            let link = addr_of_mut!((*wr(next.sub(1))).next);
            link.write(std::ptr::null_mut());
            let ret = qp.raw.post_send(wr(self.list), &mut self.bad);
            link.write(wr(next));
            if taken(ret, self.bad) {
                None
            } else {
                Some(ret)
            }
        }
    }

    /// Posts all operations before `next` where they are a plain chain; gives the provider's return
    /// code then, else `None`.
    #[inline(always)]
    pub(super) fn post_chain(&mut self, qp: &Qp, next: *mut Entry) -> Option<i32> {
        if self.mode() != Mode::Chain {
            return None;
        }
        // SAFETY: an operation made the mode what it is, and the check lets through only what the
        // queue pair was created with, so it is extended. The operations are plain, as the mode
        // says.
        let ret = unsafe { plain_chain(qp.raw.extended().unwrap_unchecked(), self.first, next) };
        if ret == 0 {
            self.list = self.first;
        }
        Some(ret)
    }

    /// Posts all operations before `next`, if there are any, and gives the next place.
    #[cold]
    #[inline(never)]
    pub(super) fn submit(&mut self, qp: &Qp, next: *mut Entry) -> (Result<()>, *mut Entry) {
        let len = self.places_before(next);
        if len == 0 {
            return (Ok(()), self.clear());
        }
        if len > self.depth {
            // SAFETY: from `first` on there are `len` operations.
            if let Err(err) = unsafe { check_room(self.first, len, self.depth) } {
                return (Err(err), next);
            }
        }
        // SAFETY: from `first` on there are `len` operations, and the memory has all that they
        // point at.
        match unsafe { self.submit_all(qp, next, len) } {
            Ok(()) => (Ok(()), self.clear()),
            Err((ret, call, places)) => {
                let (operations, next) = self.remove(places.min(len), len);
                (Err(post_failed(call, ret, operations)), next)
            }
        }
    }

    /// The provider's return code, the call, and how many places were accepted, where not all were.
    ///
    /// # Safety
    /// There must be `len` operations, at least one, before `next`.
    unsafe fn submit_all(
        &mut self,
        qp: &Qp,
        next: *mut Entry,
        len: usize,
    ) -> std::result::Result<(), (i32, Call, usize)> {
        // SAFETY: the caller's operations.
        unsafe {
            if self.mixed {
                self.relink(len);
            }
            let (mut entry, first) = (self.first, self.first);
            let chained = (0..len).any(|n| is_extended(first.add(n)));
            while entry != next {
                // Operations of different ways go in runs. rdma-core's provider for rxe (seen in 44
                // to 56) takes the first element's length for that of each when it is told of them
                // by `ibv_wr_set_sge_list`, and would cut or overrun the data without a word.
                let by_list = |entry| !chained || data(entry) == Where::Uneven;
                let (list, mut end) = (by_list(entry), entry.add(1));
                while end != next && by_list(end) == list {
                    end = end.add(1);
                }
                let before = self.places_before(entry);
                if list {
                    let link = addr_of_mut!((*wr(end.sub(1))).next);
                    link.write(std::ptr::null_mut());
                    let mut bad = std::ptr::null_mut();
                    let ret = qp.raw.post_send(wr(entry), &mut bad);
                    link.write(wr(end));
                    let run = self.places_before(end) - before;
                    let (from, stride) = (entry.addr(), size_of::<Entry>());
                    if let Some((ret, n)) = accepted(ret, from, bad.addr(), stride, run) {
                        return Err((ret, Call::IbvPostSend, before + n));
                    }
                } else {
                    let Some(ex) = qp.raw.extended() else {
                        return Err((libc::EOPNOTSUPP, Call::IbvWrComplete, before));
                    };
                    match chain::<false>(ex, entry, end) {
                        0 => {}
                        ret => return Err((ret, Call::IbvWrComplete, before)),
                    }
                }
                entry = end;
            }
        }
        Ok(())
    }

    /// After a post by [`post_list`](Self::post_list) that was refused: the error and the next
    /// place.
    #[cold]
    #[inline(never)]
    pub(super) fn refused(&mut self, next: *mut Entry, ret: i32) -> (Result<()>, *mut Entry) {
        let bad = std::mem::replace(&mut self.bad, std::ptr::null_mut());
        let len = self.places_before(next);
        let (first, stride) = (self.first.addr(), size_of::<Entry>());
        match accepted(ret, first, bad.addr(), stride, len) {
            None => (Ok(()), self.clear()),
            Some((ret, places)) => {
                let (operations, next) = self.remove(places, len);
                (Err(post_failed(Call::IbvPostSend, ret, operations)), next)
            }
        }
    }

    /// Removes the first `n` of `len` places, which were accepted; gives the number of their
    /// operations, and the next place. Of a split read whose second part was not accepted, both
    /// parts stay.
    fn remove(&mut self, mut n: usize, len: usize) -> (usize, *mut Entry) {
        let first = self.first;
        // SAFETY: `len` places hold operations; those that stay lie behind the first `n`.
        unsafe {
            if n > 0 && (*first.add(n - 1)).part {
                n -= 1;
            }
            let operations = n - parts(first, n);
            if n == len {
                return (operations, self.clear());
            }
            first.copy_from(first.add(n), len - n);
            self.forget_unused(len - n);
            self.relink(len - n);
            for n in len - n..len {
                addr_of_mut!((*first.add(n)).data).write(Where::Here);
                addr_of_mut!((*first.add(n)).part).write(false);
                addr_of_mut!((*wr(first.add(n))).sg_list).write(addr_of_mut!((*first.add(n)).sge));
            }
            (operations, first.add(len - n))
        }
    }
}

impl BatchMemory {
    /// Takes from the lists what the operations before the first `len` places had there.
    ///
    /// # Safety
    /// The first `len` places must hold operations.
    unsafe fn forget_unused(&mut self, len: usize) {
        let (mut sges, mut inline) = (self.sges.len(), self.inline.len());
        let first = self.first;
        // SAFETY: the caller's places, in whose order the lists are.
        unsafe {
            for entry in (0..len).map(|n| first.add(n)) {
                match data(entry) {
                    Where::Here => {}
                    Where::Listed | Where::Uneven => sges = sges.min((*entry).start),
                    Where::Inline => inline = inline.min((*entry).start),
                }
            }
            for entry in (0..len).map(|n| first.add(n)) {
                match data(entry) {
                    Where::Here => {}
                    Where::Listed | Where::Uneven => (*entry).start -= sges,
                    Where::Inline => (*entry).start -= inline,
                }
            }
        }
        self.sges.drain(..sges);
        self.inline.drain(..inline);
    }
}
