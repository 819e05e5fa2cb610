/* Flushes and atomic writes. */
#include "cases.h"

#define SIZE 4096

static struct rpma_mr_local *far;
static struct rpma_mr_remote *remote;
static char *there;

static void open_flush(struct pair *pair, int usage, size_t offset)
{
	if (pair->client == NULL)
		pair_connect(pair);
	there = pages(2 * SIZE, 't');
	far = reg(pair->peer, there + offset, SIZE, usage);
	remote = remote_of(far);
}

static void close_flush(struct pair *pair)
{
	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("dereg", rpma_mr_dereg(&far));
	pair_delete(pair);
	free(there);
}

/* Native or by reading: both will do here. */
static void flushed(const char *key, struct rpma_cq *cq)
{
	struct ibv_wc wc = take(cq);
	bool right = wc.opcode == IBV_WC_RDMA_READ || wc.opcode == 8;
	if (wc.status == IBV_WC_SUCCESS)
		say(key, "%s, of %lu", right ? "flushed" : opcode_name(wc.opcode), (unsigned long)wc.wr_id);
	else
		say(key, "%s of %lu", status_name(wc.status), (unsigned long)wc.wr_id);
}

static void attempt(const char *key, struct rpma_cq *cq, int ret)
{
	say_ret(key, ret);
	if (ret == 0)
		flushed(key, cq);
}

#define WRITABLE (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

void flushing(void)
{
	struct pair pair = {0};
	open_flush(&pair, WRITABLE, 0);
	char *here = pages(SIZE, 'h');
	struct rpma_mr_local *local = reg(pair.peer, here, SIZE, RPMA_MR_USAGE_WRITE_SRC);
	say_ret("write", rpma_write(pair.client, remote, 0, local, 0, 64, ON_ERROR, CONTEXT(1)));
	say_ret("flush", rpma_flush(pair.client, remote, 0, 64, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(2)));
	flushed("flush", pair.client_cq);
	say("there", "%.4s", there);
	say_ret("flush all", rpma_flush(pair.client, remote, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(3)));
	flushed("flush all", pair.client_cq);
	say_ret("quietly", rpma_flush(pair.client, remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, ON_ERROR, CONTEXT(4)));
	say_ret("behind it", rpma_flush(pair.client, remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(5)));
	flushed("behind it", pair.client_cq);
	must("dereg", rpma_mr_dereg(&local));
	close_flush(&pair);
	free(here);
}

void flush_refused(void)
{
	struct pair pair = {0};
	struct rpma_peer_cfg *cfg;
	open_flush(&pair, WRITABLE, 0);
	say_ret("not declared", rpma_flush(pair.client, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, CONTEXT(1)));
	must("peer_cfg_new", rpma_peer_cfg_new(&cfg));
	must("set", rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
	say_ret("apply", rpma_conn_apply_remote_peer_cfg(pair.client, cfg));
	say_ret("not registered for it", rpma_flush(pair.client, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, CONTEXT(1)));
	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("dereg", rpma_mr_dereg(&far));
	free(there);
	open_flush(&pair, RPMA_MR_USAGE_WRITE_DST, 0);
	say_ret("not registered for visibility",
			rpma_flush(pair.client, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(1)));
	must("peer_cfg_delete", rpma_peer_cfg_delete(&cfg));
	close_flush(&pair);
}

void flush_unknown(void)
{
	struct pair pair = {0};
	open_flush(&pair, WRITABLE, 0);
	attempt("type 2", pair.client_cq, rpma_flush(pair.client, remote, 0, 8, (enum rpma_flush_type)2, ALWAYS, CONTEXT(1)));
	close_flush(&pair);
}

void flush_nothing(void)
{
	struct pair pair = {0};
	open_flush(&pair, WRITABLE, 0);
	attempt("no bytes", pair.client_cq, rpma_flush(pair.client, remote, 0, 0, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(1)));
	close_flush(&pair);
}

void flush_at_the_end(void)
{
	struct pair pair = {0};
	open_flush(&pair, WRITABLE, 0);
	attempt("the last byte", pair.client_cq,
			rpma_flush(pair.client, remote, SIZE - 1, 1, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(1)));
	close_flush(&pair);
}

void flush_outside(void)
{
	struct pair pair = {0};
	open_flush(&pair, WRITABLE, 0);
	attempt("behind the end", pair.client_cq,
			rpma_flush(pair.client, remote, SIZE, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(1)));
	close_flush(&pair);
}

/* Memory that is not persistent, registered for persistent flush. */
void flush_dram(void)
{
	struct pair pair = {0};
	struct rpma_mr_local *mr = NULL;
	char *memory = pages(SIZE, 0);
	pair.peer = new_peer();
	say_ret("reg", rpma_mr_reg(pair.peer, memory, SIZE, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, &mr));
	must("dereg", rpma_mr_dereg(&mr));
	must("peer_delete", rpma_peer_delete(&pair.peer));
	free(memory);
}

void atomic_writes(void)
{
	struct pair pair = {0};
	open_flush(&pair, WRITABLE, 0);
	say_ret("atomic_write", rpma_atomic_write(pair.client, remote, 16, "8 bytes", ALWAYS, CONTEXT(1)));
	struct ibv_wc wc = take(pair.client_cq);
	say("atomic_write", "%s of %lu", status_name(wc.status), (unsigned long)wc.wr_id);
	say("there", "%s", there + 16);
	say_ret("off by 4", rpma_atomic_write(pair.client, remote, 20, "8 bytes", ALWAYS, CONTEXT(2)));
	say_ret("the last", rpma_atomic_write(pair.client, remote, SIZE - 8, "the end", ALWAYS, CONTEXT(3)));
	wc = take(pair.client_cq);
	say("the last", "%s of %lu", status_name(wc.status), (unsigned long)wc.wr_id);
	close_flush(&pair);
}

/* An offset that is a multiple of 8 of an address that is not. */
void atomic_write_off(void)
{
	struct pair pair = {0};
	open_flush(&pair, WRITABLE, 4);
	int ret = rpma_atomic_write(pair.client, remote, 0, "8 bytes", ALWAYS, CONTEXT(1));
	say_ret("offset 0 of an address off by 4", ret);
	if (ret == 0) {
		struct ibv_wc wc = take(pair.client_cq);
		say("offset 0 of an address off by 4", "%s of %lu", status_name(wc.status), (unsigned long)wc.wr_id);
	}
	close_flush(&pair);
}
