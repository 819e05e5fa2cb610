//! What the tests share: two connected queue pairs in one process, on raw calls.

#![allow(dead_code, missing_docs, reason = "each test takes what it needs")]
#![allow(clippy::missing_safety_doc, reason = "tests")]

use std::ptr::{null, null_mut};

use rdma_sys as ffi;
use standin_control::{Exclusive, Personality, Standin};

/// The stand-in for this test alone, as this device.
pub fn standin(personality: Personality) -> Exclusive {
    let s = Standin::exclusive().expect("no stand-in: run with LD_LIBRARY_PATH=$(ci/standin)");
    s.personality(personality);
    s
}

pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

pub fn sockaddr(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_be_bytes([192, 168, 77, 1]).to_be(),
        },
        sin_zero: [0; 8],
    }
}

pub fn address(ip: [u8; 4], port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_addr: libc::in_addr {
            s_addr: u32::from_be_bytes(ip).to_be(),
        },
        ..sockaddr(port)
    }
}

pub unsafe fn event(channel: *mut ffi::rdma_event_channel) -> *mut ffi::rdma_cm_event {
    let mut e = null_mut();
    let r = unsafe { ffi::rdma_get_cm_event(channel, &raw mut e) };
    assert_eq!(r, 0, "rdma_get_cm_event: errno {}", errno());
    e
}

/// Takes the next event, checks its kind, acknowledges it.
pub unsafe fn expect(channel: *mut ffi::rdma_event_channel, kind: u32) {
    unsafe {
        let e = event(channel);
        assert_eq!((*e).event, kind, "status {}", (*e).status);
        ffi::rdma_ack_cm_event(e);
    }
}

#[derive(Clone, Copy)]
pub struct Options {
    pub send_wr: u32,
    pub recv_wr: u32,
    pub sge: u32,
    pub inline: u32,
    pub cqe: i32,
    pub send_ops: u64,
    pub rnr_retry: u8,
    pub srq: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            send_wr: 16,
            recv_wr: 16,
            sge: 2,
            inline: 64,
            cqe: 64,
            send_ops: 0,
            rnr_retry: 7,
            srq: false,
        }
    }
}

/// One end of a connection.
pub struct End {
    pub id: *mut ffi::rdma_cm_id,
    pub channel: *mut ffi::rdma_event_channel,
    pub pd: *mut ffi::ibv_pd,
    pub comp: *mut ffi::ibv_comp_channel,
    pub cq: *mut ffi::ibv_cq,
    pub srq: *mut ffi::ibv_srq,
    pub mr: *mut ffi::ibv_mr,
    pub memory: Box<[u8]>,
}

impl End {
    pub unsafe fn new(
        id: *mut ffi::rdma_cm_id,
        channel: *mut ffi::rdma_event_channel,
        o: Options,
    ) -> Self {
        unsafe {
            let ctx = (*id).verbs;
            assert!(!ctx.is_null());
            let pd = ffi::ibv_alloc_pd(ctx);
            assert!(!pd.is_null());
            let comp = ffi::ibv_create_comp_channel(ctx);
            let cq = ffi::ibv_create_cq(ctx, o.cqe, null_mut(), comp, 0);
            assert!(!cq.is_null());
            let mut srq = null_mut();
            if o.srq {
                let mut init = ffi::ibv_srq_init_attr::default();
                init.attr.max_wr = o.recv_wr;
                init.attr.max_sge = o.sge;
                srq = ffi::ibv_create_srq(pd, &raw mut init);
                assert!(!srq.is_null());
            }
            let mut init = ffi::ibv_qp_init_attr_ex {
                send_cq: cq,
                recv_cq: cq,
                srq,
                qp_type: ffi::IBV_QPT_RC,
                comp_mask: ffi::IBV_QP_INIT_ATTR_PD,
                pd,
                cap: ffi::ibv_qp_cap {
                    max_send_wr: o.send_wr,
                    max_recv_wr: o.recv_wr,
                    max_send_sge: o.sge,
                    max_recv_sge: o.sge,
                    max_inline_data: o.inline,
                },
                ..Default::default()
            };
            if o.send_ops != 0 {
                init.comp_mask |= ffi::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
                init.send_ops_flags = o.send_ops;
            }
            let r = ffi::rdma_create_qp_ex(id, &raw mut init);
            assert_eq!(r, 0, "rdma_create_qp_ex: errno {}", errno());
            let mut memory = vec![0u8; 4096].into_boxed_slice();
            let mr = ffi::ibv_reg_mr_iova2(
                pd,
                memory.as_mut_ptr().cast(),
                memory.len(),
                memory.as_ptr() as u64,
                ffi::IBV_ACCESS_LOCAL_WRITE
                    | ffi::IBV_ACCESS_REMOTE_WRITE
                    | ffi::IBV_ACCESS_REMOTE_READ,
            );
            assert!(!mr.is_null(), "ibv_reg_mr: errno {}", errno());
            Self {
                id,
                channel,
                pd,
                comp,
                cq,
                srq,
                mr,
                memory,
            }
        }
    }

    pub fn at(&self, offset: usize) -> u64 {
        self.memory.as_ptr() as u64 + offset as u64
    }

    pub fn sge(&self, offset: usize, len: u32) -> ffi::ibv_sge {
        ffi::ibv_sge {
            addr: self.at(offset),
            length: len,
            lkey: unsafe { (*self.mr).lkey },
        }
    }

    pub fn rkey(&self) -> u32 {
        unsafe { (*self.mr).rkey }
    }

    pub unsafe fn post(&self, op: u32, flags: u32, sge: ffi::ibv_sge, addr: u64, rkey: u32) -> i32 {
        unsafe { self.post_id(op as u64, op, flags, sge, (addr, rkey)) }
    }

    pub unsafe fn post_id(
        &self,
        wr_id: u64,
        op: u32,
        flags: u32,
        mut sge: ffi::ibv_sge,
        to: (u64, u32),
    ) -> i32 {
        unsafe {
            let mut wr = ffi::ibv_send_wr {
                wr_id,
                sg_list: &raw mut sge,
                num_sge: 1,
                opcode: op,
                send_flags: flags,
                ..Default::default()
            };
            wr.__bindgen_anon_1.imm_data = 0x1234_5678;
            wr.wr.rdma.remote_addr = to.0;
            wr.wr.rdma.rkey = to.1;
            let mut bad = null_mut();
            ffi::ibv_post_send((*self.id).qp, &raw mut wr, &raw mut bad)
        }
    }

    pub unsafe fn post_recv(&self, wr_id: u64, mut sge: ffi::ibv_sge) -> i32 {
        unsafe {
            let mut wr = ffi::ibv_recv_wr {
                wr_id,
                sg_list: &raw mut sge,
                num_sge: 1,
                ..Default::default()
            };
            let mut bad = null_mut();
            if self.srq.is_null() {
                ffi::ibv_post_recv((*self.id).qp, &raw mut wr, &raw mut bad)
            } else {
                ffi::ibv_post_srq_recv(self.srq, &raw mut wr, &raw mut bad)
            }
        }
    }

    pub unsafe fn poll(&self) -> Option<ffi::ibv_wc> {
        let mut wc = ffi::ibv_wc::default();
        match unsafe { ffi::ibv_poll_cq(self.cq, 1, &raw mut wc) } {
            0 => None,
            1 => Some(wc),
            r => panic!("ibv_poll_cq: {r}"),
        }
    }

    pub unsafe fn statuses(&self) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        while let Some(wc) = unsafe { self.poll() } {
            all.push((wc.wr_id, wc.status));
        }
        all
    }

    pub unsafe fn close(self) {
        unsafe {
            ffi::rdma_destroy_qp(self.id);
            assert_eq!(ffi::rdma_destroy_id(self.id), 0);
            if !self.srq.is_null() {
                assert_eq!(ffi::ibv_destroy_srq(self.srq), 0);
            }
            assert_eq!(ffi::ibv_destroy_cq(self.cq), 0);
            assert_eq!(ffi::ibv_destroy_comp_channel(self.comp), 0);
            assert_eq!(ffi::ibv_dereg_mr(self.mr), 0);
            assert_eq!(ffi::ibv_dealloc_pd(self.pd), 0);
            ffi::rdma_destroy_event_channel(self.channel);
        }
    }
}

/// Two connected ends.
pub struct Pair {
    pub active: End,
    pub passive: End,
}

type Id = *mut ffi::rdma_cm_id;
type EventChannel = *mut ffi::rdma_event_channel;

pub unsafe fn listen(port: u16) -> (Id, EventChannel) {
    unsafe { listen_at([192, 168, 77, 1], port) }
}

pub unsafe fn listen_at(ip: [u8; 4], port: u16) -> (Id, EventChannel) {
    unsafe {
        let channel = ffi::rdma_create_event_channel();
        assert!(!channel.is_null());
        let mut id = null_mut();
        assert_eq!(
            ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP),
            0
        );
        let mut a = address(ip, port);
        assert_eq!(ffi::rdma_bind_addr(id, (&raw mut a).cast()), 0);
        assert_eq!(ffi::rdma_listen(id, 0), 0);
        (id, channel)
    }
}

pub unsafe fn resolve(
    ip: [u8; 4],
    port: u16,
) -> (*mut ffi::rdma_cm_id, *mut ffi::rdma_event_channel) {
    unsafe {
        let channel = ffi::rdma_create_event_channel();
        let mut id = null_mut();
        assert_eq!(
            ffi::rdma_create_id(channel, &raw mut id, null_mut(), ffi::RDMA_PS_TCP),
            0
        );
        let mut a = address(ip, port);
        assert_eq!(
            ffi::rdma_resolve_addr(id, null_mut(), (&raw mut a).cast(), 1000),
            0
        );
        expect(channel, ffi::RDMA_CM_EVENT_ADDR_RESOLVED);
        assert_eq!(ffi::rdma_resolve_route(id, 1000), 0);
        expect(channel, ffi::RDMA_CM_EVENT_ROUTE_RESOLVED);
        (id, channel)
    }
}

pub fn param(rnr: u8, data: &[u8]) -> ffi::rdma_conn_param {
    ffi::rdma_conn_param {
        private_data: if data.is_empty() {
            null()
        } else {
            data.as_ptr().cast()
        },
        private_data_len: data.len() as u8,
        responder_resources: 255,
        initiator_depth: 255,
        retry_count: 7,
        rnr_retry_count: rnr,
        ..Default::default()
    }
}

impl Pair {
    pub unsafe fn new(port: u16, o: Options) -> Self {
        unsafe { Self::at([192, 168, 77, 1], port, o) }
    }

    pub unsafe fn at(ip: [u8; 4], port: u16, o: Options) -> Self {
        unsafe {
            let (listener, lc) = listen_at(ip, port);
            let (id, channel) = resolve(ip, port);
            let active = End::new(id, channel, o);
            let mut p = param(o.rnr_retry, b"hello");
            assert_eq!(ffi::rdma_connect(id, &raw mut p), 0);
            let e = event(lc);
            assert_eq!((*e).event, ffi::RDMA_CM_EVENT_CONNECT_REQUEST);
            let child = (*e).id;
            assert_eq!(ffi::rdma_ack_cm_event(e), 0);
            let own = ffi::rdma_create_event_channel();
            assert_eq!(ffi::rdma_migrate_id(child, own), 0);
            let passive = End::new(child, own, o);
            let mut p = param(o.rnr_retry, b"welcome");
            assert_eq!(ffi::rdma_accept(child, &raw mut p), 0);
            expect(channel, ffi::RDMA_CM_EVENT_ESTABLISHED);
            expect(own, ffi::RDMA_CM_EVENT_ESTABLISHED);
            assert_eq!(ffi::rdma_destroy_id(listener), 0);
            ffi::rdma_destroy_event_channel(lc);
            Self { active, passive }
        }
    }

    pub unsafe fn close(self) {
        unsafe {
            // On iWARP an error may have disconnected them before.
            assert_eq!(ffi::rdma_disconnect(self.active.id), 0);
            expect(self.active.channel, ffi::RDMA_CM_EVENT_DISCONNECTED);
            expect(self.passive.channel, ffi::RDMA_CM_EVENT_DISCONNECTED);
            assert_eq!(ffi::rdma_disconnect(self.passive.id), 0);
            self.active.close();
            self.passive.close();
        }
    }
}
