#include "common.h"

const char *current_case = "";

void begin(const char *name, unsigned patience)
{
	const char *other = getenv("RPMA_TEST_PATIENCE");
	enum rpma_log_level level = getenv("RPMA_TEST_LOG") == NULL ? RPMA_LOG_DISABLED : RPMA_LOG_LEVEL_DEBUG;
	current_case = name;
	alarm(other == NULL ? patience : (unsigned)atoi(other));
	/* What fails on purpose is not to fill a log. */
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD, level));
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, level));
}

const char *test_address(void)
{
	const char *address = getenv("RPMA_TEST_ADDR");
	if (address == NULL || *address == '\0') {
		fprintf(stderr, "RPMA_TEST_ADDR names no RDMA device\n");
		exit(77);
	}
	return address;
}

const char *test_port(void)
{
	const char *port = getenv("RPMA_TEST_PORT");
	return port == NULL ? "7204" : port;
}

void say(const char *key, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf("%s.%s = ", current_case, key);
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
	va_end(args);
}

void say_ret(const char *key, int ret)
{
	say(key, "%s", ret_name(ret));
}

void must(const char *what, int ret)
{
	if (ret != 0) {
		say(what, "failed: %s", ret_name(ret));
		exit(1);
	}
}

const char *ret_name(int ret)
{
	static char other[32];
	switch (ret) {
	case 0: return "0";
	case RPMA_E_UNKNOWN: return "UNKNOWN";
	case RPMA_E_NOSUPP: return "NOSUPP";
	case RPMA_E_PROVIDER: return "PROVIDER";
	case RPMA_E_NOMEM: return "NOMEM";
	case RPMA_E_INVAL: return "INVAL";
	case RPMA_E_NO_COMPLETION: return "NO_COMPLETION";
	case RPMA_E_NO_EVENT: return "NO_EVENT";
	case RPMA_E_AGAIN: return "AGAIN";
	case RPMA_E_SHARED_CHANNEL: return "SHARED_CHANNEL";
	case RPMA_E_NOT_SHARED_CHNL: return "NOT_SHARED_CHNL";
	}
	snprintf(other, sizeof(other), "%d", ret);
	return other;
}

const char *status_name(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS: return "SUCCESS";
	case IBV_WC_WR_FLUSH_ERR: return "WR_FLUSH_ERR";
	case IBV_WC_REM_ACCESS_ERR: return "REM_ACCESS_ERR";
	case IBV_WC_REM_INV_REQ_ERR: return "REM_INV_REQ_ERR";
	case IBV_WC_REM_OP_ERR: return "REM_OP_ERR";
	case IBV_WC_LOC_PROT_ERR: return "LOC_PROT_ERR";
	case IBV_WC_LOC_QP_OP_ERR: return "LOC_QP_OP_ERR";
	case IBV_WC_LOC_LEN_ERR: return "LOC_LEN_ERR";
	default: return ibv_wc_status_str(status);
	}
}

const char *opcode_name(enum ibv_wc_opcode opcode)
{
	static char other[32];
	switch ((int)opcode) {
	case IBV_WC_SEND: return "SEND";
	case IBV_WC_RDMA_WRITE: return "WRITE";
	case IBV_WC_RDMA_READ: return "READ";
	case IBV_WC_RECV: return "RECV";
	case IBV_WC_RECV_RDMA_WITH_IMM: return "RECV_WITH_IMM";
	case 8: return "FLUSH";
	case 9: return "ATOMIC_WRITE";
	}
	snprintf(other, sizeof(other), "opcode %d", (int)opcode);
	return other;
}

const char *event_name(enum rpma_conn_event event)
{
	switch (event) {
	case RPMA_CONN_UNDEFINED: return "UNDEFINED";
	case RPMA_CONN_ESTABLISHED: return "ESTABLISHED";
	case RPMA_CONN_CLOSED: return "CLOSED";
	case RPMA_CONN_LOST: return "LOST";
	case RPMA_CONN_REJECTED: return "REJECTED";
	case RPMA_CONN_UNREACHABLE: return "UNREACHABLE";
	}
	return "?";
}

struct rpma_peer *new_peer(void)
{
	struct ibv_context *context;
	struct rpma_peer *peer;
	must("get_ibv_context", rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
	must("peer_new", rpma_peer_new(context, &peer));
	return peer;
}

void pair_listen(struct pair *pair)
{
	if (pair->peer == NULL)
		pair->peer = new_peer();
	if (pair->ep == NULL)
		must("ep_listen", rpma_ep_listen(pair->peer, test_address(), test_port(), &pair->ep));
}

struct rpma_conn_req *pair_request(struct pair *pair)
{
	struct rpma_conn_cfg *cfg = pair->client_cfg;
	struct rpma_conn_req *req;
	/* An emulated machine needs its time. */
	if (cfg == NULL)
		must("cfg_new", rpma_conn_cfg_new(&cfg));
	must("cfg_set_timeout", rpma_conn_cfg_set_timeout(cfg, 20000));
	must("conn_req_new", rpma_conn_req_new(pair->peer, test_address(), test_port(), cfg, &req));
	if (pair->client_cfg == NULL)
		must("cfg_delete", rpma_conn_cfg_delete(&cfg));
	return req;
}

struct rpma_conn_req *pair_incoming(struct pair *pair)
{
	struct rpma_conn_req *req;
	must("ep_next_conn_req", rpma_ep_next_conn_req(pair->ep, pair->server_cfg, &req));
	return req;
}

void pair_connect(struct pair *pair)
{
	pair_listen(pair);
	struct rpma_conn_req *req = pair_request(pair);
	must("client connect", rpma_conn_req_connect(&req, pair->client_data, &pair->client));
	req = pair_incoming(pair);
	must("server connect", rpma_conn_req_connect(&req, pair->server_data, &pair->server));
	if (next_event(pair->client) != RPMA_CONN_ESTABLISHED || next_event(pair->server) != RPMA_CONN_ESTABLISHED) {
		say("connection", "not established");
		exit(1);
	}
	must("get_cq", rpma_conn_get_cq(pair->client, &pair->client_cq));
	must("get_cq", rpma_conn_get_cq(pair->server, &pair->server_cq));
}

static void receive(struct pair *pair, struct rpma_conn *conn, uint64_t context)
{
	if (pair->small == NULL)
		pair->small = reg(pair->peer, pair->bytes, sizeof(pair->bytes), RPMA_MR_USAGE_RECV);
	must("recv", rpma_recv(conn, pair->small, 0, sizeof(pair->bytes), CONTEXT(context)));
}

void pair_receive(struct pair *pair, uint64_t context)
{
	receive(pair, pair->server, context);
}

void pair_receive_back(struct pair *pair, uint64_t context)
{
	receive(pair, pair->client, context);
}

void pair_delete(struct pair *pair)
{
	struct rpma_conn **conns[] = {&pair->client, &pair->server};
	for (int i = 0; i < 2; i++) {
		if (*conns[i] != NULL)
			rpma_conn_disconnect(*conns[i]);
	}
	for (int i = 0; i < 2; i++)
		must("conn_delete", rpma_conn_delete(conns[i]));
	must("dereg", rpma_mr_dereg(&pair->small));
	must("ep_shutdown", rpma_ep_shutdown(&pair->ep));
	must("cfg_delete", rpma_conn_cfg_delete(&pair->client_cfg));
	must("cfg_delete", rpma_conn_cfg_delete(&pair->server_cfg));
	rpma_peer_delete(&pair->peer);
}

enum rpma_conn_event next_event(struct rpma_conn *conn)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	int fd, ret;
	must("get_event_fd", rpma_conn_get_event_fd(conn, &fd));
	if (!readable(fd, 20000)) {
		say("event", "none in time");
		exit(1);
	}
	ret = rpma_conn_next_event(conn, &event);
	if (ret != 0)
		say_ret("next_event", ret);
	return event;
}

struct ibv_wc take(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	struct timespec pause = {0, 100000};
	for (int i = 0; i < 200000; i++) {
		int ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
		if (ret == 0)
			return wc;
		if (ret != RPMA_E_NO_COMPLETION)
			must("cq_get_wc", ret);
		nanosleep(&pause, NULL);
	}
	say("completion", "none in time");
	exit(1);
}

void say_wc(const char *key, struct rpma_cq *cq)
{
	struct ibv_wc wc = take(cq);
	bool receive = wc.status == IBV_WC_SUCCESS && (wc.opcode & IBV_WC_RECV);
	if (wc.status != IBV_WC_SUCCESS)
		say(key, "%s of %lu", status_name(wc.status), (unsigned long)wc.wr_id);
	else if (receive && (wc.wc_flags & IBV_WC_WITH_IMM))
		say(key, "%s of %lu, %u bytes, imm %#x", opcode_name(wc.opcode), (unsigned long)wc.wr_id, wc.byte_len,
				be32toh(wc.imm_data));
	else if (receive)
		say(key, "%s of %lu, %u bytes", opcode_name(wc.opcode), (unsigned long)wc.wr_id, wc.byte_len);
	else
		say(key, "%s of %lu", opcode_name(wc.opcode), (unsigned long)wc.wr_id);
}

bool readable(int fd, int ms)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	int ret;
	do {
		ret = poll(&one, 1, ms);
	} while (ret < 0 && errno == EINTR);
	return ret == 1;
}

void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void *pages(size_t size, int byte)
{
	void *memory = NULL;
	if (posix_memalign(&memory, 4096, size) != 0)
		exit(1);
	memset(memory, byte, size);
	return memory;
}

struct rpma_mr_local *reg(struct rpma_peer *peer, void *ptr, size_t size, int usage)
{
	struct rpma_mr_local *mr;
	must("mr_reg", rpma_mr_reg(peer, ptr, size, usage, &mr));
	return mr;
}

struct rpma_mr_remote *remote_of(struct rpma_mr_local *mr)
{
	struct rpma_mr_remote *remote;
	size_t size;
	char descriptor[64];
	must("get_descriptor_size", rpma_mr_get_descriptor_size(mr, &size));
	must("get_descriptor", rpma_mr_get_descriptor(mr, descriptor));
	must("from_descriptor", rpma_mr_remote_from_descriptor(descriptor, size, &remote));
	return remote;
}
