//! On an EFA device, named by `RPMA_TEST_EFA_DEV`: create, query, and look after a real send.

use std::{
    ffi::c_int,
    mem, ptr, thread,
    time::{Duration, Instant},
};

use rdma_sys as ffi;
use rpma::efa::{CompletionEx, Cq, CqOptions, Device, DeviceCaps, Entry, Queue, SqShape};

/// The device. These tests are asked for by name: without one they fail.
fn device() -> Device {
    let name = std::env::var("RPMA_TEST_EFA_DEV").expect("RPMA_TEST_EFA_DEV names an EFA device");
    let device = Device::open(&name).expect("an EFA device");
    println!("{device:?}");
    device
}

#[test]
#[ignore = "needs an EFA device"]
fn the_device_has_limits() {
    let device = device();
    let attr = device.attr();
    assert!(attr.max_sq_wr > 0 && attr.max_rq_wr > 0 && attr.max_sq_sge > 0);
    assert_eq!(attr.vendor_part_id & 0xfff0, 0xefa0);
    let shape = SqShape {
        max_send_sge: 1,
        max_rdma_sge: 1,
        ..Default::default()
    };
    match (device.max_sq_depth(shape), device.max_rq_depth(1)) {
        (Ok(sq), Ok(rq)) => assert!((1..=attr.max_sq_wr).contains(&sq) && rq <= attr.max_rq_wr),
        (sq, rq) => println!("SKIP: depths: {sq:?}, {rq:?}"),
    }
}

#[test]
#[ignore = "needs an EFA device"]
fn a_queue_can_be_created_and_queried() {
    let device = device();
    let sgid = device
        .attr()
        .capabilities
        .contains(DeviceCaps::CQ_WITH_SGID);
    for (channel, source_gids) in [(false, false), (true, false), (true, sgid)] {
        let options = CqOptions {
            channel,
            source_gids,
            ..CqOptions::new(64)
        };
        let cq = device.create_cq(options).expect("a queue");
        let attr = cq.attr().expect("rdma-core 59 or newer");
        println!("{options:?}: {attr:?}");
        assert!(!attr.buffer.is_null() && attr.entries >= 64 && attr.entry_size >= 16);
        if channel {
            cq.arm().expect("armed");
        }
        match cq.ring() {
            Ok(ring) => assert_eq!(ring.ready(&ring.start()), None),
            Err(err) => assert_eq!(device.attr().vendor_part_id, 0xefa0, "{err}"),
        }
        assert_eq!(cq.poll_ex(&mut [CompletionEx::default()]).unwrap(), 0);
    }
}

#[test]
#[ignore = "needs an EFA device of the second generation or later"]
fn a_real_send_shows_in_the_ring() {
    const LEN: usize = 64;
    let device = device();
    let cq = device
        .create_cq(CqOptions {
            channel: true,
            ..CqOptions::new(64)
        })
        .expect("a queue");
    let ring = cq.ring().expect("a view");
    cq.arm().expect("armed");
    let loopback = Loopback::create(&device, &cq);
    loopback.send_to_itself(LEN);

    let mut cursor = ring.start();
    let mut seen: Vec<Entry> = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(10);
    while seen.len() < 2 && Instant::now() < deadline {
        match ring.ready(&cursor) {
            Some(entry) => {
                println!("{entry:?}");
                seen.push(entry);
                cursor.advance();
            }
            None => thread::yield_now(),
        }
    }
    assert_eq!(seen.len(), 2, "the send and its receive");
    assert!(seen.iter().all(|entry| entry.is_ok()));
    assert!(
        seen.iter()
            .all(|entry| u32::from(entry.qp_num()) == loopback.qp_num())
    );
    assert_eq!(
        seen.iter()
            .filter(|entry| entry.queue() == Queue::SEND)
            .count(),
        1
    );
    let receive = seen.iter().find(|entry| entry.is_receive()).unwrap();
    assert_eq!(receive.length(), Some(LEN as u32));

    // Looking has consumed nothing.
    assert!(cq.wait(Some(Duration::from_secs(10))).expect("an event"));
    let mut completions = [CompletionEx::default(); 4];
    assert_eq!(cq.poll_ex(&mut completions).unwrap(), 2);
    let mut ids = [completions[0].wr_id, completions[1].wr_id];
    ids.sort();
    assert_eq!(ids, [1, 2]);

    // SAFETY: both objects are alive.
    unsafe {
        println!("{:?}", device.query_raw_mr(loopback.mr));
        println!(
            "{:?}",
            device
                .query_raw_qp(loopback.qp)
                .expect("rdma-core 59 or newer")
        );
    }
}

/// A UD queue pair that can send to itself, and memory for it. It ends before the queue does.
struct Loopback {
    pd: *mut ffi::ibv_pd,
    mr: *mut ffi::ibv_mr,
    qp: *mut ffi::ibv_qp,
    ah: *mut ffi::ibv_ah,
    buffer: Vec<u8>,
}

const QKEY: u32 = 0x1111;

impl Loopback {
    fn create(device: &Device, cq: &Cq) -> Self {
        // SAFETY: each call gets what the one before gave; all-zero bytes are values of the
        // structs.
        unsafe {
            let context = device.as_raw();
            let pd = ffi::ibv_alloc_pd(context);
            assert!(!pd.is_null());
            let mut buffer = vec![0u8; 4096];
            let access = ffi::IBV_ACCESS_LOCAL_WRITE as c_int;
            let mr = ffi::ibv_reg_mr(pd, buffer.as_mut_ptr().cast(), buffer.len(), access);
            assert!(!mr.is_null());

            let mut init: ffi::ibv_qp_init_attr = mem::zeroed();
            init.send_cq = ffi::ibv_cq_ex_to_cq(cq.as_raw());
            init.recv_cq = init.send_cq;
            init.qp_type = ffi::IBV_QPT_UD;
            init.cap.max_send_wr = 4;
            init.cap.max_recv_wr = 4;
            init.cap.max_send_sge = 1;
            init.cap.max_recv_sge = 1;
            let qp = ffi::ibv_create_qp(pd, &mut init);
            assert!(!qp.is_null());
            let mut attr: ffi::ibv_qp_attr = mem::zeroed();
            attr.port_num = 1;
            attr.qkey = QKEY;
            let mut go = |state, mask: u32| {
                attr.qp_state = state;
                assert_eq!(
                    ffi::ibv_modify_qp(qp, &mut attr, (ffi::IBV_QP_STATE | mask) as c_int),
                    0
                );
            };
            go(
                ffi::IBV_QPS_INIT,
                ffi::IBV_QP_PKEY_INDEX | ffi::IBV_QP_PORT | ffi::IBV_QP_QKEY,
            );
            go(ffi::IBV_QPS_RTR, 0);
            go(ffi::IBV_QPS_RTS, ffi::IBV_QP_SQ_PSN);

            let mut gid = ffi::ibv_gid::default();
            assert_eq!(ffi::ibv_query_gid(context, 1, 0, &mut gid), 0);
            let mut to: ffi::ibv_ah_attr = mem::zeroed();
            to.is_global = 1;
            to.port_num = 1;
            to.grh.dgid = gid;
            let ah = ffi::ibv_create_ah(pd, &mut to);
            assert!(!ah.is_null());
            Loopback {
                pd,
                mr,
                qp,
                ah,
                buffer,
            }
        }
    }

    fn qp_num(&self) -> u32 {
        // SAFETY: the queue pair is alive.
        unsafe { (*self.qp).qp_num }
    }

    /// Receive 1 and send 2, of `len` bytes.
    fn send_to_itself(&self, len: usize) {
        let sge = |offset: usize, length: usize| ffi::ibv_sge {
            addr: self.buffer.as_ptr().addr() as u64 + offset as u64,
            length: length as u32,
            // SAFETY: the region is registered.
            lkey: unsafe { (*self.mr).lkey },
        };
        let (mut from, mut into) = (sge(0, len), sge(2048, 2048));
        // SAFETY: all objects are alive, and the lists live as long as the calls.
        unsafe {
            let mut recv: ffi::ibv_recv_wr = mem::zeroed();
            recv.wr_id = 1;
            recv.sg_list = &mut into;
            recv.num_sge = 1;
            assert_eq!(
                ffi::ibv_post_recv(self.qp, &mut recv, &mut ptr::null_mut()),
                0
            );
            let mut send: ffi::ibv_send_wr = mem::zeroed();
            send.wr_id = 2;
            send.sg_list = &mut from;
            send.num_sge = 1;
            send.opcode = ffi::IBV_WR_SEND;
            send.send_flags = ffi::IBV_SEND_SIGNALED;
            send.wr.ud.ah = self.ah;
            send.wr.ud.remote_qpn = self.qp_num();
            send.wr.ud.remote_qkey = QKEY;
            assert_eq!(
                ffi::ibv_post_send(self.qp, &mut send, &mut ptr::null_mut()),
                0
            );
        }
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        // SAFETY: this is the owner; each object goes before what it was made on.
        unsafe {
            ffi::ibv_destroy_ah(self.ah);
            ffi::ibv_destroy_qp(self.qp);
            ffi::ibv_dereg_mr(self.mr);
            ffi::ibv_dealloc_pd(self.pd);
        }
    }
}
