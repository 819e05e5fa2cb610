/*
 * The operations of benches/cost/main.rs through the C interface of librpma: this project's library or another one.
 *
 * usage: librpma OP N, on the stand-in device; see ci/cost
 *
 * There are no batches in this interface: each operation is a call and a doorbell.
 */
#include <librpma.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS "127.0.0.1"
#define PORT "7205"
#define LENGTH 64

static void fail(const char *what, int ret)
{
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
	exit(1);
}

#define MUST(CALL) \
	do { \
		int ret_ = (CALL); \
		if (ret_) \
			fail(#CALL, ret_); \
	} while (0)

static void established(struct rpma_conn *conn)
{
	enum rpma_conn_event event;
	MUST(rpma_conn_next_event(conn, &event));
	if (event != RPMA_CONN_ESTABLISHED) {
		fprintf(stderr, "not established: %s\n", rpma_utils_conn_event_2str(event));
		exit(1);
	}
}

static void *accept_one(void *ep)
{
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	MUST(rpma_ep_next_conn_req(ep, NULL, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &conn));
	established(conn);
	return conn;
}

static struct rpma_mr_local *reg(struct rpma_peer *peer, int usage)
{
	struct rpma_mr_local *mr;
	void *memory = aligned_alloc(4096, 4096);
	if (!memory)
		exit(1);
	MUST(rpma_mr_reg(peer, memset(memory, 0, 4096), 4096, usage, &mr));
	return mr;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s OP N, on the stand-in device; see ci/cost\n", argv[0]);
		return 2;
	}
	const char *op = argv[1];
	uint64_t n = strtoull(argv[2], NULL, 10);

	struct ibv_context *dev;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	pthread_t acceptor;
	void *other;
	MUST(rpma_utils_get_ibv_context(ADDRESS, RPMA_UTIL_IBV_CONTEXT_LOCAL, &dev));
	MUST(rpma_peer_new(dev, &peer));
	MUST(rpma_ep_listen(peer, ADDRESS, PORT, &ep));
	if (pthread_create(&acceptor, NULL, accept_one, ep))
		return 1;
	MUST(rpma_conn_cfg_new(&cfg));
	MUST(rpma_conn_cfg_set_sq_size(cfg, 64));
	MUST(rpma_conn_cfg_set_rq_size(cfg, 64));
	MUST(rpma_conn_req_new(peer, ADDRESS, PORT, cfg, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &conn));
	established(conn);
	pthread_join(acceptor, &other);
	MUST(rpma_conn_get_cq(conn, &cq));

	int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
		    RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	struct rpma_mr_local *near = reg(peer, usage), *far = reg(peer, usage);
	struct rpma_mr_remote *remote;
	char descriptor[64];
	size_t size;
	MUST(rpma_mr_get_descriptor_size(far, &size));
	if (size > sizeof(descriptor))
		return 1;
	MUST(rpma_mr_get_descriptor(far, descriptor));
	MUST(rpma_mr_remote_from_descriptor(descriptor, size, &remote));

	struct ibv_wc wc;
	const int quiet = RPMA_F_COMPLETION_ON_ERROR;
#define ID ((void *)(uintptr_t)i)
#define WRITE(FLAGS) rpma_write(conn, remote, 0, near, 0, LENGTH, FLAGS, ID)
#define FLUSH rpma_flush(conn, remote, 0, LENGTH, RPMA_FLUSH_TYPE_VISIBILITY, quiet, ID)
#define LOOP(NAME, CALL) \
	if (!strcmp(op, NAME)) { \
		for (uint64_t i = 0; i < n; i++) \
			MUST(CALL); \
		_exit(0); \
	}
#define PAIR (WRITE(quiet) | FLUSH)
#define EMPTY(CALL) ((CALL) == RPMA_E_NO_COMPLETION ? 0 : -1)
#define FOUR WRITE(quiet) | WRITE(quiet) | WRITE(quiet) | WRITE(quiet)
	LOOP("none", 0)
	LOOP("write", WRITE(quiet))
	LOOP("read", rpma_read(conn, near, 0, remote, 0, LENGTH, quiet, ID))
	LOOP("flush", FLUSH)
	LOOP("atomic_write", rpma_atomic_write(conn, remote, 0, (const char *)&i, quiet, ID))
	LOOP("send", rpma_send(conn, near, 0, LENGTH, quiet, ID))
	LOOP("recv", rpma_recv(conn, near, 0, LENGTH, ID))
	LOOP("poll_empty", EMPTY(rpma_cq_get_wc(cq, 1, &wc, NULL)))
	LOOP("write_poll", WRITE(RPMA_F_COMPLETION_ALWAYS) | rpma_cq_get_wc(cq, 1, &wc, NULL))
	LOOP("pair", PAIR)
	LOOP("batch_2", PAIR)
	LOOP("batch_17", FOUR | FOUR | FOUR | FOUR | FLUSH)
	fprintf(stderr, "no operation %s\n", op);
	return 2;
}
