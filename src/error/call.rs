use std::fmt;

/// The calls in two sections: `true` for those that [`Call::is_of_a_device`].
macro_rules! calls {
    ($($device:literal { $($(#[$meta:meta])* $name:ident = $text:literal,)* })*) => {
        /// A foreign call that this crate makes, or what a wait was for.
        ///
        /// [`Display`](fmt::Display) and [`as_str`](Self::as_str) give the C name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Call {
            $($($(#[$meta])* #[doc = concat!("`", $text, "`")] $name,)*)*
        }

        impl Call {
            /// The C name of the function, or the words for what was waited for.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($($(#[$meta])* Call::$name => $text,)*)*
                }
            }

            /// Does the call work on a device, or on a connection or an endpoint that exists?
            pub(super) const fn is_of_a_device(self) -> bool {
                match self {
                    $($($(#[$meta])* Call::$name => $device,)*)*
                }
            }

            #[cfg(test)]
            pub(super) const ALL: &[(Call, &str)] = &[
                $($($(#[$meta])* (Call::$name, stringify!($name)),)*)*
            ];
        }
    };
}

calls! {
true {
    IbvAdviseMr = "ibv_advise_mr",
    IbvAllocPd = "ibv_alloc_pd",
    #[cfg(feature = "efa")] IbvCloseDevice = "ibv_close_device",
    IbvCreateCompChannel = "ibv_create_comp_channel",
    IbvCreateCq = "ibv_create_cq",
    IbvCreateQp = "ibv_create_qp",
    IbvCreateSrq = "ibv_create_srq",
    IbvDeallocPd = "ibv_dealloc_pd",
    IbvDeregMr = "ibv_dereg_mr",
    IbvDestroyCompChannel = "ibv_destroy_comp_channel",
    IbvDestroyCq = "ibv_destroy_cq",
    IbvDestroyQp = "ibv_destroy_qp",
    IbvDestroySrq = "ibv_destroy_srq",
    IbvGetAsyncEvent = "ibv_get_async_event",
    IbvGetCqEvent = "ibv_get_cq_event",
    IbvModifyQp = "ibv_modify_qp",
    IbvModifySrq = "ibv_modify_srq",
    IbvPollCq = "ibv_poll_cq",
    IbvPostRecv = "ibv_post_recv",
    IbvPostSend = "ibv_post_send",
    IbvPostSrqRecv = "ibv_post_srq_recv",
    #[cfg(feature = "efa")] IbvQueryDevice = "ibv_query_device",
    IbvQueryDeviceEx = "ibv_query_device_ex",
    IbvQueryGidTable = "ibv_query_gid_table",
    IbvQueryPort = "ibv_query_port",
    IbvRegDmabufMr = "ibv_reg_dmabuf_mr",
    IbvRegMr = "ibv_reg_mr",
    IbvReqNotifyCq = "ibv_req_notify_cq",
    #[cfg(feature = "efa")] IbvStartPoll = "ibv_start_poll",
    IbvWrAtomicWrite = "ibv_wr_atomic_write",
    IbvWrComplete = "ibv_wr_complete",
    IbvWrFlush = "ibv_wr_flush",
    #[cfg(feature = "efa")] EfadvCqFromIbvCqEx = "efadv_cq_from_ibv_cq_ex",
    #[cfg(feature = "efa")] EfadvCreateCq = "efadv_create_cq",
    #[cfg(feature = "efa")] EfadvGetMaxRqDepth = "efadv_get_max_rq_depth",
    #[cfg(feature = "efa")] EfadvGetMaxSqDepth = "efadv_get_max_sq_depth",
    #[cfg(feature = "efa")] EfadvQueryCq = "efadv_query_cq",
    #[cfg(feature = "efa")] EfadvQueryDevice = "efadv_query_device",
    #[cfg(feature = "efa")] EfadvQueryMr = "efadv_query_mr",
    #[cfg(feature = "efa")] EfadvQueryQpWqs = "efadv_query_qp_wqs",
    RdmaAccept = "rdma_accept",
    RdmaAckCmEvent = "rdma_ack_cm_event",
    RdmaConnect = "rdma_connect",
    RdmaCreateQpEx = "rdma_create_qp_ex",
    RdmaDestroyId = "rdma_destroy_id",
    RdmaDisconnect = "rdma_disconnect",
    RdmaGetCmEvent = "rdma_get_cm_event",
    RdmaListen = "rdma_listen",
    RdmaMigrateId = "rdma_migrate_id",
    RdmaReject = "rdma_reject",
    RdmaResolveRoute = "rdma_resolve_route",
    RdmaSetOption = "rdma_set_option",
}
false {
    RdmaBindAddr = "rdma_bind_addr",
    RdmaCreateEventChannel = "rdma_create_event_channel",
    RdmaCreateId = "rdma_create_id",
    RdmaGetDevices = "rdma_get_devices",
    RdmaResolveAddr = "rdma_resolve_addr",
    Eventfd = "eventfd",
    Fallocate = "fallocate",
    Fcntl = "fcntl",
    Fstat = "fstat",
    Fstatfs = "fstatfs",
    Fsync = "fsync",
    Getaddrinfo = "getaddrinfo",
    Madvise = "madvise(MADV_POPULATE_WRITE)",
    Mmap = "mmap",
    MmapHuge1G = "mmap(MAP_HUGETLB, 1 GiB)",
    MmapHuge2M = "mmap(MAP_HUGETLB, 2 MiB)",
    Msync = "msync",
    Open = "open",
    Poll = "poll",
    PosixFallocate = "posix_fallocate",
    PthreadCreate = "pthread_create",
    NameResolution = "name resolution",
    AddressResolution = "address resolution",
    AddressAndRouteResolution = "address and route resolution",
    Establishment = "establishing the connection",
}
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Call {
    /// What helps where the call failed with `errno`; empty where nothing is known to.
    pub(super) fn hint(self, errno: Option<i32>) -> &'static str {
        match (self, errno) {
            (_, Some(libc::EMFILE)) => " (raise the limit of open files: `ulimit -n`)",
            (Call::MmapHuge2M | Call::MmapHuge1G, Some(libc::EINVAL)) => {
                " (this machine has no huge pages of this size: /sys/kernel/mm/hugepages lists the sizes)"
            }
            (Call::Fallocate, Some(libc::ENOSPC | libc::EDQUOT)) => {
                " (the file has holes, and its file system no room to fill them)"
            }
            (Call::IbvRegMr, Some(libc::EPERM)) => self.memory_hint(),
            (
                Call::IbvAllocPd
                | Call::IbvCreateCq
                | Call::IbvCreateSrq
                | Call::IbvRegMr
                | Call::RdmaCreateQpEx,
                Some(libc::EAGAIN),
            ) => {
                " (the objects that a cgroup allows are used up: see hca_object in its rdma.max and rdma.current)"
            }
            (Call::IbvRegMr, Some(libc::EFAULT)) => {
                " (the pages cannot be pinned: a writable shared mapping of an ordinary file needs a device with on-demand paging)"
            }
            (Call::IbvRegMr, Some(libc::EOPNOTSUPP)) => {
                " (memory of a DAX file system needs a device with on-demand paging; /dev/dax can be pinned)"
            }
            (Call::RdmaCreateQpEx, Some(libc::EINVAL)) => {
                " (is sq_size, rq_size, max_sge or max_inline more than Peer::capabilities and Peer::max_inline allow?)"
            }
            (Call::IbvCreateCq, Some(libc::EINVAL)) => {
                " (is cq_size, rcq_size or comp_vector more than Peer::capabilities allow?)"
            }
            (Call::IbvCreateSrq, Some(libc::EINVAL)) => {
                " (is SrqCfg::size more than Peer::capabilities allow?)"
            }
            (
                Call::RdmaBindAddr | Call::RdmaResolveAddr,
                Some(libc::ENODEV | libc::EADDRNOTAVAIL),
            ) => {
                " (the address belongs to no RDMA device: `rdma link` lists them; 127.0.0.1 never does)"
            }
            (Call::RdmaCreateEventChannel, Some(libc::ENOENT | libc::ENODEV)) => {
                " (is the rdma_ucm module loaded?)"
            }
            _ => "",
        }
    }

    /// What helps where the call ran out of memory.
    pub(super) fn memory_hint(self) -> &'static str {
        match self {
            Call::IbvRegMr | Call::IbvRegDmabufMr => {
                " (registered memory is pinned: raise the limit of locked memory, `ulimit -l unlimited`, or LimitMEMLOCK= of the service)"
            }
            Call::MmapHuge2M => {
                " (too few huge pages are set aside: raise /proc/sys/vm/nr_hugepages)"
            }
            Call::MmapHuge1G => {
                " (too few huge pages are set aside: raise /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)"
            }
            Call::Madvise => {
                " (the huge pages that this process may have are used up: see the pool, /sys/devices/system/node/node*/hugepages, and the cgroup's limit, hugetlb.*.max)"
            }
            Call::IbvCreateCq | Call::RdmaCreateQpEx | Call::IbvCreateSrq => {
                " (queues are pinned memory too: raise `ulimit -l`, or ask for smaller queues)"
            }
            _ => "",
        }
    }
}
