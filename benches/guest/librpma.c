/*
 * The patterns through the C interface of librpma, Debian's or this project's: each operation is a call and a doorbell.
 */
#include "bench.h"

#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>

static struct rpma_conn *client, *server;
static struct rpma_cq *cq;
static struct rpma_mr_local *near, *far;
static struct rpma_mr_remote *remote;

static void must(const char *what, int ret)
{
	if (ret) {
		fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
		exit(1);
	}
}

#define MUST(CALL) must(#CALL, CALL)
#define PORT "7206"

static void established(struct rpma_conn *conn)
{
	enum rpma_conn_event event;
	MUST(rpma_conn_next_event(conn, &event));
	if (event != RPMA_CONN_ESTABLISHED) {
		fprintf(stderr, "not established: %s\n", rpma_utils_conn_event_2str(event));
		exit(1);
	}
}

static void connect_ends(const char *address)
{
	struct ibv_context *dev;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	MUST(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &dev));
	MUST(rpma_peer_new(dev, &peer));
	MUST(rpma_ep_listen(peer, address, PORT, &ep));
	MUST(rpma_conn_cfg_new(&cfg));
	MUST(rpma_conn_cfg_set_sq_size(cfg, QUEUE));
	MUST(rpma_conn_cfg_set_rq_size(cfg, QUEUE));
	MUST(rpma_conn_cfg_set_cq_size(cfg, 2 * QUEUE));
	MUST(rpma_conn_req_new(peer, address, PORT, cfg, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &client));
	MUST(rpma_ep_next_conn_req(ep, cfg, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &server));
	established(client);
	established(server);
	MUST(rpma_conn_get_cq(client, &cq));

	int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
		    RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
	near_memory = region();
	far_memory = region();
	MUST(rpma_mr_reg(peer, near_memory, REGION, usage, &near));
	MUST(rpma_mr_reg(peer, far_memory, REGION, usage, &far));
	char descriptor[64];
	size_t size;
	MUST(rpma_mr_get_descriptor_size(far, &size));
	if (size > sizeof(descriptor))
		exit(1);
	MUST(rpma_mr_get_descriptor(far, descriptor));
	MUST(rpma_mr_remote_from_descriptor(descriptor, size, &remote));
}

static void post_one(enum what what, uint32_t size)
{
	int writes = what == SIXTEEN ? 16 : 1;
	switch (what) {
	case WRITE:
		MUST(rpma_write(client, remote, 0, near, 0, size, RPMA_F_COMPLETION_ALWAYS, NULL));
		break;
	case READ:
		MUST(rpma_read(client, near, LANDING, remote, 0, size, RPMA_F_COMPLETION_ALWAYS, NULL));
		break;
	default:
		for (int i = 0; i < writes; i++)
			MUST(rpma_write(client, remote, 0, near, 0, size, RPMA_F_COMPLETION_ON_ERROR, NULL));
		MUST(rpma_flush(client, remote, 0, size, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL));
	}
}

static void post(enum what what, unsigned units, uint32_t size)
{
	while (units--)
		post_one(what, size);
}

static int poll_cq(struct ibv_wc *wc, int room)
{
	int got = 0;
	int ret = rpma_cq_get_wc(cq, room, wc, &got);
	if (ret == RPMA_E_NO_COMPLETION)
		return 0;
	MUST(ret);
	return got;
}

static void wait_cq(void)
{
	MUST(rpma_cq_wait(cq));
}

int main(int argc, char **argv)
{
	static const struct way librpma = { connect_ends, post, poll_cq, wait_cq };
	return bench_main(argc, argv, &librpma);
}
