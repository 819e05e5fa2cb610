/* The functions that librpma had before 1.0. */
#define RPMA_OLD_API
#include "common.h"

#define SIZE 4096

static void old(const char *key, int ret, const struct rpma_completion *cmpl)
{
	static const char *const names[] = {"READ", "WRITE", "FLUSH", "SEND", "RECV", "RECV_RDMA_WITH_IMM"};
	if (ret != 0)
		say_ret(key, ret);
	else
		say(key, "%s of %p, %s, %u bytes, imm %#x", cmpl->op <= RPMA_OP_RECV_RDMA_WITH_IMM ? names[cmpl->op] : "?",
				cmpl->op_context, status_name(cmpl->op_status), cmpl->op == RPMA_OP_RECV ? cmpl->byte_len : 0,
				cmpl->flags & IBV_WC_WITH_IMM ? cmpl->imm : 0);
}

int main(void)
{
	struct pair pair = {0};
	struct rpma_completion cmpl;
	char *here = pages(SIZE, 'h'), *there = pages(SIZE, 't');
	bool iwarp = getenv("RPMA_TEST_DEV") != NULL && strcmp(getenv("RPMA_TEST_DEV"), "siw") == 0;
	int fd, of_cq;
	begin("old", 60);
	pair_connect(&pair);
	struct rpma_mr_local *local = reg(pair.peer, here, SIZE, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND);
	struct rpma_mr_local *far = reg(pair.peer, there, SIZE, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV);
	struct rpma_mr_remote *remote = remote_of(far);

	must("get_completion_fd", rpma_conn_get_completion_fd(pair.client, &fd));
	must("cq_get_fd", rpma_cq_get_fd(pair.client_cq, &of_cq));
	say("fd", "%s", fd == of_cq ? "that of the CQ" : "another");
	old("nothing yet", rpma_conn_completion_get(pair.client, &cmpl), &cmpl);
	say_ret("off by 4", rpma_write_atomic(pair.client, remote, 4, local, 0, ALWAYS, NULL));
	say_ret("no flags", rpma_write_atomic(pair.client, remote, 0, local, 0, 0, NULL));
	say_ret("atomic write", rpma_write_atomic(pair.client, remote, 8, local, 0, ALWAYS, CONTEXT(0x11)));
	say_ret("wait", rpma_conn_completion_wait(pair.client));
	old("completion", rpma_conn_completion_get(pair.client, &cmpl), &cmpl);
	say("there", "%.10s", there + 7);
	must("recv", rpma_recv(pair.server, far, 0, 64, CONTEXT(0x22)));
	if (iwarp)
		must("send", rpma_send(pair.client, local, 0, 5, ALWAYS, CONTEXT(0x33)));
	else
		must("send", rpma_send_with_imm(pair.client, local, 0, 5, ALWAYS, 0x44, CONTEXT(0x33)));
	must("wait", rpma_cq_wait(pair.server_cq));
	old("received", rpma_cq_get_completion(pair.server_cq, &cmpl), &cmpl);
	say_ret("NULL", rpma_conn_get_completion_fd(NULL, &fd));
	say_ret("NULL", rpma_conn_completion_wait(NULL));
	say_ret("NULL", rpma_conn_completion_get(pair.client, NULL));
	say_ret("NULL", rpma_cq_get_completion(NULL, &cmpl));
	say_ret("NULL", rpma_write_atomic(pair.client, NULL, 0, local, 0, ALWAYS, NULL));

	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("dereg", rpma_mr_dereg(&local));
	must("dereg", rpma_mr_dereg(&far));
	pair_delete(&pair);
	free(here);
	free(there);
	return 0;
}
