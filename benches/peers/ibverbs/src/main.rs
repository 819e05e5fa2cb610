//! The operations of benches/cost/main.rs that the crate ibverbs has: sending, receiving and
//! polling. It has no one-sided ones.
//!
//! `peer-ibverbs OP N`, on the stand-in device; see ci/bench-peers.

use std::{error::Error, hint::black_box, process::ExitCode};

const LENGTH: usize = 64;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.as_slice() {
        [op, n] => n.parse().map_err(Into::into).and_then(|n| run(op, n)),
        _ => Err("usage: peer-ibverbs OP N".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("{}: {err}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn run(op: &str, n: u64) -> Result<(), Box<dyn Error>> {
    let devices = ibverbs::devices()?;
    let context = devices.get(0).ok_or("no device")?.open()?;
    let cq = context.create_cq(64, 0)?;
    let pd = context.alloc_pd()?;
    let prepared = pd
        .create_qp(&cq, &cq, ibverbs::ibv_qp_type::IBV_QPT_RC)
        .set_gid_index(0)
        .set_max_send_wr(64)
        .set_max_recv_wr(64)
        .build()?;
    // Connected with itself.
    let endpoint = prepared.endpoint();
    let mut qp = prepared.handshake(endpoint)?;
    let mut memory = pd.allocate::<u8>(4096)?;
    let (qp, cq, memory) = (black_box(&mut qp), black_box(&cq), black_box(&mut memory));
    let mut completions = [ibverbs::ibv_wc::default()];
    match op {
        "none" => (0..n).for_each(|i| {
            black_box(i);
        }),
        "send" => {
            for i in 0..n {
                // SAFETY: the memory lives until the end, and nothing looks at it.
                unsafe { qp.post_send(memory, ..LENGTH, i)? };
            }
        }
        "recv" => {
            for i in 0..n {
                // SAFETY: as above.
                unsafe { qp.post_receive(memory, ..LENGTH, i)? };
            }
        }
        "poll_empty" => {
            for _ in 0..n {
                if !cq.poll(&mut completions)?.is_empty() {
                    return Err("a completion out of nothing".into());
                }
            }
        }
        // All its sends are signalled.
        "send_poll" => {
            for i in 0..n {
                // SAFETY: as above.
                unsafe { qp.post_send(memory, ..LENGTH, i)? };
                if cq.poll(&mut completions)?.len() != 1 {
                    return Err("not one completion".into());
                }
            }
        }
        _ => return Err("no such operation".into()),
    }
    Ok(())
}
