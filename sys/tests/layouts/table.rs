// Made by sys/regenerate from src/bindings.rs. Do not edit.

layouts! {
    "struct ib_uverbs_flow_action_esp_encap" ib_uverbs_flow_action_esp_encap {
        "val_ptr" __bindgen_anon_1.val_ptr;
        "val_ptr_data_u64" __bindgen_anon_1.val_ptr_data_u64;
        "next_ptr" __bindgen_anon_2.next_ptr;
        "next_ptr_data_u64" __bindgen_anon_2.next_ptr_data_u64;
        "len" len;
        "type" type_;
    }
    "struct ib_uverbs_flow_action_esp" ib_uverbs_flow_action_esp {
        "spi" spi;
        "seq" seq;
        "tfc_pad" tfc_pad;
        "flags" flags;
        "hard_limit_pkts" hard_limit_pkts;
    }
    "union ibv_gid" ibv_gid {
        "raw" raw;
        "global" global;
        "global.subnet_prefix" global.subnet_prefix;
        "global.interface_id" global.interface_id;
    }
    "struct ibv_gid_entry" ibv_gid_entry {
        "gid" gid;
        "gid_index" gid_index;
        "port_num" port_num;
        "gid_type" gid_type;
        "ndev_ifindex" ndev_ifindex;
    }
    "struct ibv_alloc_dm_attr" ibv_alloc_dm_attr {
        "length" length;
        "log_align_req" log_align_req;
        "comp_mask" comp_mask;
    }
    "struct ibv_dm" ibv_dm {
        "context" context;
        "memcpy_to_dm" memcpy_to_dm;
        "memcpy_from_dm" memcpy_from_dm;
        "comp_mask" comp_mask;
        "handle" handle;
    }
    "struct ibv_device_attr" ibv_device_attr {
        "fw_ver" fw_ver;
        "node_guid" node_guid;
        "sys_image_guid" sys_image_guid;
        "max_mr_size" max_mr_size;
        "page_size_cap" page_size_cap;
        "vendor_id" vendor_id;
        "vendor_part_id" vendor_part_id;
        "hw_ver" hw_ver;
        "max_qp" max_qp;
        "max_qp_wr" max_qp_wr;
        "device_cap_flags" device_cap_flags;
        "max_sge" max_sge;
        "max_sge_rd" max_sge_rd;
        "max_cq" max_cq;
        "max_cqe" max_cqe;
        "max_mr" max_mr;
        "max_pd" max_pd;
        "max_qp_rd_atom" max_qp_rd_atom;
        "max_ee_rd_atom" max_ee_rd_atom;
        "max_res_rd_atom" max_res_rd_atom;
        "max_qp_init_rd_atom" max_qp_init_rd_atom;
        "max_ee_init_rd_atom" max_ee_init_rd_atom;
        "atomic_cap" atomic_cap;
        "max_ee" max_ee;
        "max_rdd" max_rdd;
        "max_mw" max_mw;
        "max_raw_ipv6_qp" max_raw_ipv6_qp;
        "max_raw_ethy_qp" max_raw_ethy_qp;
        "max_mcast_grp" max_mcast_grp;
        "max_mcast_qp_attach" max_mcast_qp_attach;
        "max_total_mcast_qp_attach" max_total_mcast_qp_attach;
        "max_ah" max_ah;
        "max_fmr" max_fmr;
        "max_map_per_fmr" max_map_per_fmr;
        "max_srq" max_srq;
        "max_srq_wr" max_srq_wr;
        "max_srq_sge" max_srq_sge;
        "max_pkeys" max_pkeys;
        "local_ca_ack_delay" local_ca_ack_delay;
        "phys_port_cnt" phys_port_cnt;
    }
    "struct ibv_query_device_ex_input" ibv_query_device_ex_input {
        "comp_mask" comp_mask;
    }
    "struct ibv_odp_caps" ibv_odp_caps {
        "general_caps" general_caps;
        "per_transport_caps" per_transport_caps;
        "per_transport_caps.rc_odp_caps" per_transport_caps.rc_odp_caps;
        "per_transport_caps.uc_odp_caps" per_transport_caps.uc_odp_caps;
        "per_transport_caps.ud_odp_caps" per_transport_caps.ud_odp_caps;
    }
    "struct ibv_tso_caps" ibv_tso_caps {
        "max_tso" max_tso;
        "supported_qpts" supported_qpts;
    }
    "struct ibv_rss_caps" ibv_rss_caps {
        "supported_qpts" supported_qpts;
        "max_rwq_indirection_tables" max_rwq_indirection_tables;
        "max_rwq_indirection_table_size" max_rwq_indirection_table_size;
        "rx_hash_fields_mask" rx_hash_fields_mask;
        "rx_hash_function" rx_hash_function;
    }
    "struct ibv_packet_pacing_caps" ibv_packet_pacing_caps {
        "qp_rate_limit_min" qp_rate_limit_min;
        "qp_rate_limit_max" qp_rate_limit_max;
        "supported_qpts" supported_qpts;
    }
    "struct ibv_tm_caps" ibv_tm_caps {
        "max_rndv_hdr_size" max_rndv_hdr_size;
        "max_num_tags" max_num_tags;
        "flags" flags;
        "max_ops" max_ops;
        "max_sge" max_sge;
    }
    "struct ibv_cq_moderation_caps" ibv_cq_moderation_caps {
        "max_cq_count" max_cq_count;
        "max_cq_period" max_cq_period;
    }
    "struct ibv_pci_atomic_caps" ibv_pci_atomic_caps {
        "fetch_add" fetch_add;
        "swap" swap;
        "compare_swap" compare_swap;
    }
    "struct ibv_device_attr_ex" ibv_device_attr_ex {
        "orig_attr" orig_attr;
        "comp_mask" comp_mask;
        "odp_caps" odp_caps;
        "completion_timestamp_mask" completion_timestamp_mask;
        "hca_core_clock" hca_core_clock;
        "device_cap_flags_ex" device_cap_flags_ex;
        "tso_caps" tso_caps;
        "rss_caps" rss_caps;
        "max_wq_type_rq" max_wq_type_rq;
        "packet_pacing_caps" packet_pacing_caps;
        "raw_packet_caps" raw_packet_caps;
        "tm_caps" tm_caps;
        "cq_mod_caps" cq_mod_caps;
        "max_dm_size" max_dm_size;
        "pci_atomic_caps" pci_atomic_caps;
        "xrc_odp_caps" xrc_odp_caps;
        "phys_port_cnt_ex" phys_port_cnt_ex;
    }
    "struct ibv_port_attr" ibv_port_attr {
        "state" state;
        "max_mtu" max_mtu;
        "active_mtu" active_mtu;
        "gid_tbl_len" gid_tbl_len;
        "port_cap_flags" port_cap_flags;
        "max_msg_sz" max_msg_sz;
        "bad_pkey_cntr" bad_pkey_cntr;
        "qkey_viol_cntr" qkey_viol_cntr;
        "pkey_tbl_len" pkey_tbl_len;
        "lid" lid;
        "sm_lid" sm_lid;
        "lmc" lmc;
        "max_vl_num" max_vl_num;
        "sm_sl" sm_sl;
        "subnet_timeout" subnet_timeout;
        "init_type_reply" init_type_reply;
        "active_width" active_width;
        "active_speed" active_speed;
        "phys_state" phys_state;
        "link_layer" link_layer;
        "flags" flags;
        "port_cap_flags2" port_cap_flags2;
        "active_speed_ex" active_speed_ex;
    }
    "struct ibv_async_event" ibv_async_event {
        "element" element;
        "element.cq" element.cq;
        "element.qp" element.qp;
        "element.srq" element.srq;
        "element.wq" element.wq;
        "element.port_num" element.port_num;
        "event_type" event_type;
    }
    "struct ibv_wc" ibv_wc {
        "wr_id" wr_id;
        "status" status;
        "opcode" opcode;
        "vendor_err" vendor_err;
        "byte_len" byte_len;
        "imm_data" __bindgen_anon_1.imm_data;
        "invalidated_rkey" __bindgen_anon_1.invalidated_rkey;
        "qp_num" qp_num;
        "src_qp" src_qp;
        "wc_flags" wc_flags;
        "pkey_index" pkey_index;
        "slid" slid;
        "sl" sl;
        "dlid_path_bits" dlid_path_bits;
    }
    "struct ibv_mw_bind_info" ibv_mw_bind_info {
        "mr" mr;
        "addr" addr;
        "length" length;
        "mw_access_flags" mw_access_flags;
    }
    "struct ibv_dmah" ibv_dmah {
        "context" context;
    }
    "struct ibv_pd" ibv_pd {
        "context" context;
        "handle" handle;
    }
    "struct ibv_td_init_attr" ibv_td_init_attr {
        "comp_mask" comp_mask;
    }
    "struct ibv_td" ibv_td {
        "context" context;
    }
    "struct ibv_xrcd_init_attr" ibv_xrcd_init_attr {
        "comp_mask" comp_mask;
        "fd" fd;
        "oflags" oflags;
    }
    "struct ibv_xrcd" ibv_xrcd {
        "context" context;
    }
    "struct ibv_mr" ibv_mr {
        "context" context;
        "pd" pd;
        "addr" addr;
        "length" length;
        "handle" handle;
        "lkey" lkey;
        "rkey" rkey;
    }
    "struct ibv_mr_init_attr" ibv_mr_init_attr {
        "length" length;
        "access" access;
        "comp_mask" comp_mask;
        "iova" iova;
        "addr" addr;
        "fd" fd;
        "fd_offset" fd_offset;
        "dmah" dmah;
        "buf" buf;
    }
    "struct ibv_mw" ibv_mw {
        "context" context;
        "pd" pd;
        "rkey" rkey;
        "handle" handle;
        "type" type_;
    }
    "struct ibv_global_route" ibv_global_route {
        "dgid" dgid;
        "flow_label" flow_label;
        "sgid_index" sgid_index;
        "hop_limit" hop_limit;
        "traffic_class" traffic_class;
    }
    "struct ibv_grh" ibv_grh {
        "version_tclass_flow" version_tclass_flow;
        "paylen" paylen;
        "next_hdr" next_hdr;
        "hop_limit" hop_limit;
        "sgid" sgid;
        "dgid" dgid;
    }
    "struct ibv_ah_attr" ibv_ah_attr {
        "grh" grh;
        "dlid" dlid;
        "sl" sl;
        "src_path_bits" src_path_bits;
        "static_rate" static_rate;
        "is_global" is_global;
        "port_num" port_num;
    }
    "struct ibv_srq_attr" ibv_srq_attr {
        "max_wr" max_wr;
        "max_sge" max_sge;
        "srq_limit" srq_limit;
    }
    "struct ibv_srq_init_attr" ibv_srq_init_attr {
        "srq_context" srq_context;
        "attr" attr;
    }
    "struct ibv_tm_cap" ibv_tm_cap {
        "max_num_tags" max_num_tags;
        "max_ops" max_ops;
    }
    "struct ibv_srq_init_attr_ex" ibv_srq_init_attr_ex {
        "srq_context" srq_context;
        "attr" attr;
        "comp_mask" comp_mask;
        "srq_type" srq_type;
        "pd" pd;
        "xrcd" xrcd;
        "cq" cq;
        "tm_cap" tm_cap;
    }
    "struct ibv_wq_init_attr" ibv_wq_init_attr {
        "wq_context" wq_context;
        "wq_type" wq_type;
        "max_wr" max_wr;
        "max_sge" max_sge;
        "pd" pd;
        "cq" cq;
        "comp_mask" comp_mask;
        "create_flags" create_flags;
    }
    "struct ibv_wq_attr" ibv_wq_attr {
        "attr_mask" attr_mask;
        "wq_state" wq_state;
        "curr_wq_state" curr_wq_state;
        "flags" flags;
        "flags_mask" flags_mask;
    }
    "struct ibv_rwq_ind_table" ibv_rwq_ind_table {
        "context" context;
        "ind_tbl_handle" ind_tbl_handle;
        "ind_tbl_num" ind_tbl_num;
        "comp_mask" comp_mask;
    }
    "struct ibv_rwq_ind_table_init_attr" ibv_rwq_ind_table_init_attr {
        "log_ind_tbl_size" log_ind_tbl_size;
        "ind_tbl" ind_tbl;
        "comp_mask" comp_mask;
    }
    "struct ibv_qp_cap" ibv_qp_cap {
        "max_send_wr" max_send_wr;
        "max_recv_wr" max_recv_wr;
        "max_send_sge" max_send_sge;
        "max_recv_sge" max_recv_sge;
        "max_inline_data" max_inline_data;
    }
    "struct ibv_qp_init_attr" ibv_qp_init_attr {
        "qp_context" qp_context;
        "send_cq" send_cq;
        "recv_cq" recv_cq;
        "srq" srq;
        "cap" cap;
        "qp_type" qp_type;
        "sq_sig_all" sq_sig_all;
    }
    "struct ibv_rx_hash_conf" ibv_rx_hash_conf {
        "rx_hash_function" rx_hash_function;
        "rx_hash_key_len" rx_hash_key_len;
        "rx_hash_key" rx_hash_key;
        "rx_hash_fields_mask" rx_hash_fields_mask;
    }
    "struct ibv_qp_init_attr_ex" ibv_qp_init_attr_ex {
        "qp_context" qp_context;
        "send_cq" send_cq;
        "recv_cq" recv_cq;
        "srq" srq;
        "cap" cap;
        "qp_type" qp_type;
        "sq_sig_all" sq_sig_all;
        "comp_mask" comp_mask;
        "pd" pd;
        "xrcd" xrcd;
        "create_flags" create_flags;
        "max_tso_header" max_tso_header;
        "rwq_ind_tbl" rwq_ind_tbl;
        "rx_hash_conf" rx_hash_conf;
        "source_qpn" source_qpn;
        "send_ops_flags" send_ops_flags;
    }
    "struct ibv_qp_open_attr" ibv_qp_open_attr {
        "comp_mask" comp_mask;
        "qp_num" qp_num;
        "xrcd" xrcd;
        "qp_context" qp_context;
        "qp_type" qp_type;
    }
    "struct ibv_qp_attr" ibv_qp_attr {
        "qp_state" qp_state;
        "cur_qp_state" cur_qp_state;
        "path_mtu" path_mtu;
        "path_mig_state" path_mig_state;
        "qkey" qkey;
        "rq_psn" rq_psn;
        "sq_psn" sq_psn;
        "dest_qp_num" dest_qp_num;
        "qp_access_flags" qp_access_flags;
        "cap" cap;
        "ah_attr" ah_attr;
        "alt_ah_attr" alt_ah_attr;
        "pkey_index" pkey_index;
        "alt_pkey_index" alt_pkey_index;
        "en_sqd_async_notify" en_sqd_async_notify;
        "sq_draining" sq_draining;
        "max_rd_atomic" max_rd_atomic;
        "max_dest_rd_atomic" max_dest_rd_atomic;
        "min_rnr_timer" min_rnr_timer;
        "port_num" port_num;
        "timeout" timeout;
        "retry_cnt" retry_cnt;
        "rnr_retry" rnr_retry;
        "alt_port_num" alt_port_num;
        "alt_timeout" alt_timeout;
        "rate_limit" rate_limit;
    }
    "struct ibv_qp_rate_limit_attr" ibv_qp_rate_limit_attr {
        "rate_limit" rate_limit;
        "max_burst_sz" max_burst_sz;
        "typical_pkt_sz" typical_pkt_sz;
        "comp_mask" comp_mask;
    }
    "struct ibv_data_buf" ibv_data_buf {
        "addr" addr;
        "length" length;
    }
    "struct ibv_sge" ibv_sge {
        "addr" addr;
        "length" length;
        "lkey" lkey;
    }
    "struct ibv_fd_arr" ibv_fd_arr {
        "arr" arr;
        "count" count;
    }
    "struct ibv_send_wr" ibv_send_wr {
        "wr_id" wr_id;
        "next" next;
        "sg_list" sg_list;
        "num_sge" num_sge;
        "opcode" opcode;
        "send_flags" send_flags;
        "imm_data" __bindgen_anon_1.imm_data;
        "invalidate_rkey" __bindgen_anon_1.invalidate_rkey;
        "wr" wr;
        "wr.rdma" wr.rdma;
        "wr.rdma.remote_addr" wr.rdma.remote_addr;
        "wr.rdma.rkey" wr.rdma.rkey;
        "wr.atomic" wr.atomic;
        "wr.atomic.remote_addr" wr.atomic.remote_addr;
        "wr.atomic.compare_add" wr.atomic.compare_add;
        "wr.atomic.swap" wr.atomic.swap;
        "wr.atomic.rkey" wr.atomic.rkey;
        "wr.ud" wr.ud;
        "wr.ud.ah" wr.ud.ah;
        "wr.ud.remote_qpn" wr.ud.remote_qpn;
        "wr.ud.remote_qkey" wr.ud.remote_qkey;
        "qp_type" qp_type;
        "qp_type.xrc" qp_type.xrc;
        "qp_type.xrc.remote_srqn" qp_type.xrc.remote_srqn;
        "bind_mw" __bindgen_anon_2.bind_mw;
        "bind_mw.mw" __bindgen_anon_2.bind_mw.mw;
        "bind_mw.rkey" __bindgen_anon_2.bind_mw.rkey;
        "bind_mw.bind_info" __bindgen_anon_2.bind_mw.bind_info;
        "tso" __bindgen_anon_2.tso;
        "tso.hdr" __bindgen_anon_2.tso.hdr;
        "tso.hdr_sz" __bindgen_anon_2.tso.hdr_sz;
        "tso.mss" __bindgen_anon_2.tso.mss;
    }
    "struct ibv_recv_wr" ibv_recv_wr {
        "wr_id" wr_id;
        "next" next;
        "sg_list" sg_list;
        "num_sge" num_sge;
    }
    "struct ibv_ops_wr" ibv_ops_wr {
        "wr_id" wr_id;
        "next" next;
        "opcode" opcode;
        "flags" flags;
        "tm" tm;
        "tm.unexpected_cnt" tm.unexpected_cnt;
        "tm.handle" tm.handle;
        "tm.add" tm.add;
        "tm.add.recv_wr_id" tm.add.recv_wr_id;
        "tm.add.sg_list" tm.add.sg_list;
        "tm.add.num_sge" tm.add.num_sge;
        "tm.add.tag" tm.add.tag;
        "tm.add.mask" tm.add.mask;
    }
    "struct ibv_mw_bind" ibv_mw_bind {
        "wr_id" wr_id;
        "send_flags" send_flags;
        "bind_info" bind_info;
    }
    "struct ibv_srq" ibv_srq {
        "context" context;
        "srq_context" srq_context;
        "pd" pd;
        "handle" handle;
        "mutex" mutex;
        "cond" cond;
        "events_completed" events_completed;
    }
    "struct ibv_wq" ibv_wq {
        "context" context;
        "wq_context" wq_context;
        "pd" pd;
        "cq" cq;
        "wq_num" wq_num;
        "handle" handle;
        "state" state;
        "wq_type" wq_type;
        "post_recv" post_recv;
        "mutex" mutex;
        "cond" cond;
        "events_completed" events_completed;
        "comp_mask" comp_mask;
    }
    "struct ibv_qp" ibv_qp {
        "context" context;
        "qp_context" qp_context;
        "pd" pd;
        "send_cq" send_cq;
        "recv_cq" recv_cq;
        "srq" srq;
        "handle" handle;
        "qp_num" qp_num;
        "state" state;
        "qp_type" qp_type;
        "mutex" mutex;
        "cond" cond;
        "events_completed" events_completed;
    }
    "struct ibv_qp_ex" ibv_qp_ex {
        "qp_base" qp_base;
        "comp_mask" comp_mask;
        "wr_id" wr_id;
        "wr_flags" wr_flags;
        "wr_atomic_cmp_swp" wr_atomic_cmp_swp;
        "wr_atomic_fetch_add" wr_atomic_fetch_add;
        "wr_bind_mw" wr_bind_mw;
        "wr_local_inv" wr_local_inv;
        "wr_rdma_read" wr_rdma_read;
        "wr_rdma_write" wr_rdma_write;
        "wr_rdma_write_imm" wr_rdma_write_imm;
        "wr_send" wr_send;
        "wr_send_imm" wr_send_imm;
        "wr_send_inv" wr_send_inv;
        "wr_send_tso" wr_send_tso;
        "wr_set_ud_addr" wr_set_ud_addr;
        "wr_set_xrc_srqn" wr_set_xrc_srqn;
        "wr_set_inline_data" wr_set_inline_data;
        "wr_set_inline_data_list" wr_set_inline_data_list;
        "wr_set_sge" wr_set_sge;
        "wr_set_sge_list" wr_set_sge_list;
        "wr_start" wr_start;
        "wr_complete" wr_complete;
        "wr_abort" wr_abort;
        "wr_atomic_write" wr_atomic_write;
        "wr_flush" wr_flush;
    }
    "struct ibv_ece" ibv_ece {
        "vendor_id" vendor_id;
        "options" options;
        "comp_mask" comp_mask;
    }
    "struct ibv_comp_channel" ibv_comp_channel {
        "context" context;
        "fd" fd;
        "refcnt" refcnt;
    }
    "struct ibv_cq" ibv_cq {
        "context" context;
        "channel" channel;
        "cq_context" cq_context;
        "handle" handle;
        "cqe" cqe;
        "mutex" mutex;
        "cond" cond;
        "comp_events_completed" comp_events_completed;
        "async_events_completed" async_events_completed;
    }
    "struct ibv_poll_cq_attr" ibv_poll_cq_attr {
        "comp_mask" comp_mask;
    }
    "struct ibv_wc_tm_info" ibv_wc_tm_info {
        "tag" tag;
        "priv" priv_;
    }
    "struct ibv_cq_ex" ibv_cq_ex {
        "context" context;
        "channel" channel;
        "cq_context" cq_context;
        "handle" handle;
        "cqe" cqe;
        "mutex" mutex;
        "cond" cond;
        "comp_events_completed" comp_events_completed;
        "async_events_completed" async_events_completed;
        "comp_mask" comp_mask;
        "status" status;
        "wr_id" wr_id;
        "start_poll" start_poll;
        "next_poll" next_poll;
        "end_poll" end_poll;
        "read_opcode" read_opcode;
        "read_vendor_err" read_vendor_err;
        "read_byte_len" read_byte_len;
        "read_imm_data" read_imm_data;
        "read_qp_num" read_qp_num;
        "read_src_qp" read_src_qp;
        "read_wc_flags" read_wc_flags;
        "read_slid" read_slid;
        "read_sl" read_sl;
        "read_dlid_path_bits" read_dlid_path_bits;
        "read_completion_ts" read_completion_ts;
        "read_cvlan" read_cvlan;
        "read_flow_tag" read_flow_tag;
        "read_tm_info" read_tm_info;
        "read_completion_wallclock_ns" read_completion_wallclock_ns;
    }
    "struct ibv_moderate_cq" ibv_moderate_cq {
        "cq_count" cq_count;
        "cq_period" cq_period;
    }
    "struct ibv_modify_cq_attr" ibv_modify_cq_attr {
        "attr_mask" attr_mask;
        "moderate" moderate;
    }
    "struct ibv_ah" ibv_ah {
        "context" context;
        "pd" pd;
        "handle" handle;
    }
    "struct ibv_flow_eth_filter" ibv_flow_eth_filter {
        "dst_mac" dst_mac;
        "src_mac" src_mac;
        "ether_type" ether_type;
        "vlan_tag" vlan_tag;
    }
    "struct ibv_flow_spec_eth" ibv_flow_spec_eth {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_ipv4_filter" ibv_flow_ipv4_filter {
        "src_ip" src_ip;
        "dst_ip" dst_ip;
    }
    "struct ibv_flow_spec_ipv4" ibv_flow_spec_ipv4 {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_ipv4_ext_filter" ibv_flow_ipv4_ext_filter {
        "src_ip" src_ip;
        "dst_ip" dst_ip;
        "proto" proto;
        "tos" tos;
        "ttl" ttl;
        "flags" flags;
    }
    "struct ibv_flow_spec_ipv4_ext" ibv_flow_spec_ipv4_ext {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_ipv6_filter" ibv_flow_ipv6_filter {
        "src_ip" src_ip;
        "dst_ip" dst_ip;
        "flow_label" flow_label;
        "next_hdr" next_hdr;
        "traffic_class" traffic_class;
        "hop_limit" hop_limit;
    }
    "struct ibv_flow_spec_ipv6" ibv_flow_spec_ipv6 {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_esp_filter" ibv_flow_esp_filter {
        "spi" spi;
        "seq" seq;
    }
    "struct ibv_flow_spec_esp" ibv_flow_spec_esp {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_tcp_udp_filter" ibv_flow_tcp_udp_filter {
        "dst_port" dst_port;
        "src_port" src_port;
    }
    "struct ibv_flow_spec_tcp_udp" ibv_flow_spec_tcp_udp {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_gre_filter" ibv_flow_gre_filter {
        "c_ks_res0_ver" c_ks_res0_ver;
        "protocol" protocol;
        "key" key;
    }
    "struct ibv_flow_spec_gre" ibv_flow_spec_gre {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_mpls_filter" ibv_flow_mpls_filter {
        "label" label;
    }
    "struct ibv_flow_spec_mpls" ibv_flow_spec_mpls {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_tunnel_filter" ibv_flow_tunnel_filter {
        "tunnel_id" tunnel_id;
    }
    "struct ibv_flow_spec_tunnel" ibv_flow_spec_tunnel {
        "type" type_;
        "size" size;
        "val" val;
        "mask" mask;
    }
    "struct ibv_flow_spec_action_tag" ibv_flow_spec_action_tag {
        "type" type_;
        "size" size;
        "tag_id" tag_id;
    }
    "struct ibv_flow_spec_action_drop" ibv_flow_spec_action_drop {
        "type" type_;
        "size" size;
    }
    "struct ibv_flow_spec_action_handle" ibv_flow_spec_action_handle {
        "type" type_;
        "size" size;
        "action" action;
    }
    "struct ibv_flow_spec_counter_action" ibv_flow_spec_counter_action {
        "type" type_;
        "size" size;
        "counters" counters;
    }
    "struct ibv_flow_spec" ibv_flow_spec {
        "hdr" __bindgen_anon_1.hdr;
        "hdr.type" __bindgen_anon_1.hdr.type_;
        "hdr.size" __bindgen_anon_1.hdr.size;
        "eth" __bindgen_anon_1.eth;
        "ipv4" __bindgen_anon_1.ipv4;
        "tcp_udp" __bindgen_anon_1.tcp_udp;
        "ipv4_ext" __bindgen_anon_1.ipv4_ext;
        "ipv6" __bindgen_anon_1.ipv6;
        "esp" __bindgen_anon_1.esp;
        "tunnel" __bindgen_anon_1.tunnel;
        "gre" __bindgen_anon_1.gre;
        "mpls" __bindgen_anon_1.mpls;
        "flow_tag" __bindgen_anon_1.flow_tag;
        "drop" __bindgen_anon_1.drop;
        "handle" __bindgen_anon_1.handle;
        "flow_count" __bindgen_anon_1.flow_count;
    }
    "struct ibv_flow_attr" ibv_flow_attr {
        "comp_mask" comp_mask;
        "type" type_;
        "size" size;
        "priority" priority;
        "num_of_specs" num_of_specs;
        "port" port;
        "flags" flags;
    }
    "struct ibv_flow" ibv_flow {
        "comp_mask" comp_mask;
        "context" context;
        "handle" handle;
    }
    "struct ibv_flow_action" ibv_flow_action {
        "context" context;
    }
    "struct ibv_flow_action_esp_attr" ibv_flow_action_esp_attr {
        "esp_attr" esp_attr;
        "keymat_proto" keymat_proto;
        "keymat_len" keymat_len;
        "keymat_ptr" keymat_ptr;
        "replay_proto" replay_proto;
        "replay_len" replay_len;
        "replay_ptr" replay_ptr;
        "esp_encap" esp_encap;
        "comp_mask" comp_mask;
        "esn" esn;
    }
    "struct _ibv_device_ops" _ibv_device_ops {
        "_dummy1" _dummy1;
        "_dummy2" _dummy2;
    }
    "struct ibv_device" ibv_device {
        "_ops" _ops;
        "node_type" node_type;
        "transport_type" transport_type;
        "name" name;
        "dev_name" dev_name;
        "dev_path" dev_path;
        "ibdev_path" ibdev_path;
    }
    "struct ibv_context_ops" ibv_context_ops {
        "_compat_query_device" _compat_query_device;
        "_compat_query_port" _compat_query_port;
        "_compat_alloc_pd" _compat_alloc_pd;
        "_compat_dealloc_pd" _compat_dealloc_pd;
        "_compat_reg_mr" _compat_reg_mr;
        "_compat_rereg_mr" _compat_rereg_mr;
        "_compat_dereg_mr" _compat_dereg_mr;
        "alloc_mw" alloc_mw;
        "bind_mw" bind_mw;
        "dealloc_mw" dealloc_mw;
        "_compat_create_cq" _compat_create_cq;
        "poll_cq" poll_cq;
        "req_notify_cq" req_notify_cq;
        "_compat_cq_event" _compat_cq_event;
        "_compat_resize_cq" _compat_resize_cq;
        "_compat_destroy_cq" _compat_destroy_cq;
        "_compat_create_srq" _compat_create_srq;
        "_compat_modify_srq" _compat_modify_srq;
        "_compat_query_srq" _compat_query_srq;
        "_compat_destroy_srq" _compat_destroy_srq;
        "post_srq_recv" post_srq_recv;
        "_compat_create_qp" _compat_create_qp;
        "_compat_query_qp" _compat_query_qp;
        "_compat_modify_qp" _compat_modify_qp;
        "_compat_destroy_qp" _compat_destroy_qp;
        "post_send" post_send;
        "post_recv" post_recv;
        "_compat_create_ah" _compat_create_ah;
        "_compat_destroy_ah" _compat_destroy_ah;
        "_compat_attach_mcast" _compat_attach_mcast;
        "_compat_detach_mcast" _compat_detach_mcast;
        "_compat_async_event" _compat_async_event;
    }
    "struct ibv_context" ibv_context {
        "device" device;
        "ops" ops;
        "cmd_fd" cmd_fd;
        "async_fd" async_fd;
        "num_comp_vectors" num_comp_vectors;
        "mutex" mutex;
        "abi_compat" abi_compat;
    }
    "struct ibv_cq_init_attr_ex" ibv_cq_init_attr_ex {
        "cqe" cqe;
        "cq_context" cq_context;
        "channel" channel;
        "comp_vector" comp_vector;
        "wc_flags" wc_flags;
        "comp_mask" comp_mask;
        "flags" flags;
        "parent_domain" parent_domain;
    }
    "struct ibv_comp_cntr_caps" ibv_comp_cntr_caps {
        "max_value" max_value;
        "max_counters" max_counters;
        "supported_qp_attach_ops" supported_qp_attach_ops;
    }
    "struct ibv_comp_cntr" ibv_comp_cntr {
        "context" context;
        "handle" handle;
    }
    "struct ibv_comp_cntr_init_attr" ibv_comp_cntr_init_attr {
        "comp_mask" comp_mask;
        "type" type_;
        "flags" flags;
    }
    "struct ibv_qp_attach_comp_cntr_attr" ibv_qp_attach_comp_cntr_attr {
        "comp_mask" comp_mask;
        "op_mask" op_mask;
    }
    "struct ibv_parent_domain_init_attr" ibv_parent_domain_init_attr {
        "pd" pd;
        "td" td;
        "comp_mask" comp_mask;
        "alloc" alloc;
        "free" free;
        "pd_context" pd_context;
    }
    "struct ibv_dmah_init_attr" ibv_dmah_init_attr {
        "comp_mask" comp_mask;
        "cpu_id" cpu_id;
        "ph" ph;
        "tph_mem_type" tph_mem_type;
    }
    "struct ibv_counters_init_attr" ibv_counters_init_attr {
        "comp_mask" comp_mask;
    }
    "struct ibv_counters" ibv_counters {
        "context" context;
    }
    "struct ibv_counter_attach_attr" ibv_counter_attach_attr {
        "counter_desc" counter_desc;
        "index" index;
        "comp_mask" comp_mask;
    }
    "struct ibv_values_ex" ibv_values_ex {
        "comp_mask" comp_mask;
        "raw_clock" raw_clock;
    }
    "struct verbs_context" verbs_context {
        "free_buf" free_buf;
        "alloc_buf" alloc_buf;
        "dm_export_dmabuf_fd" dm_export_dmabuf_fd;
        "reg_mr_ex" reg_mr_ex;
        "dealloc_dmah" dealloc_dmah;
        "alloc_dmah" alloc_dmah;
        "query_port" query_port;
        "advise_mr" advise_mr;
        "alloc_null_mr" alloc_null_mr;
        "read_counters" read_counters;
        "attach_counters_point_flow" attach_counters_point_flow;
        "create_counters" create_counters;
        "destroy_counters" destroy_counters;
        "reg_dm_mr" reg_dm_mr;
        "alloc_dm" alloc_dm;
        "free_dm" free_dm;
        "modify_flow_action_esp" modify_flow_action_esp;
        "destroy_flow_action" destroy_flow_action;
        "create_flow_action_esp" create_flow_action_esp;
        "modify_qp_rate_limit" modify_qp_rate_limit;
        "alloc_parent_domain" alloc_parent_domain;
        "dealloc_td" dealloc_td;
        "alloc_td" alloc_td;
        "modify_cq" modify_cq;
        "post_srq_ops" post_srq_ops;
        "destroy_rwq_ind_table" destroy_rwq_ind_table;
        "create_rwq_ind_table" create_rwq_ind_table;
        "destroy_wq" destroy_wq;
        "modify_wq" modify_wq;
        "create_wq" create_wq;
        "query_rt_values" query_rt_values;
        "create_cq_ex" create_cq_ex;
        "priv" priv_;
        "query_device_ex" query_device_ex;
        "ibv_destroy_flow" ibv_destroy_flow;
        "ABI_placeholder2" ABI_placeholder2;
        "ibv_create_flow" ibv_create_flow;
        "ABI_placeholder1" ABI_placeholder1;
        "open_qp" open_qp;
        "create_qp_ex" create_qp_ex;
        "get_srq_num" get_srq_num;
        "create_srq_ex" create_srq_ex;
        "open_xrcd" open_xrcd;
        "close_xrcd" close_xrcd;
        "_ABI_placeholder3" _ABI_placeholder3;
        "sz" sz;
        "context" context;
    }
    "struct ibv_sa_path_rec" ibv_sa_path_rec {
        "dgid" dgid;
        "sgid" sgid;
        "dlid" dlid;
        "slid" slid;
        "raw_traffic" raw_traffic;
        "flow_label" flow_label;
        "hop_limit" hop_limit;
        "traffic_class" traffic_class;
        "reversible" reversible;
        "numb_path" numb_path;
        "pkey" pkey;
        "sl" sl;
        "mtu_selector" mtu_selector;
        "mtu" mtu;
        "rate_selector" rate_selector;
        "rate" rate;
        "packet_life_time_selector" packet_life_time_selector;
        "packet_life_time" packet_life_time;
        "preference" preference;
    }
    "struct ibv_sa_mcmember_rec" ibv_sa_mcmember_rec {
        "mgid" mgid;
        "port_gid" port_gid;
        "qkey" qkey;
        "mlid" mlid;
        "mtu_selector" mtu_selector;
        "mtu" mtu;
        "traffic_class" traffic_class;
        "pkey" pkey;
        "rate_selector" rate_selector;
        "rate" rate;
        "packet_life_time_selector" packet_life_time_selector;
        "packet_life_time" packet_life_time;
        "sl" sl;
        "flow_label" flow_label;
        "hop_limit" hop_limit;
        "scope" scope;
        "join_state" join_state;
        "proxy_join" proxy_join;
    }
    "struct ibv_sa_service_rec" ibv_sa_service_rec {
        "id" id;
        "gid" gid;
        "pkey" pkey;
        "lease" lease;
        "key" key;
        "name" name;
        "data8" data8;
        "data16" data16;
        "data32" data32;
        "data64" data64;
    }
    "struct ibv_path_record" ibv_path_record {
        "service_id" service_id;
        "dgid" dgid;
        "sgid" sgid;
        "dlid" dlid;
        "slid" slid;
        "flowlabel_hoplimit" flowlabel_hoplimit;
        "tclass" tclass;
        "reversible_numpath" reversible_numpath;
        "pkey" pkey;
        "qosclass_sl" qosclass_sl;
        "mtu" mtu;
        "rate" rate;
        "packetlifetime" packetlifetime;
        "preference" preference;
        "reserved" reserved;
    }
    "struct ibv_path_data" ibv_path_data {
        "flags" flags;
        "reserved" reserved;
        "path" path;
    }
    "struct rdma_ib_addr" rdma_ib_addr {
        "sgid" sgid;
        "dgid" dgid;
        "pkey" pkey;
    }
    "struct rdma_addr" rdma_addr {
        "src_addr" __bindgen_anon_1.src_addr;
        "src_sin" __bindgen_anon_1.src_sin;
        "src_sin6" __bindgen_anon_1.src_sin6;
        "src_storage" __bindgen_anon_1.src_storage;
        "dst_addr" __bindgen_anon_2.dst_addr;
        "dst_sin" __bindgen_anon_2.dst_sin;
        "dst_sin6" __bindgen_anon_2.dst_sin6;
        "dst_storage" __bindgen_anon_2.dst_storage;
        "addr" addr;
        "addr.ibaddr" addr.ibaddr;
    }
    "struct rdma_route" rdma_route {
        "addr" addr;
        "path_rec" path_rec;
        "num_paths" num_paths;
    }
    "struct rdma_event_channel" rdma_event_channel {
        "fd" fd;
    }
    "struct rdma_cm_id" rdma_cm_id {
        "verbs" verbs;
        "channel" channel;
        "context" context;
        "qp" qp;
        "route" route;
        "ps" ps;
        "port_num" port_num;
        "event" event;
        "send_cq_channel" send_cq_channel;
        "send_cq" send_cq;
        "recv_cq_channel" recv_cq_channel;
        "recv_cq" recv_cq;
        "srq" srq;
        "pd" pd;
        "qp_type" qp_type;
    }
    "struct rdma_conn_param" rdma_conn_param {
        "private_data" private_data;
        "private_data_len" private_data_len;
        "responder_resources" responder_resources;
        "initiator_depth" initiator_depth;
        "flow_control" flow_control;
        "retry_count" retry_count;
        "rnr_retry_count" rnr_retry_count;
        "srq" srq;
        "qp_num" qp_num;
    }
    "struct rdma_ud_param" rdma_ud_param {
        "private_data" private_data;
        "private_data_len" private_data_len;
        "ah_attr" ah_attr;
        "qp_num" qp_num;
        "qkey" qkey;
    }
    "struct rdma_cm_event" rdma_cm_event {
        "id" id;
        "listen_id" listen_id;
        "event" event;
        "status" status;
        "param" param;
        "param.conn" param.conn;
        "param.ud" param.ud;
        "param.arg" param.arg;
    }
    "struct rdma_addrinfo" rdma_addrinfo {
        "ai_flags" ai_flags;
        "ai_family" ai_family;
        "ai_qp_type" ai_qp_type;
        "ai_port_space" ai_port_space;
        "ai_src_len" ai_src_len;
        "ai_dst_len" ai_dst_len;
        "ai_src_addr" ai_src_addr;
        "ai_dst_addr" ai_dst_addr;
        "ai_src_canonname" ai_src_canonname;
        "ai_dst_canonname" ai_dst_canonname;
        "ai_route_len" ai_route_len;
        "ai_route" ai_route;
        "ai_connect_len" ai_connect_len;
        "ai_connect" ai_connect;
        "ai_next" ai_next;
    }
    "struct rdma_cm_join_mc_attr_ex" rdma_cm_join_mc_attr_ex {
        "comp_mask" comp_mask;
        "join_flags" join_flags;
        "addr" addr;
    }
}

constants! {
    IBV_ACCESS_OPTIONAL_FIRST,
    IBV_DEVICE_RAW_SCATTER_FCS,
    IBV_DEVICE_PCI_WRITE_END_PADDING,
    IBV_DEVICE_CC_DMA_BOUNCE,
    IBV_PATH_RECORD_REVERSIBLE,
    IBV_PATH_FLAG_GMP,
    IBV_PATH_FLAG_PRIMARY,
    IBV_PATH_FLAG_ALTERNATE,
    IBV_PATH_FLAG_OUTBOUND,
    IBV_PATH_FLAG_INBOUND,
    IBV_PATH_FLAG_INBOUND_REVERSE,
    IBV_PATH_FLAG_BIDIRECTIONAL,
    RDMA_IB_IP_PORT_MASK,
    RDMA_IB_IP_PS_TCP,
    RDMA_IB_IP_PS_UDP,
    RDMA_IB_PS_IB,
    RDMA_UDP_QKEY,
    RAI_PASSIVE,
    RAI_NUMERICHOST,
    RAI_NOROUTE,
    RAI_FAMILY,
    RAI_SA,
    RAI_DNS,
    IB_UVERBS_FLOW_ACTION_ESP_KEYMAT_AES_GCM,
    IB_UVERBS_FLOW_ACTION_ESP_REPLAY_NONE,
    IB_UVERBS_FLOW_ACTION_ESP_REPLAY_BMP,
    IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
    IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
    IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
    IB_UVERBS_ADVISE_MR_FLAG_FLUSH,
    RDMA_DRIVER_UNKNOWN,
    RDMA_DRIVER_MLX5,
    RDMA_DRIVER_MLX4,
    RDMA_DRIVER_CXGB3,
    RDMA_DRIVER_CXGB4,
    RDMA_DRIVER_MTHCA,
    RDMA_DRIVER_BNXT_RE,
    RDMA_DRIVER_OCRDMA,
    RDMA_DRIVER_NES,
    RDMA_DRIVER_I40IW,
    RDMA_DRIVER_IRDMA,
    RDMA_DRIVER_VMW_PVRDMA,
    RDMA_DRIVER_QEDR,
    RDMA_DRIVER_HNS,
    RDMA_DRIVER_USNIC,
    RDMA_DRIVER_RXE,
    RDMA_DRIVER_HFI1,
    RDMA_DRIVER_QIB,
    RDMA_DRIVER_EFA,
    RDMA_DRIVER_SIW,
    RDMA_DRIVER_ERDMA,
    RDMA_DRIVER_MANA,
    RDMA_DRIVER_IONIC,
    IBV_GID_TYPE_IB,
    IBV_GID_TYPE_ROCE_V1,
    IBV_GID_TYPE_ROCE_V2,
    IBV_NODE_UNKNOWN,
    IBV_NODE_CA,
    IBV_NODE_SWITCH,
    IBV_NODE_ROUTER,
    IBV_NODE_RNIC,
    IBV_NODE_USNIC,
    IBV_NODE_USNIC_UDP,
    IBV_NODE_UNSPECIFIED,
    IBV_TRANSPORT_UNKNOWN,
    IBV_TRANSPORT_IB,
    IBV_TRANSPORT_IWARP,
    IBV_TRANSPORT_USNIC,
    IBV_TRANSPORT_USNIC_UDP,
    IBV_TRANSPORT_UNSPECIFIED,
    IBV_DEVICE_RESIZE_MAX_WR,
    IBV_DEVICE_BAD_PKEY_CNTR,
    IBV_DEVICE_BAD_QKEY_CNTR,
    IBV_DEVICE_RAW_MULTI,
    IBV_DEVICE_AUTO_PATH_MIG,
    IBV_DEVICE_CHANGE_PHY_PORT,
    IBV_DEVICE_UD_AV_PORT_ENFORCE,
    IBV_DEVICE_CURR_QP_STATE_MOD,
    IBV_DEVICE_SHUTDOWN_PORT,
    IBV_DEVICE_INIT_TYPE,
    IBV_DEVICE_PORT_ACTIVE_EVENT,
    IBV_DEVICE_SYS_IMAGE_GUID,
    IBV_DEVICE_RC_RNR_NAK_GEN,
    IBV_DEVICE_SRQ_RESIZE,
    IBV_DEVICE_N_NOTIFY_CQ,
    IBV_DEVICE_MEM_WINDOW,
    IBV_DEVICE_UD_IP_CSUM,
    IBV_DEVICE_XRC,
    IBV_DEVICE_MEM_MGT_EXTENSIONS,
    IBV_DEVICE_MEM_WINDOW_TYPE_2A,
    IBV_DEVICE_MEM_WINDOW_TYPE_2B,
    IBV_DEVICE_RC_IP_CSUM,
    IBV_DEVICE_RAW_IP_CSUM,
    IBV_DEVICE_MANAGED_FLOW_STEERING,
    IBV_FORK_DISABLED,
    IBV_FORK_ENABLED,
    IBV_FORK_UNNEEDED,
    IBV_ATOMIC_NONE,
    IBV_ATOMIC_HCA,
    IBV_ATOMIC_GLOB,
    IBV_DM_MASK_HANDLE,
    IBV_ODP_SUPPORT,
    IBV_ODP_SUPPORT_IMPLICIT,
    IBV_ODP_SUPPORT_SEND,
    IBV_ODP_SUPPORT_RECV,
    IBV_ODP_SUPPORT_WRITE,
    IBV_ODP_SUPPORT_READ,
    IBV_ODP_SUPPORT_ATOMIC,
    IBV_ODP_SUPPORT_SRQ_RECV,
    IBV_ODP_SUPPORT_FLUSH,
    IBV_ODP_SUPPORT_ATOMIC_WRITE,
    IBV_RX_HASH_FUNC_TOEPLITZ,
    IBV_RX_HASH_SRC_IPV4,
    IBV_RX_HASH_DST_IPV4,
    IBV_RX_HASH_SRC_IPV6,
    IBV_RX_HASH_DST_IPV6,
    IBV_RX_HASH_SRC_PORT_TCP,
    IBV_RX_HASH_DST_PORT_TCP,
    IBV_RX_HASH_SRC_PORT_UDP,
    IBV_RX_HASH_DST_PORT_UDP,
    IBV_RX_HASH_IPSEC_SPI,
    IBV_RX_HASH_INNER,
    IBV_RAW_PACKET_CAP_CVLAN_STRIPPING,
    IBV_RAW_PACKET_CAP_SCATTER_FCS,
    IBV_RAW_PACKET_CAP_IP_CSUM,
    IBV_RAW_PACKET_CAP_DELAY_DROP,
    IBV_TM_CAP_RC,
    IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP,
    IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP,
    IBV_PCI_ATOMIC_OPERATION_16_BYTE_SIZE_SUP,
    IBV_MTU_256,
    IBV_MTU_512,
    IBV_MTU_1024,
    IBV_MTU_2048,
    IBV_MTU_4096,
    IBV_PORT_NOP,
    IBV_PORT_DOWN,
    IBV_PORT_INIT,
    IBV_PORT_ARMED,
    IBV_PORT_ACTIVE,
    IBV_PORT_ACTIVE_DEFER,
    IBV_LINK_LAYER_UNSPECIFIED,
    IBV_LINK_LAYER_INFINIBAND,
    IBV_LINK_LAYER_ETHERNET,
    IBV_PORT_SM,
    IBV_PORT_NOTICE_SUP,
    IBV_PORT_TRAP_SUP,
    IBV_PORT_OPT_IPD_SUP,
    IBV_PORT_AUTO_MIGR_SUP,
    IBV_PORT_SL_MAP_SUP,
    IBV_PORT_MKEY_NVRAM,
    IBV_PORT_PKEY_NVRAM,
    IBV_PORT_LED_INFO_SUP,
    IBV_PORT_SYS_IMAGE_GUID_SUP,
    IBV_PORT_PKEY_SW_EXT_PORT_TRAP_SUP,
    IBV_PORT_EXTENDED_SPEEDS_SUP,
    IBV_PORT_CAP_MASK2_SUP,
    IBV_PORT_CM_SUP,
    IBV_PORT_SNMP_TUNNEL_SUP,
    IBV_PORT_REINIT_SUP,
    IBV_PORT_DEVICE_MGMT_SUP,
    IBV_PORT_VENDOR_CLASS_SUP,
    IBV_PORT_DR_NOTICE_SUP,
    IBV_PORT_CAP_MASK_NOTICE_SUP,
    IBV_PORT_BOOT_MGMT_SUP,
    IBV_PORT_LINK_LATENCY_SUP,
    IBV_PORT_CLIENT_REG_SUP,
    IBV_PORT_IP_BASED_GIDS,
    IBV_PORT_SET_NODE_DESC_SUP,
    IBV_PORT_INFO_EXT_SUP,
    IBV_PORT_VIRT_SUP,
    IBV_PORT_SWITCH_PORT_STATE_TABLE_SUP,
    IBV_PORT_LINK_WIDTH_2X_SUP,
    IBV_PORT_LINK_SPEED_HDR_SUP,
    IBV_PORT_LINK_SPEED_NDR_SUP,
    IBV_PORT_LINK_SPEED_XDR_SUP,
    IBV_EVENT_CQ_ERR,
    IBV_EVENT_QP_FATAL,
    IBV_EVENT_QP_REQ_ERR,
    IBV_EVENT_QP_ACCESS_ERR,
    IBV_EVENT_COMM_EST,
    IBV_EVENT_SQ_DRAINED,
    IBV_EVENT_PATH_MIG,
    IBV_EVENT_PATH_MIG_ERR,
    IBV_EVENT_DEVICE_FATAL,
    IBV_EVENT_PORT_ACTIVE,
    IBV_EVENT_PORT_ERR,
    IBV_EVENT_LID_CHANGE,
    IBV_EVENT_PKEY_CHANGE,
    IBV_EVENT_SM_CHANGE,
    IBV_EVENT_SRQ_ERR,
    IBV_EVENT_SRQ_LIMIT_REACHED,
    IBV_EVENT_QP_LAST_WQE_REACHED,
    IBV_EVENT_CLIENT_REREGISTER,
    IBV_EVENT_GID_CHANGE,
    IBV_EVENT_WQ_FATAL,
    IBV_EVENT_DEVICE_SPEED_CHANGE,
    IBV_WC_SUCCESS,
    IBV_WC_LOC_LEN_ERR,
    IBV_WC_LOC_QP_OP_ERR,
    IBV_WC_LOC_EEC_OP_ERR,
    IBV_WC_LOC_PROT_ERR,
    IBV_WC_WR_FLUSH_ERR,
    IBV_WC_MW_BIND_ERR,
    IBV_WC_BAD_RESP_ERR,
    IBV_WC_LOC_ACCESS_ERR,
    IBV_WC_REM_INV_REQ_ERR,
    IBV_WC_REM_ACCESS_ERR,
    IBV_WC_REM_OP_ERR,
    IBV_WC_RETRY_EXC_ERR,
    IBV_WC_RNR_RETRY_EXC_ERR,
    IBV_WC_LOC_RDD_VIOL_ERR,
    IBV_WC_REM_INV_RD_REQ_ERR,
    IBV_WC_REM_ABORT_ERR,
    IBV_WC_INV_EECN_ERR,
    IBV_WC_INV_EEC_STATE_ERR,
    IBV_WC_FATAL_ERR,
    IBV_WC_RESP_TIMEOUT_ERR,
    IBV_WC_GENERAL_ERR,
    IBV_WC_TM_ERR,
    IBV_WC_TM_RNDV_INCOMPLETE,
    IBV_WC_SEND,
    IBV_WC_RDMA_WRITE,
    IBV_WC_RDMA_READ,
    IBV_WC_COMP_SWAP,
    IBV_WC_FETCH_ADD,
    IBV_WC_BIND_MW,
    IBV_WC_LOCAL_INV,
    IBV_WC_TSO,
    IBV_WC_FLUSH,
    IBV_WC_ATOMIC_WRITE,
    IBV_WC_RECV,
    IBV_WC_RECV_RDMA_WITH_IMM,
    IBV_WC_TM_ADD,
    IBV_WC_TM_DEL,
    IBV_WC_TM_SYNC,
    IBV_WC_TM_RECV,
    IBV_WC_TM_NO_TAG,
    IBV_WC_DRIVER1,
    IBV_WC_DRIVER2,
    IBV_WC_DRIVER3,
    IBV_WC_IP_CSUM_OK_SHIFT,
    IBV_WC_EX_WITH_BYTE_LEN,
    IBV_WC_EX_WITH_IMM,
    IBV_WC_EX_WITH_QP_NUM,
    IBV_WC_EX_WITH_SRC_QP,
    IBV_WC_EX_WITH_SLID,
    IBV_WC_EX_WITH_SL,
    IBV_WC_EX_WITH_DLID_PATH_BITS,
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
    IBV_WC_EX_WITH_CVLAN,
    IBV_WC_EX_WITH_FLOW_TAG,
    IBV_WC_EX_WITH_TM_INFO,
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
    IBV_WC_STANDARD_FLAGS,
    IBV_CREATE_CQ_SUP_WC_FLAGS,
    IBV_WC_GRH,
    IBV_WC_WITH_IMM,
    IBV_WC_IP_CSUM_OK,
    IBV_WC_WITH_INV,
    IBV_WC_TM_SYNC_REQ,
    IBV_WC_TM_MATCH,
    IBV_WC_TM_DATA_VALID,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_ATOMIC,
    IBV_ACCESS_MW_BIND,
    IBV_ACCESS_ZERO_BASED,
    IBV_ACCESS_ON_DEMAND,
    IBV_ACCESS_HUGETLB,
    IBV_ACCESS_FLUSH_GLOBAL,
    IBV_ACCESS_FLUSH_PERSISTENT,
    IBV_ACCESS_RELAXED_ORDERING,
    IBV_XRCD_INIT_ATTR_FD,
    IBV_XRCD_INIT_ATTR_OFLAGS,
    IBV_XRCD_INIT_ATTR_RESERVED,
    IBV_REREG_MR_CHANGE_TRANSLATION,
    IBV_REREG_MR_CHANGE_PD,
    IBV_REREG_MR_CHANGE_ACCESS,
    IBV_REREG_MR_FLAGS_SUPPORTED,
    IBV_REG_MR_MASK_IOVA,
    IBV_REG_MR_MASK_ADDR,
    IBV_REG_MR_MASK_FD,
    IBV_REG_MR_MASK_FD_OFFSET,
    IBV_REG_MR_MASK_DMAH,
    IBV_REG_MR_MASK_BUF,
    IBV_MW_TYPE_1,
    IBV_MW_TYPE_2,
    IBV_RATE_MAX,
    IBV_RATE_2_5_GBPS,
    IBV_RATE_5_GBPS,
    IBV_RATE_10_GBPS,
    IBV_RATE_20_GBPS,
    IBV_RATE_30_GBPS,
    IBV_RATE_40_GBPS,
    IBV_RATE_60_GBPS,
    IBV_RATE_80_GBPS,
    IBV_RATE_120_GBPS,
    IBV_RATE_14_GBPS,
    IBV_RATE_56_GBPS,
    IBV_RATE_112_GBPS,
    IBV_RATE_168_GBPS,
    IBV_RATE_25_GBPS,
    IBV_RATE_100_GBPS,
    IBV_RATE_200_GBPS,
    IBV_RATE_300_GBPS,
    IBV_RATE_28_GBPS,
    IBV_RATE_50_GBPS,
    IBV_RATE_400_GBPS,
    IBV_RATE_600_GBPS,
    IBV_RATE_800_GBPS,
    IBV_RATE_1200_GBPS,
    IBV_SRQ_MAX_WR,
    IBV_SRQ_LIMIT,
    IBV_SRQT_BASIC,
    IBV_SRQT_XRC,
    IBV_SRQT_TM,
    IBV_SRQ_INIT_ATTR_TYPE,
    IBV_SRQ_INIT_ATTR_PD,
    IBV_SRQ_INIT_ATTR_XRCD,
    IBV_SRQ_INIT_ATTR_CQ,
    IBV_SRQ_INIT_ATTR_TM,
    IBV_SRQ_INIT_ATTR_RESERVED,
    IBV_WQT_RQ,
    IBV_WQ_INIT_ATTR_FLAGS,
    IBV_WQ_INIT_ATTR_RESERVED,
    IBV_WQ_FLAGS_CVLAN_STRIPPING,
    IBV_WQ_FLAGS_SCATTER_FCS,
    IBV_WQ_FLAGS_DELAY_DROP,
    IBV_WQ_FLAGS_PCI_WRITE_END_PADDING,
    IBV_WQ_FLAGS_RESERVED,
    IBV_WQS_RESET,
    IBV_WQS_RDY,
    IBV_WQS_ERR,
    IBV_WQS_UNKNOWN,
    IBV_WQ_ATTR_STATE,
    IBV_WQ_ATTR_CURR_STATE,
    IBV_WQ_ATTR_FLAGS,
    IBV_WQ_ATTR_RESERVED,
    IBV_CREATE_IND_TABLE_RESERVED,
    IBV_QPT_RC,
    IBV_QPT_UC,
    IBV_QPT_UD,
    IBV_QPT_RAW_PACKET,
    IBV_QPT_XRC_SEND,
    IBV_QPT_XRC_RECV,
    IBV_QPT_DRIVER,
    IBV_QP_INIT_ATTR_PD,
    IBV_QP_INIT_ATTR_XRCD,
    IBV_QP_INIT_ATTR_CREATE_FLAGS,
    IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
    IBV_QP_INIT_ATTR_IND_TABLE,
    IBV_QP_INIT_ATTR_RX_HASH,
    IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
    IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
    IBV_QP_CREATE_SCATTER_FCS,
    IBV_QP_CREATE_CVLAN_STRIPPING,
    IBV_QP_CREATE_SOURCE_QPN,
    IBV_QP_CREATE_PCI_WRITE_END_PADDING,
    IBV_QP_EX_WITH_RDMA_WRITE,
    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    IBV_QP_EX_WITH_SEND,
    IBV_QP_EX_WITH_SEND_WITH_IMM,
    IBV_QP_EX_WITH_RDMA_READ,
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
    IBV_QP_EX_WITH_LOCAL_INV,
    IBV_QP_EX_WITH_BIND_MW,
    IBV_QP_EX_WITH_SEND_WITH_INV,
    IBV_QP_EX_WITH_TSO,
    IBV_QP_EX_WITH_FLUSH,
    IBV_QP_EX_WITH_ATOMIC_WRITE,
    IBV_QP_OPEN_ATTR_NUM,
    IBV_QP_OPEN_ATTR_XRCD,
    IBV_QP_OPEN_ATTR_CONTEXT,
    IBV_QP_OPEN_ATTR_TYPE,
    IBV_QP_OPEN_ATTR_RESERVED,
    IBV_QP_STATE,
    IBV_QP_CUR_STATE,
    IBV_QP_EN_SQD_ASYNC_NOTIFY,
    IBV_QP_ACCESS_FLAGS,
    IBV_QP_PKEY_INDEX,
    IBV_QP_PORT,
    IBV_QP_QKEY,
    IBV_QP_AV,
    IBV_QP_PATH_MTU,
    IBV_QP_TIMEOUT,
    IBV_QP_RETRY_CNT,
    IBV_QP_RNR_RETRY,
    IBV_QP_RQ_PSN,
    IBV_QP_MAX_QP_RD_ATOMIC,
    IBV_QP_ALT_PATH,
    IBV_QP_MIN_RNR_TIMER,
    IBV_QP_SQ_PSN,
    IBV_QP_MAX_DEST_RD_ATOMIC,
    IBV_QP_PATH_MIG_STATE,
    IBV_QP_CAP,
    IBV_QP_DEST_QPN,
    IBV_QP_RATE_LIMIT,
    IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS,
    IBV_QUERY_QP_DATA_IN_ORDER_DEVICE_ONLY,
    IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG,
    IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES,
    IBV_QPS_RESET,
    IBV_QPS_INIT,
    IBV_QPS_RTR,
    IBV_QPS_RTS,
    IBV_QPS_SQD,
    IBV_QPS_SQE,
    IBV_QPS_ERR,
    IBV_QPS_UNKNOWN,
    IBV_MIG_MIGRATED,
    IBV_MIG_REARM,
    IBV_MIG_ARMED,
    IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM,
    IBV_WR_RDMA_READ,
    IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_LOCAL_INV,
    IBV_WR_BIND_MW,
    IBV_WR_SEND_WITH_INV,
    IBV_WR_TSO,
    IBV_WR_DRIVER1,
    IBV_WR_FLUSH,
    IBV_WR_ATOMIC_WRITE,
    IBV_SEND_FENCE,
    IBV_SEND_SIGNALED,
    IBV_SEND_SOLICITED,
    IBV_SEND_INLINE,
    IBV_SEND_IP_CSUM,
    IBV_FLUSH_GLOBAL,
    IBV_FLUSH_PERSISTENT,
    IBV_FLUSH_RANGE,
    IBV_FLUSH_MR,
    IBV_WR_TAG_ADD,
    IBV_WR_TAG_DEL,
    IBV_WR_TAG_SYNC,
    IBV_OPS_SIGNALED,
    IBV_OPS_TM_SYNC,
    IBV_CQ_ATTR_MODERATE,
    IBV_CQ_ATTR_RESERVED,
    IBV_FLOW_ATTR_FLAGS_DONT_TRAP,
    IBV_FLOW_ATTR_FLAGS_EGRESS,
    IBV_FLOW_ATTR_NORMAL,
    IBV_FLOW_ATTR_ALL_DEFAULT,
    IBV_FLOW_ATTR_MC_DEFAULT,
    IBV_FLOW_ATTR_SNIFFER,
    IBV_FLOW_SPEC_ETH,
    IBV_FLOW_SPEC_IPV4,
    IBV_FLOW_SPEC_IPV6,
    IBV_FLOW_SPEC_IPV4_EXT,
    IBV_FLOW_SPEC_ESP,
    IBV_FLOW_SPEC_TCP,
    IBV_FLOW_SPEC_UDP,
    IBV_FLOW_SPEC_VXLAN_TUNNEL,
    IBV_FLOW_SPEC_GRE,
    IBV_FLOW_SPEC_MPLS,
    IBV_FLOW_SPEC_INNER,
    IBV_FLOW_SPEC_ACTION_TAG,
    IBV_FLOW_SPEC_ACTION_DROP,
    IBV_FLOW_SPEC_ACTION_HANDLE,
    IBV_FLOW_SPEC_ACTION_COUNT,
    IBV_FLOW_ACTION_ESP_MASK_ESN,
    IBV_SYSFS_NAME_MAX,
    IBV_SYSFS_PATH_MAX,
    IBV_CQ_INIT_ATTR_MASK_FLAGS,
    IBV_CQ_INIT_ATTR_MASK_PD,
    IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
    IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
    IBV_QP_ATTACH_COMP_CNTR_OP_SEND,
    IBV_QP_ATTACH_COMP_CNTR_OP_RECV,
    IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ,
    IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ,
    IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE,
    IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE,
    IBV_COMP_CNTR_TYPE_WRS,
    IBV_COMP_CNTR_TYPE_BYTES,
    IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
    IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
    IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC,
    IBV_TPH_MEM_TYPE_VM,
    IBV_TPH_MEM_TYPE_PM,
    IBV_DMAH_INIT_ATTR_MASK_CPU_ID,
    IBV_DMAH_INIT_ATTR_MASK_PH,
    IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE,
    IBV_COUNTER_PACKETS,
    IBV_COUNTER_BYTES,
    IBV_READ_COUNTERS_ATTR_PREFER_CACHED,
    IBV_VALUES_MASK_RAW_CLOCK,
    IBV_VALUES_MASK_RESERVED,
    IBV_REREG_MR_ERR_INPUT,
    IBV_REREG_MR_ERR_DONT_FORK_NEW,
    IBV_REREG_MR_ERR_DO_FORK_OLD,
    IBV_REREG_MR_ERR_CMD,
    IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW,
    RDMA_CM_EVENT_ADDR_RESOLVED,
    RDMA_CM_EVENT_ADDR_ERROR,
    RDMA_CM_EVENT_ROUTE_RESOLVED,
    RDMA_CM_EVENT_ROUTE_ERROR,
    RDMA_CM_EVENT_CONNECT_REQUEST,
    RDMA_CM_EVENT_CONNECT_RESPONSE,
    RDMA_CM_EVENT_CONNECT_ERROR,
    RDMA_CM_EVENT_UNREACHABLE,
    RDMA_CM_EVENT_REJECTED,
    RDMA_CM_EVENT_ESTABLISHED,
    RDMA_CM_EVENT_DISCONNECTED,
    RDMA_CM_EVENT_DEVICE_REMOVAL,
    RDMA_CM_EVENT_MULTICAST_JOIN,
    RDMA_CM_EVENT_MULTICAST_ERROR,
    RDMA_CM_EVENT_ADDR_CHANGE,
    RDMA_CM_EVENT_TIMEWAIT_EXIT,
    RDMA_CM_EVENT_ADDRINFO_RESOLVED,
    RDMA_CM_EVENT_ADDRINFO_ERROR,
    RDMA_CM_EVENT_USER,
    RDMA_CM_EVENT_INTERNAL,
    RDMA_PS_IPOIB,
    RDMA_PS_TCP,
    RDMA_PS_UDP,
    RDMA_PS_IB,
    RDMA_MAX_RESP_RES,
    RDMA_MAX_INIT_DEPTH,
    RDMA_CM_JOIN_MC_ATTR_ADDRESS,
    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
    RDMA_CM_JOIN_MC_ATTR_RESERVED,
    RDMA_MC_JOIN_FLAG_FULLMEMBER,
    RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
    RDMA_MC_JOIN_FLAG_RESERVED,
    RDMA_OPTION_ID,
    RDMA_OPTION_IB,
    RDMA_OPTION_ID_TOS,
    RDMA_OPTION_ID_REUSEADDR,
    RDMA_OPTION_ID_AFONLY,
    RDMA_OPTION_ID_ACK_TIMEOUT,
    RDMA_OPTION_IB_PATH,
}
