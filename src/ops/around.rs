//! What is posted in place of an operation that a fault of the device's driver would spoil; see
//! [`Workarounds`](crate::verbs::Workarounds).

use rdma_sys as ffi;

use super::{
    sges::MAX_SGE,
    sink::{Data, Sink},
};
use crate::{
    Result,
    verbs::{FIRST_PART, Op, Request, SHORT},
};

/// Posts what does the same.
#[cold]
pub(super) fn around<'q>(
    sink: &mut impl Sink<'q>,
    request: Request,
    list: &[ffi::ibv_sge],
) -> Result<()> {
    let qp = sink.qp();
    if request.op == Op::Read {
        return read_around(sink, request, list);
    }
    let [sge] = list else {
        return sink.put_checked(request, Data::Elements(list));
    };
    match request.op {
        Op::Write | Op::Send if qp.workarounds.inline(sge) && qp.max_inline >= SHORT => {
            let mut data = [0; SHORT as usize];
            let data = &mut data[..sge.length as usize];
            for (n, byte) in data.iter_mut().enumerate() {
                // SAFETY: the element lies in a region of this process's memory, which the caller
                // has borrowed. Its bytes may change at any time, so they are read as such.
                *byte = unsafe { std::ptr::read_volatile((sge.addr as *const u8).add(n)) };
            }
            sink.put_checked(request, Data::Copied(data))
        }
        // The device takes no such message inline; of two elements none is short enough for the
        // fault.
        Op::SendInvalidate if qp.workarounds.inline(sge) && qp.max_send_sge >= 2 => {
            let [head, rest] = halves(sge, 1);
            sink.put_checked(request, Data::Elements(&[head, rest]))
        }
        _ => sink.put_checked(request, Data::Elements(list)),
    }
}

/// A read, in two parts where a fault asks for it: the second one lies in the last element.
fn read_around<'q>(
    sink: &mut impl Sink<'q>,
    mut request: Request,
    list: &[ffi::ibv_sge],
) -> Result<()> {
    let signaled = request.flags & u64::from(ffi::IBV_SEND_SIGNALED) != 0;
    let len = list.iter().map(|sge| u64::from(sge.length)).sum();
    let split = sink.qp().workarounds;
    let (Some(at), [.., last]) = (split.split(request.target.addr(), len, signaled), list) else {
        return sink.put_checked(request, Data::Elements(list));
    };
    let second = (len - at).min(last.length.into());
    let before = Request {
        wr_id: FIRST_PART,
        flags: request.flags & !u64::from(ffi::IBV_SEND_SIGNALED),
        ..request
    };
    let [head, rest] = halves(last, last.length - second as u32);
    let mut first = [*last; MAX_SGE];
    let first = &mut first[..list.len()];
    first.copy_from_slice(list);
    first[list.len() - 1] = head;
    let first = &first[..list.len() - usize::from(head.length == 0)];
    // Reads are answered in order: the first part has waited for what the fence is for.
    request.flags &= !u64::from(ffi::IBV_SEND_FENCE);
    request.target = request.target.at(len - second);
    sink.put_checked(request, Data::Behind(&before, first, rest))
}

/// An element as two, the first of which has `first` bytes.
fn halves(sge: &ffi::ibv_sge, first: u32) -> [ffi::ibv_sge; 2] {
    let (mut head, mut rest) = (*sge, *sge);
    head.length = first;
    rest.length -= first;
    rest.addr += u64::from(first);
    [head, rest]
}
