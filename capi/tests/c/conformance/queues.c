/* Completion queues, their channels, shared receive queues. */
#include "cases.h"

#define SIZE 4096

static struct rpma_conn_cfg *new_cfg(uint32_t rcq_size, bool shared)
{
	struct rpma_conn_cfg *cfg;
	must("cfg_new", rpma_conn_cfg_new(&cfg));
	must("set_rcq_size", rpma_conn_cfg_set_rcq_size(cfg, rcq_size));
	must("set_compl_channel", rpma_conn_cfg_set_compl_channel(cfg, shared));
	return cfg;
}

/* One message from the client. */
static void message(struct pair *pair, uint64_t context)
{
	must("send", rpma_send(pair->client, NULL, 0, 0, ALWAYS, CONTEXT(context)));
	take(pair->client_cq);
}

void receive_cq(void)
{
	struct pair pair = {.server_cfg = new_cfg(5, false)};
	struct rpma_cq *rcq = NULL;
	struct ibv_wc wc;
	int main_fd, rcq_fd;
	pair_connect(&pair);
	say_ret("get_rcq", rpma_conn_get_rcq(pair.server, &rcq));
	say("which", "%s", rcq != NULL && rcq != pair.server_cq ? "one of its own" : "none of its own");
	must("get_fd", rpma_cq_get_fd(pair.server_cq, &main_fd));
	must("get_fd", rpma_cq_get_fd(rcq, &rcq_fd));
	say("fds", "%s", main_fd != rcq_fd ? "two" : "one");
	pair_receive(&pair, 1);
	message(&pair, 2);
	say_ret("wait", rpma_cq_wait(rcq));
	say_wc("received", rcq);
	say_ret("the main one", rpma_cq_get_wc(pair.server_cq, 1, &wc, NULL));
	pair_receive_back(&pair, 3);
	must("send", rpma_send(pair.server, NULL, 0, 0, ALWAYS, CONTEXT(4)));
	say_wc("sent", pair.server_cq);
	say_ret("the receive CQ", rpma_cq_get_wc(rcq, 1, &wc, NULL));
	pair_delete(&pair);
}

void waiting(void)
{
	struct pair pair = {0};
	struct rpma_cq *cq = NULL;
	bool is_rcq = true;
	int fd = -1;
	pair_connect(&pair);
	must("get_fd", rpma_cq_get_fd(pair.server_cq, &fd));
	say("fd", "%s", !(fcntl(fd, F_GETFL) & O_NONBLOCK) ? "blocking" : "not blocking");
	say("at first", "%s", readable(fd, 0) ? "readable" : "not readable");
	for (int i = 0; i < 3; i++) {
		pair_receive(&pair, i);
		message(&pair, 10);
		say("then", "%s", readable(fd, 20000) ? "readable" : "not readable");
		say_ret("wait", rpma_cq_wait(pair.server_cq));
		say_wc("received", pair.server_cq);
	}
	say_ret("of the connection", rpma_conn_wait(pair.server, 0, &cq, &is_rcq));
	say("untouched", "%s", cq == NULL && is_rcq ? "yes" : "no");
	pair_delete(&pair);
}

void waiting_in_vain(void)
{
	struct pair pair = {.server_cfg = new_cfg(5, true)};
	struct rpma_cq *cq = NULL;
	bool is_rcq = true;
	int fd = -1;
	pair_connect(&pair);
	must("get_fd", rpma_cq_get_fd(pair.client_cq, &fd));
	set_nonblocking(fd);
	say_ret("cq_wait", rpma_cq_wait(pair.client_cq));
	must("get_compl_fd", rpma_conn_get_compl_fd(pair.server, &fd));
	set_nonblocking(fd);
	say_ret("conn_wait", rpma_conn_wait(pair.server, 0, &cq, &is_rcq));
	say("untouched", "%s", cq == NULL && is_rcq ? "yes" : "no");
	pair_delete(&pair);
}

void shared_channel(void)
{
	struct pair pair = {.server_cfg = new_cfg(5, true)};
	struct rpma_cq *rcq = NULL, *cq = NULL;
	int fd = -1, main_fd = -1, rcq_fd = -1;
	bool is_rcq = false;
	pair_connect(&pair);
	must("get_rcq", rpma_conn_get_rcq(pair.server, &rcq));
	say_ret("get_compl_fd", rpma_conn_get_compl_fd(pair.server, &fd));
	must("get_fd", rpma_cq_get_fd(pair.server_cq, &main_fd));
	must("get_fd", rpma_cq_get_fd(rcq, &rcq_fd));
	say("fds", "%s", fd == main_fd && fd == rcq_fd ? "one" : "several");
	say("fd", "%s", !(fcntl(fd, F_GETFL) & O_NONBLOCK) ? "blocking" : "not blocking");
	say_ret("cq_wait", rpma_cq_wait(pair.server_cq));
	say_ret("cq_wait of receives", rpma_cq_wait(rcq));
	pair_receive(&pair, 1);
	message(&pair, 2);
	say_ret("conn_wait", rpma_conn_wait(pair.server, RPMA_W_WAIT_FOR_COMPLETION, &cq, &is_rcq));
	say("fired", "%s, %d", cq == rcq ? "the receive CQ" : "another", is_rcq);
	say_wc("received", cq);
	pair_receive_back(&pair, 3);
	must("send", rpma_send(pair.server, NULL, 0, 0, ALWAYS, CONTEXT(4)));
	say_ret("conn_wait without flags", rpma_conn_wait(pair.server, 0, &cq, NULL));
	say("fired then", "%s", cq == pair.server_cq ? "the main CQ" : "another");
	say_wc("sent", cq);
	pair_delete(&pair);

	/* With the main CQ alone. */
	struct pair alone = {.server_cfg = new_cfg(0, true)};
	pair_connect(&alone);
	pair_receive(&alone, 1);
	message(&alone, 2);
	say_ret("conn_wait alone", rpma_conn_wait(alone.server, 0, &cq, &is_rcq));
	say("fired alone", "%s, %d", cq == alone.server_cq ? "the main CQ" : "another", is_rcq);
	say_ret("cq_wait alone", rpma_cq_wait(alone.server_cq));
	pair_delete(&alone);
}

static struct rpma_srq *new_srq(struct rpma_peer *peer, uint32_t size, uint32_t rcq_size)
{
	struct rpma_srq_cfg *cfg;
	struct rpma_srq *srq;
	must("srq_cfg_new", rpma_srq_cfg_new(&cfg));
	must("set_rq_size", rpma_srq_cfg_set_rq_size(cfg, size));
	must("set_rcq_size", rpma_srq_cfg_set_rcq_size(cfg, rcq_size));
	must("srq_new", rpma_srq_new(peer, cfg, &srq));
	must("srq_cfg_delete", rpma_srq_cfg_delete(&cfg));
	return srq;
}

void shared_receives(void)
{
	struct pair pair = {.server_cfg = new_cfg(3, false)};
	struct rpma_srq *srq, *set = NULL;
	struct rpma_cq *rcq = NULL, *of_conn = NULL;
	char *memory = pages(SIZE, 0);
	int fd;
	pair_listen(&pair);
	srq = new_srq(pair.peer, 8, 8);
	must("set_srq", rpma_conn_cfg_set_srq(pair.server_cfg, srq));
	must("get_srq", rpma_conn_cfg_get_srq(pair.server_cfg, &set));
	say("the queue", "%s", set == srq ? "that one" : "another");
	pair_connect(&pair);
	struct rpma_mr_local *mr = reg(pair.peer, memory, SIZE, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND);
	say_ret("get_rcq", rpma_srq_get_rcq(srq, &rcq));
	must("get_rcq", rpma_conn_get_rcq(pair.server, &of_conn));
	say("the connection's", "%s", of_conn == rcq ? "the same" : of_conn == NULL ? "NULL" : "another");
	must("get_fd", rpma_cq_get_fd(rcq, &fd));
	say("fd", "%s", !(fcntl(fd, F_GETFL) & O_NONBLOCK) ? "blocking" : "not blocking");
	say_ret("recv", rpma_srq_recv(srq, mr, 0, 64, CONTEXT(1)));
	say_ret("recv no bytes", rpma_srq_recv(srq, NULL, 0, 0, CONTEXT(2)));
	must("send", rpma_send(pair.client, mr, 1000, 7, ALWAYS, CONTEXT(3)));
	take(pair.client_cq);
	say_ret("wait", rpma_cq_wait(rcq));
	say_wc("received", rcq);
	message(&pair, 4);
	say_wc("received no bytes", rcq);
	must("dereg", rpma_mr_dereg(&mr));
	struct rpma_conn *conn = pair.server;
	must("disconnect", rpma_conn_disconnect(conn));
	must("delete", rpma_conn_delete(&pair.server));
	must("cfg_delete", rpma_conn_cfg_delete(&pair.server_cfg));
	say_ret("srq_delete", rpma_srq_delete(&srq));
	say("deleted", "%s", srq == NULL ? "NULL" : "not NULL");
	say_ret("srq_delete again", rpma_srq_delete(&srq));
	pair_delete(&pair);
	free(memory);
}

void shared_receives_without_cq(void)
{
	struct pair pair = {.server_cfg = new_cfg(0, false)};
	struct rpma_srq *srq;
	struct rpma_cq *rcq = (struct rpma_cq *)&pair;
	pair_listen(&pair);
	srq = new_srq(pair.peer, 8, 0);
	say_ret("get_rcq", rpma_srq_get_rcq(srq, &rcq));
	say("the queue's", "%s", rcq == NULL ? "NULL" : "not NULL");
	must("set_srq", rpma_conn_cfg_set_srq(pair.server_cfg, srq));
	pair_connect(&pair);
	pair.small = reg(pair.peer, pair.bytes, sizeof(pair.bytes), RPMA_MR_USAGE_RECV);
	must("recv", rpma_srq_recv(srq, pair.small, 0, 64, CONTEXT(1)));
	message(&pair, 2);
	say_wc("received", pair.server_cq);
	must("disconnect", rpma_conn_disconnect(pair.server));
	must("delete", rpma_conn_delete(&pair.server));
	must("cfg_delete", rpma_conn_cfg_delete(&pair.server_cfg));
	must("srq_delete", rpma_srq_delete(&srq));
	pair_delete(&pair);
}

void shared_receives_misused(void)
{
	struct pair pair = {.server_cfg = new_cfg(0, false)};
	struct rpma_srq *srq;
	pair_listen(&pair);
	srq = new_srq(pair.peer, 8, 8);
	must("set_srq", rpma_conn_cfg_set_srq(pair.server_cfg, srq));
	pair_connect(&pair);
	pair.small = reg(pair.peer, pair.bytes, sizeof(pair.bytes), RPMA_MR_USAGE_RECV);
	int ret = rpma_recv(pair.server, pair.small, 0, 64, CONTEXT(1));
	say("recv of the connection", "%s", ret == 0 ? "0" : "refused");
	must("disconnect", rpma_conn_disconnect(pair.server));
	must("delete", rpma_conn_delete(&pair.server));
	must("cfg_delete", rpma_conn_cfg_delete(&pair.server_cfg));
	must("srq_delete", rpma_srq_delete(&srq));
	pair_delete(&pair);
}

/* A shared channel and a shared receive queue with a CQ of its own do not go together. */
void shared_both(void)
{
	struct pair pair = {.server_cfg = new_cfg(0, true)};
	struct rpma_conn_req *req = NULL;
	struct rpma_srq *srq;
	pair_listen(&pair);
	srq = new_srq(pair.peer, 8, 8);
	must("set_srq", rpma_conn_cfg_set_srq(pair.server_cfg, srq));
	say_ret("outgoing", rpma_conn_req_new(pair.peer, test_address(), test_port(), pair.server_cfg, &req));
	req = pair_request(&pair);
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
	say_ret("incoming", rpma_ep_next_conn_req(pair.ep, pair.server_cfg, &req));
	must("cfg_delete", rpma_conn_cfg_delete(&pair.server_cfg));
	must("delete", rpma_conn_delete(&pair.client));
	must("srq_delete", rpma_srq_delete(&srq));
	pair_delete(&pair);
}
