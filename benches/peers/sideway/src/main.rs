//! The operations of benches/cost/main.rs through the crate sideway.
//!
//! `peer-sideway basic|extended OP N`, on the stand-in device; see ci/bench-peers. `basic` posts by
//! `ibv_post_send`, `extended` by `ibv_wr_start` and its kin; the crate has both. `batch_*` flush
//! by reading.

use std::{error::Error, hint::black_box, process::ExitCode, sync::Arc};

use sideway::ibverbs::{
    AccessFlags,
    address::AddressHandleAttribute,
    completion::{BasicCompletionQueue, PollCompletionQueueError},
    device::DeviceList,
    device_context::{DeviceContext, Mtu},
    memory_region::MemoryRegion,
    queue_pair::{
        PostSendGuard, QueuePair, QueuePairAttribute, QueuePairState, SendOperationFlags,
        SetScatterGatherEntry, WorkRequestFlags,
    },
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const LENGTH: u32 = 64;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.as_slice() {
        [kind, op, n] => n.parse().map_err(Into::into).and_then(|n| run(kind, op, n)),
        _ => Err("usage: peer-sideway basic|extended OP N".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("{}: {err}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn run(kind: &str, op: &str, n: u64) -> Result<()> {
    let devices = DeviceList::new()?;
    let context = devices.get(0).ok_or("no device")?.open()?;
    let pd = context.alloc_pd()?;
    let memory = vec![0u8; 4096];
    let access = AccessFlags::LocalWrite | AccessFlags::RemoteWrite | AccessFlags::RemoteRead;
    // SAFETY: the memory lives until the end, and nothing looks at it.
    let mr = unsafe { pd.reg_mr(memory.as_ptr() as usize, memory.len(), access)? };
    let mut cqs = context.create_cq_builder();
    cqs.setup_cqe(64);
    // Not an extended one, which the null mode of the stand-in does not have.
    let cq = cqs.build()?;
    let mut builder = pd.create_qp_builder();
    builder
        .setup_max_send_wr(64)
        .setup_max_recv_wr(64)
        .setup_send_cq(cq.clone())
        .setup_recv_cq(cq.clone())
        .setup_send_ops_flags(
            SendOperationFlags::Write | SendOperationFlags::Read | SendOperationFlags::Send,
        );
    // Two calls, so that each kind's code is known when it is compiled.
    if kind == "extended" {
        let mut qp = builder.build_ex()?;
        connect(&context, &mut qp)?;
        repeat(op, n, &mut qp, &cq, &mr)
    } else {
        let mut qp = builder.build()?;
        connect(&context, &mut qp)?;
        repeat(op, n, &mut qp, &cq, &mr)
    }
}

/// Connects the queue pair with itself.
fn connect(context: &Arc<DeviceContext>, qp: &mut impl QueuePair) -> Result<()> {
    let mut init = QueuePairAttribute::new();
    init.setup_state(QueuePairState::Init)
        .setup_pkey_index(0)
        .setup_port(1)
        .setup_access_flags(AccessFlags::RemoteWrite | AccessFlags::RemoteRead);
    qp.modify(&init)?;
    let gids = context.query_gid_table()?;
    let gid = gids.first().ok_or("no address")?;
    let mut address = AddressHandleAttribute::new();
    address
        .setup_port(1)
        .setup_grh_src_gid_index(gid.gid_index().try_into()?)
        .setup_grh_dest_gid(&gid.gid())
        .setup_grh_hop_limit(1);
    let mut receive = QueuePairAttribute::new();
    receive
        .setup_state(QueuePairState::ReadyToReceive)
        .setup_path_mtu(Mtu::Mtu1024)
        .setup_dest_qp_num(qp.qp_number())
        .setup_rq_psn(0)
        .setup_max_dest_read_atomic(1)
        .setup_min_rnr_timer(12)
        .setup_address_vector(&address);
    qp.modify(&receive)?;
    let mut send = QueuePairAttribute::new();
    send.setup_state(QueuePairState::ReadyToSend)
        .setup_sq_psn(0)
        .setup_timeout(14)
        .setup_retry_cnt(7)
        .setup_rnr_retry(7)
        .setup_max_read_atomic(1);
    qp.modify(&send)?;
    Ok(())
}

/// What the requests are about.
struct Places {
    lkey: u32,
    local: u64,
    rkey: u32,
    remote: u64,
}

#[inline]
fn write(guard: &mut impl PostSendGuard, id: u64, flags: WorkRequestFlags, at: &Places) {
    let request = guard
        .construct_wr(id, flags)
        .setup_write(at.rkey, at.remote);
    // SAFETY: registered memory that lives until the end.
    unsafe { request.setup_sge(at.lkey, at.local, LENGTH) };
}

#[inline]
fn read(guard: &mut impl PostSendGuard, id: u64, length: u32, at: &Places) {
    let request = guard
        .construct_wr(id, WorkRequestFlags::none())
        .setup_read(at.rkey, at.remote);
    // SAFETY: as in `write`.
    unsafe { request.setup_sge(at.lkey, at.local, length) };
}

/// Takes what is there; how many.
#[inline]
fn poll(cq: &BasicCompletionQueue) -> Result<usize> {
    match cq.start_poll() {
        Ok(poller) => {
            let mut taken = 0;
            for completion in poller {
                black_box((completion.wr_id(), completion.status()));
                taken += 1;
            }
            Ok(taken)
        }
        Err(PollCompletionQueueError::CompletionQueueEmpty) => Ok(0),
        Err(err) => Err(err.into()),
    }
}

fn repeat(
    op: &str,
    n: u64,
    qp: &mut impl QueuePair,
    cq: &BasicCompletionQueue,
    mr: &MemoryRegion,
) -> Result<()> {
    let start = mr.get_ptr() as u64;
    let places = black_box(Places {
        lkey: mr.lkey(),
        local: start,
        rkey: mr.rkey(),
        remote: start + 2048,
    });
    let at = black_box(&places);
    let quiet = WorkRequestFlags::none();
    let (qp, cq) = (black_box(qp), black_box(cq));
    match op {
        "none" => (0..n).for_each(|i| {
            black_box(i);
        }),
        "write" => {
            for i in 0..n {
                let mut guard = qp.start_post_send();
                write(&mut guard, i, quiet, at);
                guard.post()?;
            }
        }
        "read" => {
            for i in 0..n {
                let mut guard = qp.start_post_send();
                read(&mut guard, i, LENGTH, at);
                guard.post()?;
            }
        }
        "send" => {
            for i in 0..n {
                let mut guard = qp.start_post_send();
                let request = guard.construct_wr(i, quiet).setup_send();
                // SAFETY: as in `write`.
                unsafe { request.setup_sge(at.lkey, at.local, LENGTH) };
                guard.post()?;
            }
        }
        "recv" => {
            for i in 0..n {
                let mut guard = qp.start_post_recv();
                let request = guard.construct_wr(i);
                // SAFETY: as in `write`.
                unsafe { request.setup_sge(at.lkey, at.local, LENGTH) };
                guard.post()?;
            }
        }
        "poll_empty" => {
            for _ in 0..n {
                if poll(cq)? != 0 {
                    return Err("a completion out of nothing".into());
                }
            }
        }
        "write_poll" => {
            for i in 0..n {
                let mut guard = qp.start_post_send();
                write(&mut guard, i, WorkRequestFlags::Signaled, at);
                guard.post()?;
                if poll(cq)? != 1 {
                    return Err("not one completion".into());
                }
            }
        }
        // The flush is by reading: the crate has no native one.
        "batch_2" | "batch_17" => {
            let writes = if op == "batch_2" { 1 } else { 16 };
            for i in 0..n {
                let mut guard = qp.start_post_send();
                for _ in 0..writes {
                    write(&mut guard, i, quiet, at);
                }
                read(&mut guard, i, 1, at);
                guard.post()?;
            }
        }
        _ => return Err("no such operation".into()),
    }
    Ok(())
}
