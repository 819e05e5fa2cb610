/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpma.h: the C interface of rpma, the same as that of librpma 1.3.
 *
 * Reaching another machine's memory, persistent or not, over RDMA.
 *
 * What holds for all functions, unless they say otherwise:
 *
 * - They give 0, or one of the negative numbers RPMA_E_*; rpma_err_2str() has words for these, the log has the details.
 * - RPMA_E_INVAL for a handle or a place for a result that is NULL; every function that makes something can give RPMA_E_NOMEM.
 * - A place for a result is written to only on success.
 * - An rpma_*_delete() or its like takes the address of the handle, sets the handle to NULL, and gives 0 for a handle that is
 *   NULL already. Handles may be deleted in any order: what something else still needs lives on inside of it.
 * - All of them may be called by several threads at once, as long as nobody uses a handle that another thread deletes.
 * - Nothing blocks but what says so.
 */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Errors
 */

#define RPMA_E_UNKNOWN		(-100000) /* something that has no number of its own */
#define RPMA_E_NOSUPP		(-100001) /* device, transport, region or peer cannot do this */
#define RPMA_E_PROVIDER		(-100002) /* libibverbs, librdmacm or the system failed */
#define RPMA_E_NOMEM		(-100003) /* no memory, or none that may be pinned */
#define RPMA_E_INVAL		(-100004) /* an argument cannot be right; nothing was done */
#define RPMA_E_NO_COMPLETION	(-100005) /* no completion, or no news of one, is there yet */
#define RPMA_E_NO_EVENT		(-100006) /* no event, or no request, is there yet */
#define RPMA_E_AGAIN		(-100007) /* the same call may succeed later */
#define RPMA_E_SHARED_CHANNEL	(-100008) /* the completion channel is shared: use rpma_conn_wait() */
#define RPMA_E_NOT_SHARED_CHNL	(-100009) /* the completion channel is not shared: use rpma_cq_wait() */

/* Words for an error number; a static string for any number. */
const char *rpma_err_2str(int ret);

/*
 * Devices
 */

/* How long resolving an address may take where nothing else is said, in ms. */
#define RPMA_DEFAULT_TIMEOUT_MS 1000

enum rpma_util_ibv_context_type {
	RPMA_UTIL_IBV_CONTEXT_LOCAL, /* the device that owns a local address */
	RPMA_UTIL_IBV_CONTEXT_REMOTE /* the device over which a remote address is reached */
};

/*
 * Gives the device of an IPv4 or IPv6 address, or of a name. It stays open until the process ends.
 *
 * Blocks while a remote address is resolved, RPMA_DEFAULT_TIMEOUT_MS at most.
 *
 * RPMA_E_INVAL: unknown type. RPMA_E_PROVIDER: no such name, or no device for the address (127.0.0.1 never has one).
 */
int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
		struct ibv_context **ibv_ctx_ptr);

/* Can the device page registered memory on demand, for reads and writes? Gives 1 or 0. */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable);

/*
 * The configuration of a peer: what it declares of itself to those who connect to it
 */

struct rpma_peer_cfg;

/* Makes a configuration that declares nothing. */
int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);

/*
 * Declares whether what arrives from the network reaches persistent memory without stopping in a volatile cache: on Intel's servers
 * that takes Data Direct I/O to be off for the device, or eADR. Nothing checks it. Without it a persistent flush is refused by the
 * other side.
 */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported);

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported);

/* Writes the descriptor to be sent to the other side: rpma_peer_cfg_get_descriptor_size() bytes. */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);

/* Gives the size of the descriptor: 1. */
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size);

/*
 * Makes a configuration of the descriptor that came from the other side. Whoever can change the bytes on their way can make this side
 * believe in persistence that is none.
 *
 * RPMA_E_INVAL: no descriptor, or one of no bytes.
 */
int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
		struct rpma_peer_cfg **pcfg_ptr);

/*
 * The peer: a local device with a protection domain. Everything else is made on one, and goes together only if it was made on the same.
 */

struct rpma_peer;

/*
 * Makes a peer on a device that rpma_utils_get_ibv_context() or librdmacm gave.
 *
 * RPMA_E_INVAL: librdmacm does not have this device open. RPMA_E_PROVIDER: no protection domain could be made.
 */
int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);

int rpma_peer_delete(struct rpma_peer **peer_ptr);

/*
 * Memory regions: memory that the device may reach (local), and what is known of another side's (remote)
 */

struct rpma_mr_local;
struct rpma_mr_remote;

/* What a region is registered for. */
#define RPMA_MR_USAGE_READ_SRC			(1 << 0) /* the other side reads it */
#define RPMA_MR_USAGE_READ_DST			(1 << 1) /* this side reads into it */
#define RPMA_MR_USAGE_WRITE_SRC			(1 << 2) /* this side writes from it */
#define RPMA_MR_USAGE_WRITE_DST			(1 << 3) /* the other side writes to it */
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY	(1 << 4) /* the other side flushes it, for visibility */
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT	(1 << 5) /* the other side flushes it, for persistence */
#define RPMA_MR_USAGE_SEND			(1 << 6) /* this side sends from it */
#define RPMA_MR_USAGE_RECV			(1 << 7) /* this side receives into it */

/*
 * Registers memory for what usage, an OR of RPMA_MR_USAGE_*, says. The memory stays the program's, and must stay where it is until it
 * is deregistered.
 *
 * Memory that cannot be pinned (of a DAX file system) is registered for on-demand paging where the device has it. Memory that the device
 * does not take for persistent is registered for persistent flush all the same, to be flushed by reading.
 *
 * Blocks while the kernel pins the pages.
 *
 * RPMA_E_INVAL: no bytes, or usage is 0 or has other bits. RPMA_E_NOMEM: the limit of locked memory (ulimit -l) is too low. RPMA_E_PROVIDER: what
 * ibv_reg_mr(3) says.
 */
int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		struct rpma_mr_local **mr_ptr);

/*
 * Deregisters memory. Operations in flight on it fail. On failure the handle stays, and the call can be repeated.
 *
 * RPMA_E_PROVIDER: what ibv_dereg_mr(3) says.
 */
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);

/*
 * Writes the descriptor to be sent to the other side: rpma_mr_get_descriptor_size() bytes. Whoever has it, and a connection to this
 * peer, can use the region: treat it like a key.
 */
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);

/* Gives the size of the descriptor: 21. */
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size);

int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);

/* Gives the size in bytes. */
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);

/*
 * Tells the kernel what is about to happen to pages of a region that is paged on demand. For advice and flags see ibv_advise_mr(3).
 *
 * RPMA_E_INVAL: not inside of the region, unknown flags, or not for a region of this usage. RPMA_E_NOSUPP: the device or the region has no
 * such advice. RPMA_E_PROVIDER: anything else that ibv_advise_mr(3) says.
 */
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice,
		uint32_t flags);

/*
 * Makes a remote region of the descriptor that came from the other side. More bytes than a descriptor has are fine. Nothing checks
 * that the other side has the region; whoever can change the bytes on their way decides where this side writes.
 *
 * RPMA_E_INVAL: too few bytes, or they describe no region.
 */
int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
		struct rpma_mr_remote **mr_ptr);

int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);

/* Gives the size in bytes. */
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);

/* Gives what of RPMA_MR_USAGE_FLUSH_TYPE_* the region was registered for. */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type);

/*
 * The configuration of connections. One can be used for any number of them, and changed in between.
 */

struct rpma_conn_cfg;
struct rpma_srq;

/* Makes a configuration with the defaults. */
int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);

int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);

/*
 * How long rpma_conn_req_new() may take in all, in ms. Default: RPMA_DEFAULT_TIMEOUT_MS.
 *
 * RPMA_E_INVAL: below 0.
 */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);

int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);

/* The least number of entries of the main CQ. Default: 10. It gets more where all that can be outstanding is more. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);

int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size);

/* The least number of entries of a CQ for receives alone. Default: 0, which is none: receives complete on the main CQ. */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);

int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size);

/* The number of operations that can be outstanding. Default: 10. */
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);

int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size);

/* The number of receives that can be posted. Default: 10. */
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);

int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size);

/* Do both CQs share one completion channel, and so one fd? Default: no. */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);

int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared);

/*
 * The shared receive queue that receives come from. Default: NULL, the connection's own. One that has a CQ takes the place of the
 * connection's receive CQ, and does not go together with a shared completion channel.
 */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);

int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr);

/*
 * Completion queues. They belong to a connection or a shared receive queue, and are gone with it.
 */

struct rpma_cq;

/*
 * Gives the fd of the completion channel: readable when there is news. It is blocking at first; with O_NONBLOCK set by fcntl(2)
 * rpma_cq_wait() gives RPMA_E_NO_COMPLETION instead of waiting. The fd is not the caller's to close.
 */
int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);

/*
 * Waits until the queue has news; take all completions with rpma_cq_get_wc() before the next wait. There may be none: they can
 * have been taken before their news.
 *
 * Blocks, unless the fd is non-blocking.
 *
 * RPMA_E_NO_COMPLETION: no news. RPMA_E_SHARED_CHANNEL: use rpma_conn_wait(). RPMA_E_PROVIDER: what libibverbs says.
 */
int rpma_cq_wait(struct rpma_cq *cq);

/*
 * Takes completions, num_entries at most, and says in *num_entries_got how many; this place may be NULL if num_entries is 1. The wr_id of a
 * completion is the op_context of its operation. Where its status is not IBV_WC_SUCCESS only wr_id, status, qp_num and vendor_err
 * mean something.
 *
 * RPMA_E_INVAL: num_entries below 1. RPMA_E_NO_COMPLETION: none is there. RPMA_E_PROVIDER: what ibv_poll_cq(3) says.
 */
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got);

/*
 * Connections
 */

struct rpma_conn;

/* Private data that go with a request for a connection and with its answer. */
struct rpma_conn_private_data {
	void *ptr;
	uint8_t len; /* in bytes */
};

enum rpma_conn_event {
	RPMA_CONN_UNDEFINED = -1, /* never given */
	RPMA_CONN_ESTABLISHED, /* it is there */
	RPMA_CONN_CLOSED, /* either side has closed it; can come twice */
	RPMA_CONN_LOST, /* it failed while it was being established, or its device is gone */
	RPMA_CONN_REJECTED, /* the other side does not want it, or nobody listens there */
	RPMA_CONN_UNREACHABLE /* the other side does not answer */
};

/* Words for an event; a static string for any number. */
const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/* Gives the fd that is readable when an event is there; blocking at first, see rpma_cq_get_fd(). */
int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);

/*
 * Gives the next event.
 *
 * Blocks, unless the fd is non-blocking.
 *
 * RPMA_E_NO_EVENT: none is there. RPMA_E_UNKNOWN: one that has no name here. RPMA_E_PROVIDER: what rdma_get_cm_event(3) says.
 */
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);

/*
 * Gives the private data of the other side: of its request on the side that accepted, of its answer, once RPMA_CONN_ESTABLISHED was taken, on
 * the side that asked. NULL and 0 where there are none. Some transports pad them with zeros. They can be changed on their way. The memory is the
 * connection's.
 */
int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata);

/* Takes note of what the other side declares; persistent flushes need it. */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg);

/* Gives the number of the queue pair, which the connection's completions carry. */
int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);

/* Gives the main CQ. It is the connection's: never delete it. */
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);

/*
 * Gives the connection's CQ of receives, or NULL where it has none: they complete on the main CQ then, or on that of the shared receive
 * queue, see rpma_srq_get_rcq().
 */
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);

/*
 * Gives the fd of the completion channel that both CQs share; see rpma_cq_get_fd().
 *
 * RPMA_E_NOT_SHARED_CHNL: each has its own.
 */
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);

/* A flag of rpma_conn_wait(); it changes nothing. */
#define RPMA_W_WAIT_FOR_COMPLETION (1)

/*
 * Waits until one of the CQs of a shared completion channel has news, and says which. is_rcq may be NULL.
 *
 * Blocks, unless the fd is non-blocking.
 *
 * RPMA_E_NO_COMPLETION: no news. RPMA_E_NOT_SHARED_CHNL: use rpma_cq_wait(). RPMA_E_PROVIDER: what libibverbs says.
 */
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq);

/*
 * Asks for the end of the connection, which comes as RPMA_CONN_CLOSED. Operations in flight fail.
 *
 * RPMA_E_PROVIDER: what rdma_disconnect(3) says.
 */
int rpma_conn_disconnect(struct rpma_conn *conn);

/*
 * Deletes a connection, and closes it first if it is not closed. It is gone even on failure.
 *
 * RPMA_E_PROVIDER: what rdma_destroy_id(3) says.
 */
int rpma_conn_delete(struct rpma_conn **conn_ptr);

/*
 * Requests for connections
 */

struct rpma_conn_req;

/*
 * Makes a request for a connection to addr, an address or a name, and port, a number or a service's name. The defaults hold if cfg is NULL.
 *
 * Blocks until address and route are resolved; see rpma_conn_cfg_set_timeout().
 *
 * RPMA_E_PROVIDER: no such name, no way there, or the queues could not be made. RPMA_E_INVAL: the way there goes over another device.
 */
int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
		const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

/*
 * Deletes a request; an incoming one is rejected. It is gone even on failure.
 *
 * RPMA_E_PROVIDER: what rdma_reject(3) or rdma_destroy_id(3) says.
 */
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);

/*
 * Asks for the connection, or accepts an incoming request. The outcome is the connection's first event. The request is used up, and
 * *req_ptr NULL, even on failure; an incoming one is then rejected. pdata, if it is not NULL, goes to the other side: 56 bytes at most with a
 * request on InfiniBand and RoCE.
 *
 * RPMA_E_INVAL: *req_ptr is NULL, or pdata has no bytes. RPMA_E_PROVIDER: too much private data, or what rdma_connect(3) or
 * rdma_accept(3) says.
 */
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
		const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);

/* Gives the private data of an incoming request; NULL and 0 where there are none. The memory is the request's. */
int rpma_conn_req_get_private_data(const struct rpma_conn_req *req,
		struct rpma_conn_private_data *pdata);

/* As rpma_recv(), before the connection is there: so that no message finds no receive. */
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
		size_t len, const void *op_context);

/*
 * Endpoints: where others ask for connections
 */

struct rpma_ep;

/*
 * Listens on a local address and port.
 *
 * RPMA_E_PROVIDER: no such name, or the port is taken. RPMA_E_INVAL: the address is another device's.
 */
int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
		struct rpma_ep **ep_ptr);

/* Stops listening. Connections live on, and so do requests that were taken; others are rejected. */
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);

/* Gives the fd that is readable when a request is there; blocking at first, see rpma_cq_get_fd(). */
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);

/*
 * Takes the next request. The defaults hold if cfg is NULL. Where the queues cannot be made the request is rejected.
 *
 * Blocks, unless the fd is non-blocking.
 *
 * RPMA_E_NO_EVENT: none is there. RPMA_E_PROVIDER: the queues could not be made, or the device is gone.
 */
int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
		struct rpma_conn_req **req_ptr);

/*
 * Shared receive queues: receives that any of several connections may take
 */

struct rpma_srq_cfg;

/* Makes a configuration with the defaults. */
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);

int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);

/* The number of receives that can be posted. Default: 20. */
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);

int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);

/* The least number of entries of the queue's own CQ; 0 for none: each connection then has its own. Default: 20. */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);

int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size);

/*
 * Makes a shared receive queue. The defaults hold if cfg is NULL.
 *
 * RPMA_E_PROVIDER: what ibv_create_srq(3) or ibv_create_cq(3) says. RPMA_E_NOSUPP: the device has none.
 */
int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr);

int rpma_srq_delete(struct rpma_srq **srq_ptr);

/* As rpma_recv(), for the connections of the queue. */
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
		const void *op_context);

/* Gives the queue's own CQ, or NULL. It is the queue's: never delete it. */
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);

/*
 * Operations
 *
 * Each posts one operation and returns; its outcome is a completion whose wr_id is op_context. They take effect in the order
 * in which they were posted. One that gives no completion keeps its place in the send queue until a later one that does is complete.
 *
 * RPMA_E_INVAL: flags is 0, a range leaves its region, a region was not registered for this, or a message is longer than the port
 * allows. Nothing was posted then. RPMA_E_PROVIDER: what the provider says; a full queue, for one: take completions and try again.
 */

/* flags: a completion only if the operation fails */
#define RPMA_F_COMPLETION_ON_ERROR	(1 << 0)
/* flags: a completion in any case */
#define RPMA_F_COMPLETION_ALWAYS	(1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

/* Reads len bytes of the other side's memory. With dst and src NULL and all numbers 0 it reads nothing. */
int rpma_read(struct rpma_conn *conn,
		struct rpma_mr_local *dst, size_t dst_offset,
		const struct rpma_mr_remote *src, size_t src_offset,
		size_t len, int flags, const void *op_context);

/* Writes len bytes to the other side's memory. With dst and src NULL and all numbers 0 it writes nothing. */
int rpma_write(struct rpma_conn *conn,
		struct rpma_mr_remote *dst, size_t dst_offset,
		const struct rpma_mr_local *src, size_t src_offset,
		size_t len, int flags, const void *op_context);

/*
 * As rpma_write(), and completes a receive of the other side, whose completion carries imm (in network order, as verbs have it).
 *
 * RPMA_E_NOSUPP: the device is an iWARP device.
 */
int rpma_write_with_imm(struct rpma_conn *conn,
		struct rpma_mr_remote *dst, size_t dst_offset,
		const struct rpma_mr_local *src, size_t src_offset,
		size_t len, int flags, uint32_t imm, const void *op_context);

/* What the address of an atomic write must be a multiple of. */
#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

/*
 * Writes 8 bytes such that a reader there sees all of them or none. The bytes are copied before the call returns.
 *
 * RPMA_E_INVAL, beside the above: the address is not a multiple of RPMA_ATOMIC_WRITE_ALIGNMENT.
 */
int rpma_atomic_write(struct rpma_conn *conn,
		struct rpma_mr_remote *dst, size_t dst_offset,
		const char src[8], int flags, const void *op_context);

enum rpma_flush_type {
	RPMA_FLUSH_TYPE_PERSISTENT, /* what was written outlives a power failure */
	RPMA_FLUSH_TYPE_VISIBILITY, /* what was written can be seen by every reader there */
};

/*
 * Flushes what this connection has written to a range before. By the device's own flush where there is one, else by reading up to 8 bytes
 * of the range; the environment variable RPMA_FLUSH_METHOD, "native" or "read", decides for connections made while it is set.
 * A len of 0 stands for the next 8 bytes.
 *
 * RPMA_E_INVAL, beside the above: unknown type. RPMA_E_NOSUPP: the region was not registered for this type; or it is
 * RPMA_FLUSH_TYPE_PERSISTENT and the other side did not declare direct write to persistent memory, see rpma_conn_apply_remote_peer_cfg().
 */
int rpma_flush(struct rpma_conn *conn,
		struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
		enum rpma_flush_type type, int flags, const void *op_context);

/* Sends a message, which takes a receive of the other side. With src NULL and offset and len 0 it has no bytes. */
int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
		int flags, const void *op_context);

/*
 * As rpma_send(), with immediate data.
 *
 * RPMA_E_NOSUPP: the device is an iWARP device.
 */
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
		size_t len, int flags, uint32_t imm, const void *op_context);

/*
 * Posts a receive for one message. With dst NULL and offset and len 0 it takes messages of no bytes.
 *
 * RPMA_E_INVAL, beside the above: the connection has a shared receive queue, use rpma_srq_recv().
 */
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
		const void *op_context);

/*
 * The log
 */

enum rpma_log_level {
	RPMA_LOG_DISABLED = -1, /* a threshold that lets nothing pass */
	RPMA_LOG_LEVEL_FATAL, /* the library cannot go on */
	RPMA_LOG_LEVEL_ERROR, /* a call failed */
	RPMA_LOG_LEVEL_WARNING, /* something is odd, and can be lived with */
	RPMA_LOG_LEVEL_NOTICE, /* rare news */
	RPMA_LOG_LEVEL_INFO, /* frequent news */
	RPMA_LOG_LEVEL_DEBUG, /* for those who look for a bug */
};

enum rpma_log_threshold {
	RPMA_LOG_THRESHOLD, /* what is logged at all. Default: RPMA_LOG_LEVEL_WARNING */
	RPMA_LOG_THRESHOLD_AUX, /* what of it the default function writes to stderr too. Default: RPMA_LOG_DISABLED */
	RPMA_LOG_THRESHOLD_MAX /* the number of thresholds */
};

/*
 * Lets messages up to a level pass a threshold.
 *
 * RPMA_E_INVAL: unknown threshold or level.
 */
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);

int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level);

/*
 * A function that logs. It may be called by several threads at once. file_name may be NULL; line_no and function_name mean nothing then.
 * message_format and what follows are those of printf(3).
 */
typedef void rpma_log_function(
		enum rpma_log_level level,
		const char *file_name,
		const int line_no,
		const char *function_name,
		const char *message_format,
		...);

/* The default function: to syslog(3), and to stderr as the auxiliary threshold says. */
#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

/* Sets the function that messages go to. */
int rpma_log_set_function(rpma_log_function *log_function);

#ifdef RPMA_OLD_API
/*
 * What librpma had before 1.0. Use rpma_cq_get_fd(), rpma_cq_wait(), rpma_cq_get_wc() and rpma_atomic_write().
 */

enum rpma_op {
	RPMA_OP_READ,
	RPMA_OP_WRITE,
	RPMA_OP_FLUSH,
	RPMA_OP_SEND,
	RPMA_OP_RECV,
	RPMA_OP_RECV_RDMA_WITH_IMM,
};

struct rpma_completion {
	void *op_context;
	enum rpma_op op;
	uint32_t byte_len;
	enum ibv_wc_status op_status;
	unsigned flags; /* IBV_WC_WITH_IMM: there is immediate data */
	uint32_t imm; /* in the host's order */
};

/* rpma_cq_get_fd() of the main CQ */
int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd);

/* rpma_cq_wait() of the main CQ */
int rpma_conn_completion_wait(struct rpma_conn *conn);

/* rpma_cq_get_completion() of the main CQ */
int rpma_conn_completion_get(struct rpma_conn *conn, struct rpma_completion *cmpl);

/* Takes one completion. A flush by reading is RPMA_OP_READ. */
int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl);

/* Writes 8 bytes of a region, which must stay as they are until the completion, such that a reader there sees all of them or none. */
int rpma_write_atomic(struct rpma_conn *conn,
		struct rpma_mr_remote *dst, size_t dst_offset,
		const struct rpma_mr_local *src, size_t src_offset,
		int flags, const void *op_context);
#endif /* RPMA_OLD_API */

#ifdef __cplusplus
}
#endif

#endif /* LIBRPMA_H */
