/*
 * The operations of benches/cost/main.rs on verbs that are written by hand: what the library is compared with.
 *
 * usage: hand OP N, on the stand-in device; see ci/cost
 *
 * Of each request the fields are set that a provider reads, anew for each operation, in code that is inlined into the loop.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADDRESS "127.0.0.1"
#define LENGTH 64

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* What the compiler shall not know beforehand, as it would not in a program. */
#define HIDE(x) __asm__ volatile("" : "+r"(x) : : "memory")

struct end {
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
};

static void make_end(struct end *end, struct rdma_cm_id *id)
{
	struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
	if (!pd || !cq)
		fail("protection domain or completion queue");
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	end->id = id;
	end->cq = cq;
	end->ex = NULL;
	if (rdma_create_qp_ex(id, &attr) == 0) {
		end->ex = ibv_qp_to_qp_ex(id->qp);
	} else {
		/* The device has no native flush. */
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
		attr.send_ops_flags = 0;
		if (rdma_create_qp_ex(id, &attr))
			fail("rdma_create_qp_ex");
	}
	end->qp = id->qp;

	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	if (end->ex)
		access |= IBV_ACCESS_FLUSH_GLOBAL;
	void *memory = aligned_alloc(4096, 4096);
	if (!memory)
		fail("memory");
	end->mr = ibv_reg_mr(pd, memset(memory, 0, 4096), 4096, access);
	if (!end->mr)
		fail("ibv_reg_mr");
}

static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	if (rdma_get_cm_event(channel, &event))
		fail("rdma_get_cm_event");
	if (event->event != type) {
		fprintf(stderr, "%s in place of %s\n", rdma_event_str(event->event), rdma_event_str(type));
		exit(1);
	}
	struct rdma_cm_id *id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void connect_ends(struct end *active, struct end *passive)
{
	struct rdma_event_channel *one = rdma_create_event_channel(), *other = rdma_create_event_channel();
	struct rdma_cm_id *listener, *id;
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7 };
	inet_pton(AF_INET, ADDRESS, &addr.sin_addr);
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
	make_end(active, id);
	if (rdma_connect(id, &param))
		fail("rdma_connect");
	make_end(passive, expect(other, RDMA_CM_EVENT_CONNECT_REQUEST));
	if (rdma_accept(passive->id, &param))
		fail("rdma_accept");
	expect(one, RDMA_CM_EVENT_ESTABLISHED);
	expect(other, RDMA_CM_EVENT_ESTABLISHED);
}

/* One side of an operation. */
struct place {
	uint64_t addr;
	uint32_t length, key;
};

#define INLINE static inline __attribute__((always_inline))

INLINE void fill(struct ibv_send_wr *wr, struct ibv_sge *sge, enum ibv_wr_opcode opcode, const struct place *local,
		 uint32_t length, const struct place *remote, unsigned flags, uint64_t wr_id)
{
	sge->addr = local->addr;
	sge->length = length;
	sge->lkey = local->key;
	wr->wr_id = wr_id;
	wr->next = NULL;
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->opcode = opcode;
	wr->send_flags = flags;
	wr->wr.rdma.remote_addr = remote->addr;
	wr->wr.rdma.rkey = remote->key;
}

INLINE int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, const struct place *local, uint32_t length,
		const struct place *remote, unsigned flags, uint64_t wr_id)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	fill(&wr, &sge, opcode, local, length, remote, flags, wr_id);
	return ibv_post_send(qp, &wr, &bad);
}

INLINE int send_message(struct ibv_qp *qp, const struct place *local, unsigned flags, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = local->addr, .length = local->length, .lkey = local->key };
	struct ibv_send_wr wr, *bad;
	wr.wr_id = wr_id;
	wr.next = NULL;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = flags;
	return ibv_post_send(qp, &wr, &bad);
}

INLINE int receive(struct ibv_qp *qp, const struct place *local, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = local->addr, .length = local->length, .lkey = local->key };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	return ibv_post_recv(qp, &wr, &bad);
}

INLINE void add_flush(struct ibv_qp_ex *ex, const struct place *remote, uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = 0;
	ibv_wr_flush(ex, remote->key, remote->addr, remote->length, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

INLINE void add_write(struct ibv_qp_ex *ex, const struct place *local, const struct place *remote, uint64_t wr_id)
{
	ex->wr_id = wr_id;
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, remote->key, remote->addr);
	ibv_wr_set_sge(ex, local->key, local->addr, local->length);
}

/* Natively where the device can, else by reading a byte behind what was written. */
INLINE int flush(struct ibv_qp *qp, struct ibv_qp_ex *ex, const struct place *scratch, const struct place *remote,
		 uint64_t wr_id)
{
	if (!ex)
		return post(qp, IBV_WR_RDMA_READ, scratch, 1, remote, 0, wr_id);
	ibv_wr_start(ex);
	add_flush(ex, remote, wr_id);
	return ibv_wr_complete(ex);
}

INLINE int atomic_write(struct ibv_qp *qp, struct ibv_qp_ex *ex, const struct place *remote, uint64_t value, uint64_t wr_id)
{
	if (!ex) {
		struct place word = { .addr = (uintptr_t)&value };
		return post(qp, IBV_WR_RDMA_WRITE, &word, 8, remote, IBV_SEND_INLINE | IBV_SEND_FENCE, wr_id);
	}
	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ex->wr_flags = 0;
	ibv_wr_atomic_write(ex, remote->key, remote->addr, &value);
	return ibv_wr_complete(ex);
}

/* WRITES writes and a flush, with one doorbell. */
#define MAX_WRITES 16
INLINE int batch(struct ibv_qp *qp, struct ibv_qp_ex *ex, int writes, const struct place *local,
		 const struct place *scratch, const struct place *remote, uint64_t wr_id)
{
	if (ex) {
		ibv_wr_start(ex);
		for (int i = 0; i < writes; i++)
			add_write(ex, local, remote, wr_id);
		add_flush(ex, remote, wr_id);
		return ibv_wr_complete(ex);
	}
	struct ibv_send_wr wr[MAX_WRITES + 1], *bad;
	struct ibv_sge sge[MAX_WRITES + 1];
	for (int i = 0; i < writes; i++) {
		fill(&wr[i], &sge[i], IBV_WR_RDMA_WRITE, local, local->length, remote, 0, wr_id);
		wr[i].next = &wr[i + 1];
	}
	fill(&wr[writes], &sge[writes], IBV_WR_RDMA_READ, scratch, 1, remote, 0, wr_id);
	return ibv_post_send(qp, wr, &bad);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s OP N, on the stand-in device; see ci/cost\n", argv[0]);
		return 2;
	}
	const char *op = argv[1];
	uint64_t n = strtoull(argv[2], NULL, 10);
	struct end active, passive;
	connect_ends(&active, &passive);

	struct place places[3] = {
		{ (uintptr_t)active.mr->addr, LENGTH, active.mr->lkey },
		{ (uintptr_t)active.mr->addr + 2048, LENGTH, active.mr->lkey },
		{ (uintptr_t)passive.mr->addr, LENGTH, passive.mr->rkey },
	};
	const struct place *local = &places[0], *scratch = &places[1], *remote = &places[2];
	struct ibv_qp *qp = active.qp;
	struct ibv_qp_ex *ex = active.ex;
	struct ibv_cq *cq = active.cq;
	HIDE(local);
	HIDE(scratch);
	HIDE(remote);
	HIDE(qp);
	HIDE(ex);
	HIDE(cq);

	struct ibv_wc wc;
#define LOOP(NAME, CALL) \
	if (!strcmp(op, NAME)) { \
		for (uint64_t i = 0; i < n; i++) \
			if ((CALL) < 0) \
				fail(op); \
		return 0; \
	}
	if (!strcmp(op, "none")) {
		for (uint64_t i = 0; i < n; i++)
			HIDE(i);
		return 0;
	}
	/* A post's result is 0 or a positive errno; a poll's is negative. */
#define CHECKED(CALL) ((CALL) ? -1 : 0)
	LOOP("write", CHECKED(post(qp, IBV_WR_RDMA_WRITE, local, local->length, remote, 0, i)))
	LOOP("read", CHECKED(post(qp, IBV_WR_RDMA_READ, local, local->length, remote, 0, i)))
	LOOP("flush", CHECKED(flush(qp, ex, scratch, remote, i)))
	LOOP("atomic_write", CHECKED(atomic_write(qp, ex, remote, i, i)))
	LOOP("send", CHECKED(send_message(qp, local, 0, i)))
	LOOP("recv", CHECKED(receive(qp, local, i)))
	LOOP("poll_empty", ibv_poll_cq(cq, 1, &wc))
	LOOP("write_poll", CHECKED(post(qp, IBV_WR_RDMA_WRITE, local, local->length, remote, IBV_SEND_SIGNALED, i)) |
			   ibv_poll_cq(cq, 1, &wc))
	LOOP("pair", CHECKED(post(qp, IBV_WR_RDMA_WRITE, local, local->length, remote, 0, i)) |
		     CHECKED(flush(qp, ex, scratch, remote, i)))
	LOOP("batch_2", CHECKED(batch(qp, ex, 1, local, scratch, remote, i)))
	LOOP("batch_17", CHECKED(batch(qp, ex, MAX_WRITES, local, scratch, remote, i)))
	fprintf(stderr, "no operation %s\n", op);
	return 2;
}
