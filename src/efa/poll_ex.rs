use rdma_sys as ffi;

use super::Cq;
use crate::{
    Call, Error, Result,
    numbers::{WcOpcode, WcStatus},
    verbs::errno,
};

/// A completion with what only EFA tells ([`Cq::poll_ex`]).
///
/// Of a failed one only `wr_id`, `status`, `qp_num` and `vendor_error` mean something; the rest is
/// `None` or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionEx {
    /// The number that was given to the request.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// The device's own status ([`Status`](super::Status)).
    pub vendor_error: u32,
    /// The local queue pair.
    pub qp_num: u32,
    /// What it was.
    pub opcode: Option<WcOpcode>,
    /// The bytes received.
    pub byte_len: u32,
    /// The immediate data, in the host's byte order.
    pub imm_data: Option<u32>,
    /// The sender's queue pair.
    pub source_qp: u32,
    /// The sender's GID, where the queue was created with [source
    /// GIDs](super::CqOptions::source_gids) and the sender has no address handle here.
    #[doc(alias = "efadv_wc_read_sgid")]
    pub source_gid: Option<[u8; 16]>,
    /// A write with immediate data that used up no receive request, where the queue was created to
    /// [tell](super::CqOptions::unsolicited).
    #[doc(alias = "efadv_wc_is_unsolicited")]
    pub unsolicited: bool,
}

impl Default for CompletionEx {
    fn default() -> Self {
        CompletionEx {
            wr_id: 0,
            status: WcStatus::SUCCESS,
            vendor_error: 0,
            qp_num: 0,
            opcode: None,
            byte_len: 0,
            imm_data: None,
            source_qp: 0,
            source_gid: None,
            unsolicited: false,
        }
    }
}

/// The answer of one reader of the current completion; 0 where the provider has no such reader.
macro_rules! read {
    ($cq:ident.$reader:ident) => {{
        // SAFETY: the macro is used only while a poll is open and a completion is current.
        let value = unsafe { (*$cq).$reader.map(|read| read($cq)) };
        value.unwrap_or_default()
    }};
}

impl Cq {
    /// Takes completions into `buf` with what only EFA tells, and says how many; does not block.
    ///
    /// # Errors
    /// As [`poll`](Self::poll). After an error in the midst those that were taken are in `buf`, and
    /// the error comes with the next call.
    ///
    /// Source: `ibv_create_cq_ex(3)`, `infiniband/efadv.h`.
    #[doc(alias = "ibv_start_poll")]
    pub fn poll_ex(&self, buf: &mut [CompletionEx]) -> Result<usize> {
        self.must_be_mapped()?;
        if buf.is_empty() {
            return Ok(0);
        }
        let cq = self.as_raw();
        // SAFETY: the queue is alive.
        let (start, next, end) = unsafe { ((*cq).start_poll, (*cq).next_poll, (*cq).end_poll) };
        let (Some(start), Some(next), Some(end)) = (start, next, end) else {
            return Err(Error::not_supported("extended polling on this device"));
        };
        let mut attr = ffi::ibv_poll_cq_attr::default();
        // SAFETY: the queue is alive and extended.
        match unsafe { start(cq, &mut attr) } {
            0 => {}
            ret if errno(ret) == libc::ENOENT => return Ok(0),
            ret => return Err(Error::provider(Call::IbvStartPoll, errno(ret))),
        }
        let len = buf.len();
        let mut taken = 0;
        for place in buf {
            // SAFETY: a poll is open and a completion is current.
            *place = unsafe { self.current() };
            taken += 1;
            // SAFETY: a poll is open. A completion that has no place here is not asked for: it
            // would be lost.
            if taken == len || unsafe { next(cq) } != 0 {
                break;
            }
        }
        // SAFETY: a poll is open.
        unsafe { end(cq) };
        Ok(taken)
    }

    /// # Safety
    /// A poll must be open and a completion current.
    unsafe fn current(&self) -> CompletionEx {
        let cq = self.as_raw();
        // SAFETY: the queue is alive; while the poll is open its fields are those of the current
        // completion.
        let (wr_id, status) = unsafe { ((*cq).wr_id, WcStatus::from_raw((*cq).status)) };
        let mut wc = CompletionEx {
            wr_id,
            status,
            vendor_error: read!(cq.read_vendor_err),
            qp_num: read!(cq.read_qp_num),
            ..Default::default()
        };
        if status != WcStatus::SUCCESS {
            return wc;
        }
        let flags: u32 = read!(cq.read_wc_flags);
        wc.opcode = Some(WcOpcode::from_raw(read!(cq.read_opcode)));
        wc.byte_len = read!(cq.read_byte_len);
        wc.source_qp = read!(cq.read_src_qp);
        if flags & ffi::IBV_WC_WITH_IMM != 0 {
            wc.imm_data = Some(u32::from_be(read!(cq.read_imm_data)));
        }
        // SAFETY: libefa's part of this queue.
        let (read_sgid, is_unsolicited) = unsafe {
            (
                (*self.as_efa()).wc_read_sgid,
                (*self.as_efa()).wc_is_unsolicited,
            )
        };
        if let Some(read_sgid) = read_sgid.filter(|_| self.options().source_gids) {
            let mut gid = ffi::ibv_gid::default();
            // SAFETY: a completion is current. Another value than 0 says that the sender has an
            // address handle.
            if unsafe { read_sgid(self.as_efa(), &mut gid) } == 0 {
                // SAFETY: all members of the union are plain bytes.
                wc.source_gid = Some(unsafe { gid.raw });
            }
        }
        if let Some(is_unsolicited) = is_unsolicited.filter(|_| self.options().unsolicited) {
            // SAFETY: a completion is current.
            wc.unsolicited = unsafe { is_unsolicited(self.as_efa()) };
        }
        wc
    }
}
