//! Names every Rust item of docs/librpma.md, so that the table cannot name one that is not there:
//! this file would not compile.
//!
//! What is generic has its type written out.

use std::{fmt::Display, ops::RangeFull, os::fd::AsFd};

use rpma::{Advice, Connection, FlushKind, LocalRegion, LocalSlice, RemoteSlice, Result, Signal};

macro_rules! exist {
    ($($item:path,)*) => { $(let _ = $item;)* };
}

fn displays<T: Display>() {}
fn has_fd<T: AsFd>() {}
fn goes_to_any_thread<T: Send + Sync>() {}

#[test]
fn all_items_exist() {
    exist! {
        rpma::Peer::local::<&str>, rpma::Peer::remote::<&str>, rpma::Peer::device, rpma::Peer::from_raw_context, rpma::Peer::register,
        rpma::LocalRegion::close, rpma::LocalRegion::descriptor, rpma::LocalRegion::as_ptr, rpma::LocalRegion::as_mut_ptr,
        rpma::LocalRegion::len,
        rpma::Descriptor::LEN, rpma::Descriptor::as_bytes,
        rpma::RemoteRegion::from_descriptor, rpma::RemoteRegion::len, rpma::RemoteRegion::usage, rpma::RemoteRegion::can_flush,
        rpma::PeerCfg::new, rpma::PeerCfg::with_direct_write_to_pmem, rpma::PeerCfg::direct_write_to_pmem,
        rpma::PeerCfg::descriptor, rpma::PeerCfg::DESCRIPTOR_LEN, rpma::PeerCfg::from_descriptor,
        rpma::ConnCfg::new, rpma::ConnCfg::timeout, rpma::ConnCfg::timeout_value, rpma::ConnCfg::cq_size,
        rpma::ConnCfg::cq_size_value, rpma::ConnCfg::rcq_size, rpma::ConnCfg::rcq_size_value, rpma::ConnCfg::sq_size,
        rpma::ConnCfg::sq_size_value, rpma::ConnCfg::rq_size, rpma::ConnCfg::rq_size_value, rpma::ConnCfg::shared_channel,
        rpma::ConnCfg::shared_channel_value, rpma::ConnCfg::srq, rpma::ConnCfg::srq_value,
        rpma::Endpoint::listen, rpma::Endpoint::close, rpma::Endpoint::next_request,
        rpma::ConnRequest::new, rpma::ConnRequest::reject, rpma::ConnRequest::recv, rpma::ConnRequest::private_data,
        rpma::ConnRequest::connect,
        rpma::Connection::next_event, rpma::Connection::event_fd, rpma::Connection::private_data,
        rpma::Connection::apply_peer_cfg, rpma::Connection::qp_num, rpma::Connection::disconnect, rpma::Connection::close,
        rpma::Connection::cq, rpma::Connection::rcq, rpma::Connection::wait, rpma::Connection::completion_fd,
        rpma::Connection::wait_event, rpma::Cq::wait, rpma::Cq::waker, rpma::Cq::poll,
        rpma::SrqCfg::new, rpma::SrqCfg::size, rpma::SrqCfg::size_value, rpma::SrqCfg::rcq_size, rpma::SrqCfg::rcq_size_value,
        rpma::Srq::new, rpma::Srq::recv, rpma::Srq::rcq,
        rpma::Error::code, rpma::code::NO_COMPLETION,
        rpma::Signal::Always, rpma::Signal::OnError, rpma::FlushKind::Persistent, rpma::FlushKind::Visibility,
        rpma::Usage::all,
        rpma::Peer::capabilities, rpma::Peer::async_events, rpma::Connection::open, rpma::Connection::batch,
        rpma::Connection::sq_size, rpma::Connection::rq_size, rpma::Endpoint::listen_with, rpma::Endpoint::local_addr,
        rpma::LocalSlice::EMPTY, rpma::ConnEvent::kind, rpma::CmEventKind::REJECTED, rpma::Cq::arm, rpma::Cq::wait_event,
        rpma::Cq::take, rpma::Srq::recv_batch, rpma::RemoteRegion::whole, rpma::ConnCfg::flush_method,
        rpma::Descriptor::to_librpma, rpma::Usage::ATOMIC,
        log::set_logger, log::set_max_level, log::max_level,
    }

    // What is generic over its arguments.
    let _ =
        |conn: &Connection, near: &LocalSlice<'_>, far: &RemoteSlice, post: Signal| -> Result<()> {
            rpma::Connection::read(conn, near, far, post)?;
            rpma::Connection::write(conn, near, far, post)?;
            rpma::Connection::write_with_imm(conn, near, far, 0, post)?;
            rpma::Connection::atomic_write(conn, far, [0; 8], post)?;
            rpma::Connection::flush(conn, far, FlushKind::Visibility, post)?;
            rpma::Connection::send(conn, near, post)?;
            rpma::Connection::send_with_imm(conn, near, 0, post)?;
            rpma::Connection::recv(conn, near, 0)
        };
    let _: fn(&LocalRegion, RangeFull, Advice, bool) -> Result<()> = rpma::LocalRegion::advise;

    let _ = |odp: rpma::OdpCapabilities| odp.supported;
    displays::<rpma::Error>();
    displays::<rpma::ConnEventKind>();
    has_fd::<rpma::Endpoint>();
    has_fd::<rpma::Cq>();
    goes_to_any_thread::<rpma::Peer>();
    goes_to_any_thread::<rpma::LocalRegion>();
    goes_to_any_thread::<rpma::RemoteRegion>();
    goes_to_any_thread::<rpma::Endpoint>();
    goes_to_any_thread::<rpma::ConnRequest>();
    goes_to_any_thread::<rpma::Connection>();
    goes_to_any_thread::<rpma::Cq>();
    goes_to_any_thread::<rpma::Srq>();
}
