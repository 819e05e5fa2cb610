/*
 * The patterns on verbs that are written by hand: each operation with a call of its own or, with -c, what belongs together in one list.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>

struct end {
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex; /* NULL where the device has no native flush */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

static struct end active, passive;
static struct ibv_comp_channel *channel;

static void make_end(struct end *end, struct rdma_cm_id *id, struct ibv_comp_channel *events, unsigned char *memory)
{
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 2 * QUEUE, NULL, events, 0);
	if (!pd || !cq)
		fail("protection domain or completion queue");
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = QUEUE, .max_recv_wr = QUEUE, .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_FLUSH,
	};
	end->id = id;
	end->cq = cq;
	if (rdma_create_qp_ex(id, &attr) == 0) {
		end->ex = ibv_qp_to_qp_ex(id->qp);
	} else {
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		attr.send_ops_flags = 0;
		if (rdma_create_qp_ex(id, &attr))
			fail("rdma_create_qp_ex");
	}
	end->qp = id->qp;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	if (end->ex)
		access |= IBV_ACCESS_FLUSH_GLOBAL;
	end->mr = ibv_reg_mr(pd, memory, REGION, access);
	if (!end->mr)
		fail("ibv_reg_mr");
}

static struct rdma_cm_id *expect(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	if (rdma_get_cm_event(events, &event))
		fail("rdma_get_cm_event");
	if (event->event != type) {
		fprintf(stderr, "%s in place of %s\n", rdma_event_str(event->event), rdma_event_str(type));
		exit(1);
	}
	struct rdma_cm_id *id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void connect_ends(const char *address)
{
	struct rdma_event_channel *one = rdma_create_event_channel(), *other = rdma_create_event_channel();
	struct rdma_cm_id *listener, *id;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rdma_conn_param param = { .responder_resources = 16, .initiator_depth = 16, .retry_count = 7, .rnr_retry_count = 7 };
	inet_pton(AF_INET, address, &addr.sin_addr);
	if (!one || !other || rdma_create_id(other, &listener, NULL, RDMA_PS_TCP))
		fail("channels");
	if (rdma_bind_addr(listener, (struct sockaddr *)&addr) || rdma_listen(listener, 1))
		fail("rdma_listen");
	addr.sin_port = rdma_get_src_port(listener);
	if (rdma_create_id(one, &id, NULL, RDMA_PS_TCP) || rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 1000))
		fail("rdma_resolve_addr");
	expect(one, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, 1000))
		fail("rdma_resolve_route");
	expect(one, RDMA_CM_EVENT_ROUTE_RESOLVED);
	near_memory = region();
	far_memory = region();
	channel = ibv_create_comp_channel(id->verbs);
	if (!channel)
		fail("ibv_create_comp_channel");
	make_end(&active, id, channel, near_memory);
	if (ibv_req_notify_cq(active.cq, 0))
		fail("ibv_req_notify_cq");
	if (rdma_connect(id, &param))
		fail("rdma_connect");
	make_end(&passive, expect(other, RDMA_CM_EVENT_CONNECT_REQUEST), NULL, far_memory);
	if (rdma_accept(passive.id, &param))
		fail("rdma_accept");
	expect(one, RDMA_CM_EVENT_ESTABLISHED);
	expect(other, RDMA_CM_EVENT_ESTABLISHED);
}

#define LIST (2 * DEPTH)
#define INLINE static inline __attribute__((always_inline))

/* The list that is being filled, where there are no extended requests. */
static struct ibv_send_wr wr[LIST];
static struct ibv_sge sge[LIST];
static unsigned filled;

INLINE void add(enum ibv_wr_opcode opcode, uint64_t landing, uint32_t size, unsigned flags)
{
	struct ibv_send_wr *this = &wr[filled];
	sge[filled] = (struct ibv_sge){ .addr = (uintptr_t)near_memory + landing, .length = size, .lkey = active.mr->lkey };
	this->wr_id = 0;
	this->next = NULL;
	this->sg_list = &sge[filled];
	this->num_sge = 1;
	this->opcode = opcode;
	this->send_flags = flags;
	this->wr.rdma.remote_addr = (uintptr_t)far_memory;
	this->wr.rdma.rkey = passive.mr->rkey;
	if (filled++)
		this[-1].next = this;
}

INLINE void ring(void)
{
	struct ibv_send_wr *bad;
	if (filled && ibv_post_send(active.qp, wr, &bad))
		fail("ibv_post_send");
	filled = 0;
}

INLINE void add_flush_ex(uint32_t size)
{
	active.ex->wr_id = 0;
	active.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(active.ex, passive.mr->rkey, (uintptr_t)far_memory, size, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

/* One call for all units. */
static void post_chained(int writes, unsigned units, uint32_t size)
{
	if (!active.ex) {
		while (units--) {
			for (int i = 0; i < writes; i++)
				add(IBV_WR_RDMA_WRITE, 0, size, 0);
			add(IBV_WR_RDMA_READ, LANDING, size < 8 ? size : 8, IBV_SEND_SIGNALED);
		}
		ring();
		return;
	}
	ibv_wr_start(active.ex);
	while (units--) {
		for (int i = 0; i < writes; i++) {
			active.ex->wr_id = 0;
			active.ex->wr_flags = 0;
			ibv_wr_rdma_write(active.ex, passive.mr->rkey, (uintptr_t)far_memory);
			ibv_wr_set_sge(active.ex, active.mr->lkey, (uintptr_t)near_memory, size);
		}
		add_flush_ex(size);
	}
	if (ibv_wr_complete(active.ex))
		fail("ibv_wr_complete");
}

static void post_singly(int writes, unsigned units, uint32_t size)
{
	while (units--) {
		for (int i = 0; i < writes; i++) {
			add(IBV_WR_RDMA_WRITE, 0, size, 0);
			ring();
		}
		if (active.ex) {
			ibv_wr_start(active.ex);
			add_flush_ex(size);
			if (ibv_wr_complete(active.ex))
				fail("ibv_wr_complete");
		} else {
			add(IBV_WR_RDMA_READ, LANDING, size < 8 ? size : 8, IBV_SEND_SIGNALED);
			ring();
		}
	}
}

static void post(enum what what, unsigned units, uint32_t size)
{
	if (what == WRITE || what == READ) {
		while (units--) {
			add(what == READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, what == READ ? LANDING : 0, size, IBV_SEND_SIGNALED);
			if (!chained)
				ring();
		}
		ring();
		return;
	}
	(chained ? post_chained : post_singly)(what == SIXTEEN ? 16 : 1, units, size);
}

static int poll_cq(struct ibv_wc *wc, int room)
{
	int got = ibv_poll_cq(active.cq, room, wc);
	if (got < 0)
		fail("ibv_poll_cq");
	return got;
}

static void wait_cq(void)
{
	struct ibv_cq *cq;
	void *context;
	if (ibv_get_cq_event(channel, &cq, &context))
		fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		fail("ibv_req_notify_cq");
}

int main(int argc, char **argv)
{
	static const struct way raw = { connect_ends, post, poll_cq, wait_cq };
	return bench_main(argc, argv, &raw);
}
