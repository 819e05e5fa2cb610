/* NULL wherever there is a pointer. What gets a result is not to be touched. */
#include "cases.h"

static const void *const untouched = &untouched;

/* The same as a handle or a pointer of any kind. */
#define PLACE ((void *)(uintptr_t)untouched)

#define R(call) say_ret(#call, call)

void nulls_alone(void)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_srq_cfg *srq_cfg = NULL;
	struct rpma_peer_cfg *peer_cfg = NULL;
	struct rpma_srq *srq = PLACE;
	void *handle = PLACE;
	enum rpma_conn_event event = (enum rpma_conn_event)42;
	enum ibv_wc_status unused = IBV_WC_SUCCESS;
	struct rpma_conn_private_data data = {PLACE, 42};
	struct ibv_wc wc;
	size_t size = 42;
	uint32_t number = 42;
	int value = 42;
	bool flag = true;
	char bytes[64] = {42};
	(void)unused;

	must("new", rpma_conn_cfg_new(&cfg));
	must("new", rpma_srq_cfg_new(&srq_cfg));
	must("new", rpma_peer_cfg_new(&peer_cfg));

	R(rpma_utils_get_ibv_context(NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, (struct ibv_context **)&handle));
	R(rpma_utils_get_ibv_context("1.2.3.4", RPMA_UTIL_IBV_CONTEXT_LOCAL, NULL));
	R(rpma_utils_ibv_context_is_odp_capable(NULL, &value));
	R(rpma_peer_new(NULL, (struct rpma_peer **)&handle));
	R(rpma_peer_delete(NULL));

	R(rpma_peer_cfg_new(NULL));
	R(rpma_peer_cfg_delete(NULL));
	R(rpma_peer_cfg_set_direct_write_to_pmem(NULL, true));
	R(rpma_peer_cfg_get_direct_write_to_pmem(NULL, &flag));
	R(rpma_peer_cfg_get_direct_write_to_pmem(peer_cfg, NULL));
	R(rpma_peer_cfg_get_descriptor(NULL, bytes));
	R(rpma_peer_cfg_get_descriptor(peer_cfg, NULL));
	R(rpma_peer_cfg_get_descriptor_size(NULL, &size));
	R(rpma_peer_cfg_get_descriptor_size(peer_cfg, NULL));
	R(rpma_peer_cfg_from_descriptor(NULL, 1, (struct rpma_peer_cfg **)&handle));
	R(rpma_peer_cfg_from_descriptor(bytes, 1, NULL));

	R(rpma_mr_reg(NULL, bytes, 8, RPMA_MR_USAGE_SEND, (struct rpma_mr_local **)&handle));
	R(rpma_mr_dereg(NULL));
	R(rpma_mr_get_descriptor(NULL, bytes));
	R(rpma_mr_get_descriptor_size(NULL, &size));
	R(rpma_mr_get_ptr(NULL, &handle));
	R(rpma_mr_get_size(NULL, &size));
	R(rpma_mr_remote_from_descriptor(NULL, 21, (struct rpma_mr_remote **)&handle));
	R(rpma_mr_remote_from_descriptor(bytes, 21, NULL));
	R(rpma_mr_remote_get_size(NULL, &size));
	R(rpma_mr_remote_get_flush_type(NULL, &value));
	R(rpma_mr_remote_delete(NULL));

	R(rpma_conn_cfg_new(NULL));
	R(rpma_conn_cfg_delete(NULL));
	R(rpma_conn_cfg_set_timeout(NULL, 1));
	R(rpma_conn_cfg_get_timeout(NULL, &value));
	R(rpma_conn_cfg_get_timeout(cfg, NULL));
	R(rpma_conn_cfg_set_cq_size(NULL, 1));
	R(rpma_conn_cfg_get_cq_size(NULL, &number));
	R(rpma_conn_cfg_get_cq_size(cfg, NULL));
	R(rpma_conn_cfg_set_rcq_size(NULL, 1));
	R(rpma_conn_cfg_get_rcq_size(NULL, &number));
	R(rpma_conn_cfg_get_rcq_size(cfg, NULL));
	R(rpma_conn_cfg_set_sq_size(NULL, 1));
	R(rpma_conn_cfg_get_sq_size(NULL, &number));
	R(rpma_conn_cfg_get_sq_size(cfg, NULL));
	R(rpma_conn_cfg_set_rq_size(NULL, 1));
	R(rpma_conn_cfg_get_rq_size(NULL, &number));
	R(rpma_conn_cfg_get_rq_size(cfg, NULL));
	R(rpma_conn_cfg_set_compl_channel(NULL, true));
	R(rpma_conn_cfg_get_compl_channel(NULL, &flag));
	R(rpma_conn_cfg_get_compl_channel(cfg, NULL));
	R(rpma_conn_cfg_set_srq(NULL, NULL));
	R(rpma_conn_cfg_set_srq(cfg, NULL));
	R(rpma_conn_cfg_get_srq(NULL, &srq));
	R(rpma_conn_cfg_get_srq(cfg, NULL));

	R(rpma_conn_get_event_fd(NULL, &value));
	R(rpma_conn_next_event(NULL, &event));
	R(rpma_conn_get_private_data(NULL, &data));
	R(rpma_conn_apply_remote_peer_cfg(NULL, peer_cfg));
	R(rpma_conn_get_qp_num(NULL, &number));
	R(rpma_conn_get_cq(NULL, (struct rpma_cq **)&handle));
	R(rpma_conn_get_rcq(NULL, (struct rpma_cq **)&handle));
	R(rpma_conn_disconnect(NULL));
	R(rpma_conn_delete(NULL));
	R(rpma_conn_get_compl_fd(NULL, &value));
	R(rpma_conn_wait(NULL, 0, (struct rpma_cq **)&handle, &flag));

	R(rpma_conn_req_new(NULL, "1.2.3.4", "1", NULL, (struct rpma_conn_req **)&handle));
	R(rpma_conn_req_delete(NULL));
	R(rpma_conn_req_connect(NULL, NULL, (struct rpma_conn **)&handle));
	R(rpma_conn_req_get_private_data(NULL, &data));
	R(rpma_conn_req_recv(NULL, NULL, 0, 0, NULL));
	R(rpma_ep_listen(NULL, "1.2.3.4", "1", (struct rpma_ep **)&handle));
	R(rpma_ep_shutdown(NULL));
	R(rpma_ep_get_fd(NULL, &value));
	R(rpma_ep_next_conn_req(NULL, NULL, (struct rpma_conn_req **)&handle));

	R(rpma_srq_cfg_new(NULL));
	R(rpma_srq_cfg_delete(NULL));
	R(rpma_srq_cfg_set_rq_size(NULL, 1));
	R(rpma_srq_cfg_get_rq_size(NULL, &number));
	R(rpma_srq_cfg_get_rq_size(srq_cfg, NULL));
	R(rpma_srq_cfg_set_rcq_size(NULL, 1));
	R(rpma_srq_cfg_get_rcq_size(NULL, &number));
	R(rpma_srq_cfg_get_rcq_size(srq_cfg, NULL));
	R(rpma_srq_new(NULL, NULL, (struct rpma_srq **)&handle));
	R(rpma_srq_delete(NULL));
	R(rpma_srq_recv(NULL, NULL, 0, 0, NULL));
	R(rpma_srq_get_rcq(NULL, (struct rpma_cq **)&handle));

	R(rpma_read(NULL, NULL, 0, NULL, 0, 0, ALWAYS, NULL));
	R(rpma_write(NULL, NULL, 0, NULL, 0, 0, ALWAYS, NULL));
	R(rpma_write_with_imm(NULL, NULL, 0, NULL, 0, 0, ALWAYS, 0, NULL));
	R(rpma_atomic_write(NULL, NULL, 0, bytes, ALWAYS, NULL));
	R(rpma_flush(NULL, NULL, 0, 0, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, NULL));
	R(rpma_send(NULL, NULL, 0, 0, ALWAYS, NULL));
	R(rpma_send_with_imm(NULL, NULL, 0, 0, ALWAYS, 0, NULL));
	R(rpma_recv(NULL, NULL, 0, 0, NULL));
	R(rpma_cq_get_fd(NULL, &value));
	R(rpma_cq_wait(NULL));
	R(rpma_cq_get_wc(NULL, 1, &wc, &value));

	struct rpma_peer *peer = NULL;
	struct rpma_mr_local *local = NULL;
	struct rpma_mr_remote *remote = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;
	struct rpma_srq *none = NULL;
	R(rpma_peer_delete(&peer));
	R(rpma_mr_dereg(&local));
	R(rpma_mr_remote_delete(&remote));
	R(rpma_conn_delete(&conn));
	R(rpma_conn_req_delete(&req));
	R(rpma_conn_req_connect(&req, NULL, (struct rpma_conn **)&handle));
	R(rpma_ep_shutdown(&ep));
	R(rpma_srq_delete(&none));

	say("untouched", "%s", handle == PLACE && srq == PLACE && event == 42 && data.ptr == PLACE && data.len == 42 &&
			size == 42 && number == 42 && value == 42 && flag && bytes[0] == 42 ? "all" : "not all");
	must("delete", rpma_conn_cfg_delete(&cfg));
	must("delete", rpma_srq_cfg_delete(&srq_cfg));
	must("delete", rpma_peer_cfg_delete(&peer_cfg));
}

void nulls_with_handles(void)
{
	struct pair pair = {0};
	void *handle = PLACE;
	char *memory = pages(4096, 0);
	struct ibv_context *context;
	struct ibv_wc wc;
	int value = 42;
	bool flag;

	pair_connect(&pair);
	struct rpma_mr_local *local = reg(pair.peer, memory, 4096, 0xff & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	struct rpma_mr_remote *remote = remote_of(local);
	struct rpma_srq *srq;
	must("srq_new", rpma_srq_new(pair.peer, NULL, &srq));
	must("context", rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));

	R(rpma_utils_ibv_context_is_odp_capable(context, NULL));
	R(rpma_peer_new(context, NULL));
	R(rpma_mr_reg(pair.peer, NULL, 8, RPMA_MR_USAGE_SEND, (struct rpma_mr_local **)&handle));
	R(rpma_mr_reg(pair.peer, memory, 8, RPMA_MR_USAGE_SEND, NULL));
	R(rpma_mr_reg(pair.peer, memory, 0, RPMA_MR_USAGE_SEND, (struct rpma_mr_local **)&handle));
	R(rpma_mr_get_descriptor(local, NULL));
	R(rpma_mr_get_descriptor_size(local, NULL));
	R(rpma_mr_get_ptr(local, NULL));
	R(rpma_mr_get_size(local, NULL));
	R(rpma_mr_remote_get_size(remote, NULL));
	R(rpma_mr_remote_get_flush_type(remote, NULL));
	R(rpma_conn_get_event_fd(pair.client, NULL));
	R(rpma_conn_next_event(pair.client, NULL));
	R(rpma_conn_get_private_data(pair.client, NULL));
	R(rpma_conn_apply_remote_peer_cfg(pair.client, NULL));
	R(rpma_conn_get_qp_num(pair.client, NULL));
	R(rpma_conn_get_cq(pair.client, NULL));
	R(rpma_conn_get_rcq(pair.client, NULL));
	R(rpma_conn_get_compl_fd(pair.client, NULL));
	R(rpma_conn_wait(pair.client, 0, NULL, &flag));
	R(rpma_conn_req_new(pair.peer, NULL, "1", NULL, (struct rpma_conn_req **)&handle));
	R(rpma_conn_req_new(pair.peer, test_address(), NULL, NULL, (struct rpma_conn_req **)&handle));
	R(rpma_conn_req_new(pair.peer, test_address(), "1", NULL, NULL));
	R(rpma_ep_listen(pair.peer, NULL, "1", (struct rpma_ep **)&handle));
	R(rpma_ep_listen(pair.peer, test_address(), NULL, (struct rpma_ep **)&handle));
	R(rpma_ep_listen(pair.peer, test_address(), "1", NULL));
	R(rpma_ep_get_fd(pair.ep, NULL));
	R(rpma_ep_next_conn_req(pair.ep, NULL, NULL));
	R(rpma_srq_new(pair.peer, NULL, NULL));
	R(rpma_srq_recv(srq, NULL, 1, 0, NULL));
	R(rpma_srq_recv(srq, NULL, 0, 1, NULL));
	R(rpma_srq_get_rcq(srq, NULL));
	R(rpma_read(pair.client, NULL, 0, remote, 0, 0, ALWAYS, NULL));
	R(rpma_read(pair.client, local, 0, NULL, 0, 0, ALWAYS, NULL));
	R(rpma_read(pair.client, NULL, 1, NULL, 0, 0, ALWAYS, NULL));
	R(rpma_read(pair.client, NULL, 0, NULL, 1, 0, ALWAYS, NULL));
	R(rpma_read(pair.client, NULL, 0, NULL, 0, 1, ALWAYS, NULL));
	R(rpma_write(pair.client, NULL, 0, local, 0, 0, ALWAYS, NULL));
	R(rpma_write(pair.client, remote, 0, NULL, 0, 0, ALWAYS, NULL));
	R(rpma_write(pair.client, NULL, 1, NULL, 0, 0, ALWAYS, NULL));
	R(rpma_write(pair.client, NULL, 0, NULL, 1, 0, ALWAYS, NULL));
	R(rpma_write(pair.client, NULL, 0, NULL, 0, 1, ALWAYS, NULL));
	R(rpma_write_with_imm(pair.client, NULL, 0, local, 0, 0, ALWAYS, 1, NULL));
	R(rpma_write_with_imm(pair.client, remote, 0, NULL, 0, 0, ALWAYS, 1, NULL));
	R(rpma_write_with_imm(pair.client, NULL, 0, NULL, 0, 1, ALWAYS, 1, NULL));
	R(rpma_atomic_write(pair.client, NULL, 0, memory, ALWAYS, NULL));
	R(rpma_atomic_write(pair.client, remote, 0, NULL, ALWAYS, NULL));
	R(rpma_flush(pair.client, NULL, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, NULL));
	R(rpma_send(pair.client, NULL, 1, 0, ALWAYS, NULL));
	R(rpma_send(pair.client, NULL, 0, 1, ALWAYS, NULL));
	R(rpma_send_with_imm(pair.client, NULL, 1, 0, ALWAYS, 1, NULL));
	R(rpma_send_with_imm(pair.client, NULL, 0, 1, ALWAYS, 1, NULL));
	R(rpma_recv(pair.client, NULL, 1, 0, NULL));
	R(rpma_recv(pair.client, NULL, 0, 1, NULL));
	R(rpma_cq_get_fd(pair.client_cq, NULL));
	R(rpma_cq_get_wc(pair.client_cq, 0, &wc, &value));
	R(rpma_cq_get_wc(pair.client_cq, -1, &wc, &value));
	R(rpma_cq_get_wc(pair.client_cq, 1, NULL, &value));
	R(rpma_cq_get_wc(pair.client_cq, 2, &wc, NULL));
	R(rpma_cq_get_wc(pair.client_cq, 1, &wc, &value));
	R(rpma_cq_get_wc(pair.client_cq, 1, &wc, NULL));
	say("untouched", "%s", handle == PLACE && value == 42 ? "all" : "not all");

	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("mr_dereg", rpma_mr_dereg(&local));
	must("srq_delete", rpma_srq_delete(&srq));
	pair_delete(&pair);
	free(memory);
}

void null_advice(void)
{
	R(rpma_mr_advise(NULL, 0, 8, IBV_ADVISE_MR_ADVICE_PREFETCH, 0));
}
