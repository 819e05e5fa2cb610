/* Reads, writes, messages. */
#include "cases.h"

#define SIZE 4096
#define VISIBLE (0xff & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

/* A pair with a region on each side. */
struct sides {
	struct pair pair;
	char *here, *there;
	struct rpma_mr_local *local, *far;
	struct rpma_mr_remote *remote;
};

static void open_sides(struct sides *sides)
{
	pair_connect(&sides->pair);
	sides->here = pages(SIZE, 'h');
	sides->there = pages(SIZE, 't');
	sides->local = reg(sides->pair.peer, sides->here, SIZE, VISIBLE);
	sides->far = reg(sides->pair.peer, sides->there, SIZE, VISIBLE);
	sides->remote = remote_of(sides->far);
}

static void close_sides(struct sides *sides)
{
	must("remote_delete", rpma_mr_remote_delete(&sides->remote));
	must("dereg", rpma_mr_dereg(&sides->local));
	must("dereg", rpma_mr_dereg(&sides->far));
	pair_delete(&sides->pair);
	free(sides->here);
	free(sides->there);
}

void operations(void)
{
	struct sides s = {0};
	open_sides(&s);
	strcpy(s.here + 10, "written");
	say_ret("write", rpma_write(s.pair.client, s.remote, 100, s.local, 10, 8, ALWAYS, CONTEXT(1)));
	say_wc("write", s.pair.client_cq);
	say("there", "%s", s.there + 100);
	say_ret("read", rpma_read(s.pair.client, s.local, 200, s.remote, 100, 8, ALWAYS, CONTEXT(UINT64_MAX)));
	say_wc("read", s.pair.client_cq);
	say("here", "%s", s.here + 200);
	strcpy(s.here, "message");
	say_ret("recv", rpma_recv(s.pair.server, s.far, 300, 64, CONTEXT(2)));
	say_ret("send", rpma_send(s.pair.client, s.local, 0, 8, ALWAYS, CONTEXT(3)));
	say_wc("send", s.pair.client_cq);
	say_wc("recv", s.pair.server_cq);
	say("received", "%s", s.there + 300);
	/* And the other way. */
	say_ret("recv back", rpma_recv(s.pair.client, s.local, 0, SIZE, CONTEXT(4)));
	say_ret("send back", rpma_send(s.pair.server, s.far, 300, 8, ALWAYS, CONTEXT(5)));
	say_wc("send back", s.pair.server_cq);
	say_wc("recv back", s.pair.client_cq);
	/* A whole region. */
	memset(s.here, 'w', SIZE);
	say_ret("write all", rpma_write(s.pair.client, s.remote, 0, s.local, 0, SIZE, ALWAYS, CONTEXT(6)));
	say_wc("write all", s.pair.client_cq);
	say("all", "%s", memcmp(s.here, s.there, SIZE) == 0 ? "there" : "not there");
	close_sides(&s);
}

void immediate(void)
{
	struct sides s = {0};
	open_sides(&s);
	strcpy(s.here, "now");
	must("recv", rpma_recv(s.pair.server, s.far, 0, 64, CONTEXT(1)));
	must("recv", rpma_recv(s.pair.server, s.far, 64, 64, CONTEXT(2)));
	say_ret("send_with_imm", rpma_send_with_imm(s.pair.client, s.local, 0, 4, ALWAYS, 0x12345678, CONTEXT(3)));
	say_ret("write_with_imm", rpma_write_with_imm(s.pair.client, s.remote, 1000, s.local, 0, 4, ALWAYS, 0x9abcdef0, CONTEXT(4)));
	if (getenv("RPMA_TEST_DEV") == NULL || strcmp(getenv("RPMA_TEST_DEV"), "siw") != 0) {
		say_wc("send", s.pair.client_cq);
		say_wc("write", s.pair.client_cq);
		say_wc("first", s.pair.server_cq);
		say_wc("second", s.pair.server_cq);
		say("there", "%s", s.there + 1000);
	}
	close_sides(&s);
}

void no_bytes(void)
{
	struct sides s = {0};
	open_sides(&s);
	say_ret("read", rpma_read(s.pair.client, NULL, 0, NULL, 0, 0, ALWAYS, CONTEXT(1)));
	say_wc("read", s.pair.client_cq);
	say_ret("write", rpma_write(s.pair.client, NULL, 0, NULL, 0, 0, ALWAYS, CONTEXT(2)));
	say_wc("write", s.pair.client_cq);
	say_ret("recv", rpma_recv(s.pair.server, NULL, 0, 0, CONTEXT(3)));
	say_ret("send", rpma_send(s.pair.client, NULL, 0, 0, ALWAYS, CONTEXT(4)));
	say_wc("send", s.pair.client_cq);
	say_wc("recv", s.pair.server_cq);
	say_ret("write of a region", rpma_write(s.pair.client, s.remote, 0, s.local, 0, 0, ALWAYS, CONTEXT(5)));
	say_wc("write of a region", s.pair.client_cq);
	say_ret("write at the end", rpma_write(s.pair.client, s.remote, SIZE, s.local, SIZE, 0, ALWAYS, CONTEXT(6)));
	say_wc("write at the end", s.pair.client_cq);
	close_sides(&s);
}

void flags(void)
{
	struct sides s = {0};
	struct ibv_wc wc;
	open_sides(&s);
	say_ret("read", rpma_read(s.pair.client, s.local, 0, s.remote, 0, 8, 0, CONTEXT(1)));
	say_ret("write", rpma_write(s.pair.client, s.remote, 0, s.local, 0, 8, 0, CONTEXT(1)));
	say_ret("write_with_imm", rpma_write_with_imm(s.pair.client, s.remote, 0, s.local, 0, 8, 0, 1, CONTEXT(1)));
	say_ret("atomic_write", rpma_atomic_write(s.pair.client, s.remote, 0, s.here, 0, CONTEXT(1)));
	say_ret("flush", rpma_flush(s.pair.client, s.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, CONTEXT(1)));
	say_ret("send", rpma_send(s.pair.client, s.local, 0, 8, 0, CONTEXT(1)));
	say_ret("send_with_imm", rpma_send_with_imm(s.pair.client, s.local, 0, 8, 0, 1, CONTEXT(1)));
	/* No completion, then one. */
	say_ret("on error", rpma_write(s.pair.client, s.remote, 0, s.local, 0, 8, ON_ERROR, CONTEXT(2)));
	say_ret("always", rpma_write(s.pair.client, s.remote, 8, s.local, 0, 8, ALWAYS, CONTEXT(3)));
	say_wc("the only one", s.pair.client_cq);
	say_ret("no other", rpma_cq_get_wc(s.pair.client_cq, 1, &wc, NULL));
	/* The second bit decides, whatever else is set. */
	say_ret("bit 1", rpma_write(s.pair.client, s.remote, 0, s.local, 0, 8, 1 << 1, CONTEXT(4)));
	say_wc("bit 1", s.pair.client_cq);
	say_ret("bit 2", rpma_write(s.pair.client, s.remote, 0, s.local, 0, 8, 1 << 2, CONTEXT(5)));
	say_ret("behind it", rpma_write(s.pair.client, s.remote, 0, s.local, 0, 8, ALWAYS, CONTEXT(6)));
	say_wc("bit 2 or behind it", s.pair.client_cq);
	close_sides(&s);
}

/* Regions used for more than they were registered for, where the device does not mind. */
void sources(void)
{
	struct sides s = {0};
	open_sides(&s);
	struct rpma_mr_local *read_only = reg(s.pair.peer, s.here, SIZE, RPMA_MR_USAGE_READ_SRC);
	struct rpma_mr_local *receive_only = reg(s.pair.peer, s.here, SIZE, RPMA_MR_USAGE_RECV);
	struct rpma_mr_local *write_only = reg(s.pair.peer, s.there, SIZE, RPMA_MR_USAGE_WRITE_DST);
	say_ret("write", rpma_write(s.pair.client, s.remote, 0, read_only, 0, 8, ALWAYS, CONTEXT(1)));
	say_wc("write", s.pair.client_cq);
	must("recv", rpma_recv(s.pair.server, write_only, 0, 64, CONTEXT(2)));
	say_ret("send", rpma_send(s.pair.client, read_only, 0, 8, ALWAYS, CONTEXT(3)));
	say_wc("send", s.pair.client_cq);
	say_wc("recv", s.pair.server_cq);
	say_ret("read", rpma_read(s.pair.client, receive_only, 0, s.remote, 0, 8, ALWAYS, CONTEXT(4)));
	if (getenv("RPMA_TEST_DEV") == NULL || strcmp(getenv("RPMA_TEST_DEV"), "siw") != 0)
		say_wc("read", s.pair.client_cq);
	must("dereg", rpma_mr_dereg(&read_only));
	must("dereg", rpma_mr_dereg(&receive_only));
	must("dereg", rpma_mr_dereg(&write_only));
	close_sides(&s);
}

/* KEY = what becomes of an operation that leaves its region: refused, or posted with an error to come. */
static void attempt(const char *key, struct rpma_cq *cq, int ret)
{
	say_ret(key, ret);
	if (ret == 0)
		say_wc(key, cq);
}

#define ATTEMPT(key, call) \
	do { \
		struct sides s = {0}; \
		open_sides(&s); \
		attempt(key, s.pair.client_cq, call); \
		close_sides(&s); \
	} while (0)

void outside(void)
{
	ATTEMPT("write behind theirs", rpma_write(s.pair.client, s.remote, SIZE - 4, s.local, 0, 8, ALWAYS, CONTEXT(1)));
	ATTEMPT("write from behind ours", rpma_write(s.pair.client, s.remote, 0, s.local, SIZE - 4, 8, ALWAYS, CONTEXT(1)));
	ATTEMPT("read from behind theirs", rpma_read(s.pair.client, s.local, 0, s.remote, SIZE, 1, ALWAYS, CONTEXT(1)));
	ATTEMPT("send from behind ours", rpma_send(s.pair.client, s.local, SIZE, 1, ALWAYS, CONTEXT(1)));
	ATTEMPT("atomic write behind theirs", rpma_atomic_write(s.pair.client, s.remote, SIZE, s.here, ALWAYS, CONTEXT(1)));
	struct sides s = {0};
	open_sides(&s);
	say_ret("receive behind ours", rpma_recv(s.pair.client, s.local, SIZE, 1, CONTEXT(1)));
	close_sides(&s);
}

void outside_overflow(void)
{
	ATTEMPT("offset and length wrap", rpma_write(s.pair.client, s.remote, SIZE_MAX - 3, s.local, 0, 8, ALWAYS, CONTEXT(1)));
	ATTEMPT("more than 32 bits", rpma_write(s.pair.client, s.remote, 0, s.local, 0, (1ul << 32) + 8, ALWAYS, CONTEXT(1)));
}

void without_usage(void)
{
	struct sides s = {0};
	open_sides(&s);
	struct rpma_mr_local *far = reg(s.pair.peer, s.there, SIZE, RPMA_MR_USAGE_READ_SRC);
	struct rpma_mr_remote *remote = remote_of(far);
	attempt("write to what can be read", s.pair.client_cq,
			rpma_write(s.pair.client, remote, 0, s.local, 0, 8, ALWAYS, CONTEXT(1)));
	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("dereg", rpma_mr_dereg(&far));
	close_sides(&s);

	struct sides t = {0};
	open_sides(&t);
	far = reg(t.pair.peer, t.there, SIZE, RPMA_MR_USAGE_WRITE_DST);
	remote = remote_of(far);
	attempt("read what can be written", t.pair.client_cq,
			rpma_read(t.pair.client, t.local, 0, remote, 0, 8, ALWAYS, CONTEXT(1)));
	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("dereg", rpma_mr_dereg(&far));
	close_sides(&t);

	struct sides u = {0};
	open_sides(&u);
	far = reg(u.pair.peer, u.there, SIZE, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	remote = remote_of(far);
	attempt("read what can be flushed", u.pair.client_cq,
			rpma_read(u.pair.client, u.local, 0, remote, 0, 8, ALWAYS, CONTEXT(1)));
	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("dereg", rpma_mr_dereg(&far));
	close_sides(&u);
}

void early_receive(void)
{
	struct pair pair = {0};
	struct rpma_conn_req *req;
	char *memory = pages(SIZE, 0);
	pair_listen(&pair);
	struct rpma_mr_local *mr = reg(pair.peer, memory, SIZE, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND);
	req = pair_request(&pair);
	say_ret("client", rpma_conn_req_recv(req, mr, 0, 64, CONTEXT(1)));
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
	req = pair_incoming(&pair);
	say_ret("server", rpma_conn_req_recv(req, mr, 64, 64, CONTEXT(2)));
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.server));
	if (next_event(pair.client) != RPMA_CONN_ESTABLISHED || next_event(pair.server) != RPMA_CONN_ESTABLISHED)
		exit(1);
	must("get_cq", rpma_conn_get_cq(pair.client, &pair.client_cq));
	must("get_cq", rpma_conn_get_cq(pair.server, &pair.server_cq));
	must("send", rpma_send(pair.client, mr, 128, 5, ALWAYS, CONTEXT(3)));
	say_wc("sent", pair.client_cq);
	say_wc("received", pair.server_cq);
	must("send", rpma_send(pair.server, mr, 128, 6, ALWAYS, CONTEXT(4)));
	say_wc("sent back", pair.server_cq);
	say_wc("received back", pair.client_cq);
	must("dereg", rpma_mr_dereg(&mr));
	pair_delete(&pair);
	free(memory);
}

void many_completions(void)
{
	struct sides s = {0};
	struct ibv_wc wc[8];
	int got = 0, taken = 0;
	open_sides(&s);
	for (int i = 0; i < 6; i++)
		must("write", rpma_write(s.pair.client, s.remote, 0, s.local, 0, 8, i % 2 ? ALWAYS : ON_ERROR, CONTEXT(i)));
	/* All three are there once the last is. */
	for (int i = 0; i < 20000 && taken < 3; i++) {
		int ret = rpma_cq_get_wc(s.pair.client_cq, 8 - taken, wc + taken, &got);
		if (ret == 0)
			taken += got;
		else
			usleep(1000);
	}
	say("taken", "%d", taken);
	say("which", "%lu %lu %lu", (unsigned long)wc[0].wr_id, (unsigned long)wc[1].wr_id, (unsigned long)wc[2].wr_id);
	close_sides(&s);
}

void queue_full(void)
{
	struct sides s = {0};
	int ret = 0, posted;
	must("cfg_new", rpma_conn_cfg_new(&s.pair.client_cfg));
	must("sq_size", rpma_conn_cfg_set_sq_size(s.pair.client_cfg, 4));
	open_sides(&s);
	for (posted = 0; posted < 10000 && ret == 0; posted++)
		ret = rpma_write(s.pair.client, s.remote, 0, s.local, 0, SIZE, ON_ERROR, CONTEXT(posted));
	say_ret("in the end", ret);
	say("posted", "%s", posted > 4 && posted < 10000 ? "what was asked for at least" : "too few or too many");
	close_sides(&s);
}

/* All that can be outstanding with the defaults, nothing taken before all is done: 10 sends and 10 receives. */
void all_outstanding(void)
{
	struct sides s = {0};
	struct ibv_wc wc;
	int successes = 0, failures = 0;
	open_sides(&s);
	for (int i = 0; i < 10; i++) {
		must("recv", rpma_recv(s.pair.client, s.local, 64 * i, 64, CONTEXT(i)));
		must("recv", rpma_recv(s.pair.server, s.far, 64 * i, 64, CONTEXT(i)));
	}
	for (int i = 0; i < 10; i++) {
		must("send", rpma_send(s.pair.client, s.local, 1024, 8, ALWAYS, CONTEXT(100 + i)));
		must("send", rpma_send(s.pair.server, s.far, 1024, 8, ALWAYS, CONTEXT(100 + i)));
	}
	for (int i = 0; i < 100; i++)
		usleep(10000);
	while (rpma_cq_get_wc(s.pair.client_cq, 1, &wc, NULL) == 0)
		*(wc.status == IBV_WC_SUCCESS ? &successes : &failures) += 1;
	say("client", "%d", successes);
	say("failed", "%d", failures);
	close_sides(&s);
}
