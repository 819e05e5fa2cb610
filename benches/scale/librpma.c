/*
 * benches/scale/main.rs through the C interface of librpma: see there. It has no batches.
 *
 * usage: RPMA_TEST_ADDR=ADDRESS librpma OPPONENT KIND:N…
 */
#include <dirent.h>
#include <librpma.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PORT "7207"
#define TIMEOUT_MS 30000
#define MESSAGE 64
/* What each queue of a connection holds. */
#define QUEUE 16
/* Messages over all connections; writes over all lots. */
#define MESSAGES 2048
#define MOST 64

static const char *address, *opponent;
static struct rpma_peer *peer;
static struct rpma_ep *ep;

struct pair {
	struct rpma_conn *client, *server;
};

static void must(const char *what, int ret)
{
	if (ret) {
		fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
		exit(1);
	}
}

#define MUST(CALL) must(#CALL, CALL)

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void result(const char *section, const char *name, long number, const char *unit, double value)
{
	printf("RESULT\t%s\t%s", section, name);
	if (number)
		printf(" %ld", number);
	printf("\t%s\t%s\t%.2f\n", opponent, unit, value);
}

static void event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event got;
	MUST(rpma_conn_next_event(conn, &got));
	if (got != wanted)
		fail(rpma_utils_conn_event_2str(got));
}

static struct pair connect_ends(const struct rpma_conn_cfg *active, const struct rpma_conn_cfg *passive)
{
	struct pair pair;
	struct rpma_conn_req *req;
	MUST(rpma_conn_req_new(peer, address, PORT, active, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &pair.client));
	MUST(rpma_ep_next_conn_req(ep, passive, &req));
	MUST(rpma_conn_req_connect(&req, NULL, &pair.server));
	event(pair.client, RPMA_CONN_ESTABLISHED);
	event(pair.server, RPMA_CONN_ESTABLISHED);
	return pair;
}

static void disconnect(struct pair *pair)
{
	MUST(rpma_conn_disconnect(pair->client));
	event(pair->server, RPMA_CONN_CLOSED);
	/* The client's end is confirmed by the server's. */
	MUST(rpma_conn_disconnect(pair->server));
	event(pair->client, RPMA_CONN_CLOSED);
	MUST(rpma_conn_delete(&pair->client));
	MUST(rpma_conn_delete(&pair->server));
}

static struct rpma_conn_cfg *cfg(uint32_t sq, uint32_t rq, uint32_t cq, uint32_t rcq)
{
	struct rpma_conn_cfg *made;
	MUST(rpma_conn_cfg_new(&made));
	MUST(rpma_conn_cfg_set_timeout(made, TIMEOUT_MS));
	MUST(rpma_conn_cfg_set_sq_size(made, sq));
	MUST(rpma_conn_cfg_set_rq_size(made, rq));
	MUST(rpma_conn_cfg_set_cq_size(made, cq));
	MUST(rpma_conn_cfg_set_rcq_size(made, rcq));
	return made;
}

/* Memory that has been touched; mapped, as rpma's is, since the kernel aligns mappings to its large pages. */
static void *touched(size_t len)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("no memory");
	return memset(memory, 1, len);
}

static double resident(void)
{
	char line[128];
	long kib = -1;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (kib < 0)
		fail("no VmRSS");
	fclose(status);
	return (double)kib;
}

static double open_fds(void)
{
	int count = 0;
	DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		fail("no /proc/self/fd");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Takes what is there; how many. */
static int taken(struct rpma_cq *cq, int room)
{
	struct ibv_wc wc[QUEUE];
	int got = 0;
	int ret = rpma_cq_get_wc(cq, room, wc, room == 1 ? NULL : &got);
	if (ret == RPMA_E_NO_COMPLETION)
		return 0;
	MUST(ret);
	if (room == 1)
		got = 1;
	for (int i = 0; i < got; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			fail(ibv_wc_status_str(wc[i].status));
	return got;
}

static void exchange(struct pair *pairs, int n, struct rpma_mr_local *mr, struct rpma_srq *srq, struct rpma_cq **sent,
		     struct rpma_cq **arrivals, int queues)
{
	for (int i = 0; i < n; i++) {
		if (srq)
			MUST(rpma_srq_recv(srq, mr, 0, MESSAGE, NULL));
		else
			MUST(rpma_recv(pairs[i].server, mr, 0, MESSAGE, NULL));
		MUST(rpma_send(pairs[i].client, mr, 2048, MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL));
	}
	for (int left = n; left > 0;) {
		int before = left;
		for (int i = 0; i < queues; i++)
			left -= taken(arrivals[i], QUEUE);
		if (left == before)
			sched_yield();
	}
	for (int i = 0; i < n; i++)
		while (!taken(sent[i], 1))
			sched_yield();
}

static void connections(int n, bool shared)
{
	static struct pair pairs[MOST];
	static struct rpma_cq *sent[MOST], *arrivals[MOST];
	struct rpma_conn_cfg *active, *passive;
	struct rpma_srq *srq = NULL;
	if (n < 1 || n > MOST)
		fail("too many connections");
	if (shared) {
		struct rpma_srq_cfg *srq_cfg;
		uint32_t room = n > QUEUE ? (uint32_t)n : QUEUE;
		MUST(rpma_srq_cfg_new(&srq_cfg));
		MUST(rpma_srq_cfg_set_rq_size(srq_cfg, room));
		MUST(rpma_srq_cfg_set_rcq_size(srq_cfg, room));
		MUST(rpma_srq_new(peer, srq_cfg, &srq));
		active = cfg(QUEUE, 1, QUEUE, 0);
		passive = cfg(1, 1, 1, 0);
		MUST(rpma_conn_cfg_set_srq(passive, srq));
	} else {
		active = passive = cfg(QUEUE, QUEUE, QUEUE, QUEUE);
	}
	struct rpma_mr_local *mr;
	MUST(rpma_mr_reg(peer, touched(4096), 4096, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr));
	/* What is allocated once and for all is there after the first. */
	struct pair first = connect_ends(active, passive);
	disconnect(&first);
	double kib = resident(), fds = open_fds();
	for (int i = 0; i < n; i++)
		pairs[i] = connect_ends(active, passive);
	kib = (resident() - kib) / (2 * n);
	const char *how = shared ? "one shared CQ" : "separate CQs";
	char name[64];
	snprintf(name, sizeof(name), "memory, %s", how);
	result("scale", name, n, "KiB/end", kib > 0 ? kib : 0);
	snprintf(name, sizeof(name), "fds, %s", how);
	result("scale", name, n, "fds/end", (open_fds() - fds) / (2 * n));

	for (int i = 0; i < n; i++) {
		MUST(rpma_conn_get_cq(pairs[i].client, &sent[i]));
		if (!shared)
			MUST(rpma_conn_get_rcq(pairs[i].server, &arrivals[i]));
	}
	if (shared)
		MUST(rpma_srq_get_rcq(srq, &arrivals[0]));
	int rounds = MESSAGES / n < 2 ? 2 : MESSAGES / n;
	/* One to get warm. */
	exchange(pairs, n, mr, srq, sent, arrivals, shared ? 1 : n);
	double start = now();
	for (int i = 0; i < rounds; i++)
		exchange(pairs, n, mr, srq, sent, arrivals, shared ? 1 : n);
	snprintf(name, sizeof(name), "messages, %s", how);
	result("scale", name, n, "messages/s", rounds * n / (now() - start));
	for (int i = 0; i < n; i++)
		disconnect(&pairs[i]);
}

static void setup(int n)
{
	struct rpma_conn_cfg *both = cfg(16, 16, 10, 0);
	double up = 0, down = 0;
	/* The first finds everything cold. */
	for (int i = 0; i <= n; i++) {
		double start = now();
		struct pair pair = connect_ends(both, both);
		double connected = now();
		disconnect(&pair);
		if (i > 0) {
			up += connected - start;
			down += now() - connected;
		}
	}
	result("setup", "connect", 0, "connections/s", n / up);
	result("setup", "disconnect", 0, "connections/s", n / down);
}

static void registering(long len)
{
	enum { REPEATED = 8 };
	void *memory = touched((size_t)len);
	double on = 0, off = 0;
	for (int i = 0; i <= REPEATED; i++) {
		struct rpma_mr_local *mr;
		double start = now();
		MUST(rpma_mr_reg(peer, memory, (size_t)len,
				 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr));
		double registered = now();
		MUST(rpma_mr_dereg(&mr));
		if (i > 0) {
			on += registered - start;
			off += now() - registered;
		}
	}
	result("regcost", "register", len, "us", on * 1e6 / REPEATED);
	result("regcost", "deregister", len, "us", off * 1e6 / REPEATED);
	munmap(memory, (size_t)len);
}

static void batch(int n)
{
	struct rpma_conn_cfg *both = cfg(64, 1, 64, 0);
	struct pair pair = connect_ends(both, both);
	struct rpma_mr_local *near, *far;
	struct rpma_mr_remote *remote;
	struct rpma_cq *cq;
	char descriptor[64];
	size_t size;
	MUST(rpma_mr_reg(peer, touched(4096), 4096, RPMA_MR_USAGE_WRITE_SRC, &near));
	MUST(rpma_mr_reg(peer, touched(4096), 4096, RPMA_MR_USAGE_WRITE_DST, &far));
	MUST(rpma_mr_get_descriptor_size(far, &size));
	if (size > sizeof(descriptor))
		fail("a long descriptor");
	MUST(rpma_mr_get_descriptor(far, descriptor));
	MUST(rpma_mr_remote_from_descriptor(descriptor, size, &remote));
	MUST(rpma_conn_get_cq(pair.client, &cq));
	int rounds = MESSAGES / n;
	double start = 0;
	for (int round = 0; round <= rounds; round++) {
		if (round == 1)
			start = now();
		for (int i = 0; i < n; i++)
			MUST(rpma_write(pair.client, remote, 0, near, 0, MESSAGE,
					i + 1 == n ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR, NULL));
		while (!taken(cq, 1))
			sched_yield();
	}
	result("scale", "writes in one batch", n, "writes/s", rounds * n / (now() - start));
	disconnect(&pair);
}

int main(int argc, char **argv)
{
	address = getenv("RPMA_TEST_ADDR");
	if (!address || argc < 3) {
		fprintf(stderr, "usage: RPMA_TEST_ADDR=ADDRESS %s OPPONENT KIND:N...\n", argv[0]);
		return 2;
	}
	opponent = argv[1];
	struct ibv_context *dev;
	MUST(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &dev));
	MUST(rpma_peer_new(dev, &peer));
	MUST(rpma_ep_listen(peer, address, PORT, &ep));
	for (int i = 2; i < argc; i++) {
		char *number = strchr(argv[i], ':');
		long n = number ? atol(number + 1) : 0;
		if (n < 1)
			fail("no number");
		if (!strncmp(argv[i], "connections:", 12))
			connections((int)n, false);
		else if (!strncmp(argv[i], "shared:", 7))
			connections((int)n, true);
		else if (!strncmp(argv[i], "setup:", 6))
			setup((int)n);
		else if (!strncmp(argv[i], "register:", 9))
			registering(n);
		else if (!strncmp(argv[i], "batch:", 6))
			batch((int)n);
		else
			fail("no such kind");
		fflush(stdout);
	}
	return 0;
}
