/*
 * Two processes, each on a library of its own: every operation in both directions.
 *
 *   cross server    waits for a client, then ends
 *   cross client
 *
 * With RPMA_TEST_DAX the server's memory is persistent, and is flushed as such. Descriptors travel as private data.
 */
#include "common.h"

#include <sys/mman.h>

#define SIZE (1 << 20)
#define MESSAGE (SIZE / 2)

/* Where things go in the other side's memory. */
#define WRITTEN 0
#define ATOMIC 1024
#define IMMEDIATE 2048

static bool iwarp, persistent;
static char *memory;
static struct rpma_peer *peer;
static struct rpma_mr_local *local;
static struct rpma_mr_remote *remote;
static struct rpma_conn *conn;
static struct rpma_cq *cq;

/* What this side tells the other of its memory and of itself. */
static struct rpma_conn_private_data introduction(char *bytes)
{
	struct rpma_conn_private_data data = {bytes, 0};
	struct rpma_peer_cfg *cfg;
	size_t size;
	must("get_descriptor", rpma_mr_get_descriptor(local, bytes));
	must("get_descriptor_size", rpma_mr_get_descriptor_size(local, &size));
	must("peer_cfg_new", rpma_peer_cfg_new(&cfg));
	must("set_direct_write", rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
	must("peer_cfg_get_descriptor", rpma_peer_cfg_get_descriptor(cfg, bytes + size));
	must("peer_cfg_delete", rpma_peer_cfg_delete(&cfg));
	data.len = size + 1;
	return data;
}

static void introduced(void)
{
	struct rpma_conn_private_data data;
	struct rpma_peer_cfg *cfg;
	size_t size;
	int types;
	must("get_private_data", rpma_conn_get_private_data(conn, &data));
	must("get_descriptor_size", rpma_mr_get_descriptor_size(local, &size));
	say("private data", "%s", data.len >= size + 1 ? "all" : "too few");
	must("from_descriptor", rpma_mr_remote_from_descriptor(data.ptr, size, &remote));
	must("peer_cfg_from_descriptor", rpma_peer_cfg_from_descriptor((char *)data.ptr + size, 1, &cfg));
	must("apply", rpma_conn_apply_remote_peer_cfg(conn, cfg));
	must("peer_cfg_delete", rpma_peer_cfg_delete(&cfg));
	must("get_size", rpma_mr_remote_get_size(remote, &size));
	must("get_flush_type", rpma_mr_remote_get_flush_type(remote, &types));
	persistent = types & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	say("their memory", "%zu bytes", size);
}

static void prepare(bool dax)
{
	int usage = 0xff & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	size_t mapped = 1 << 21;
	const char *path = getenv("RPMA_TEST_DAX");
	iwarp = getenv("RPMA_TEST_DEV") != NULL && strcmp(getenv("RPMA_TEST_DEV"), "siw") == 0;
	peer = new_peer();
	if (dax && path != NULL) {
		int fd = open(path, O_RDWR);
		memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (memory == MAP_FAILED) {
			perror(path);
			exit(1);
		}
		memset(memory, '.', SIZE);
		usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
	} else {
		memory = pages(SIZE, '.');
	}
	local = reg(peer, memory, SIZE, usage);
}

static void completed(const char *key)
{
	struct ibv_wc wc = take(cq);
	say(key, "%s of %lu", status_name(wc.status), (unsigned long)wc.wr_id);
}

static void message_came(const char *key)
{
	struct ibv_wc wc = take(cq);
	bool imm = wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_WITH_IMM);
	say(key, "%s of %lu, %u bytes, imm %#x", status_name(wc.status), (unsigned long)wc.wr_id, wc.byte_len,
			imm ? be32toh(wc.imm_data) : 0);
}

/* Everything that one side can do to the other's memory. */
static void operate(const char *who)
{
	char *mine = memory + MESSAGE / 2;
	size_t offset = mine - memory;
	char bytes[8];
	snprintf(mine, 64, "written by the %s", who);
	must("write", rpma_write(conn, remote, WRITTEN, local, offset, 64, ON_ERROR, CONTEXT(1)));
	must("flush", rpma_flush(conn, remote, WRITTEN, 64, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(2)));
	completed("write and flush");
	snprintf(bytes, sizeof(bytes), "%.7s", who);
	must("atomic_write", rpma_atomic_write(conn, remote, ATOMIC, bytes, ALWAYS, CONTEXT(3)));
	completed("atomic write");
	must("flush", rpma_flush(conn, remote, ATOMIC, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(4)));
	completed("flush of 8 bytes");
	if (persistent) {
		must("flush", rpma_flush(conn, remote, 0, SIZE, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS, CONTEXT(5)));
		completed("persistent flush");
	}
	must("read", rpma_read(conn, local, offset + 1024, remote, WRITTEN, 64, ALWAYS, CONTEXT(6)));
	completed("read");
	say("read back", "%s", mine + 1024);
	must("read", rpma_read(conn, local, offset + 1024, remote, ATOMIC, 8, ALWAYS, CONTEXT(7)));
	completed("read of 8 bytes");
	say("read back then", "%s", mine + 1024);
	if (!iwarp) {
		strcpy(mine, "with imm");
		must("write_with_imm", rpma_write_with_imm(conn, remote, IMMEDIATE, local, offset, 9, ALWAYS, 0xcafe, CONTEXT(8)));
		completed("write with imm");
		must("send_with_imm", rpma_send_with_imm(conn, local, offset, 9, ALWAYS, 0xbeef, CONTEXT(9)));
		completed("send with imm");
	}
	snprintf(mine, 64, "a message of the %s", who);
	must("send", rpma_send(conn, local, offset, 64, ALWAYS, CONTEXT(10)));
	completed("send");
	must("send", rpma_send(conn, NULL, 0, 0, ALWAYS, CONTEXT(11)));
	completed("send of no bytes");
}

static void post_receives(struct rpma_conn_req *req)
{
	for (int i = 0; i < (iwarp ? 2 : 4); i++)
		must("req_recv", rpma_conn_req_recv(req, local, MESSAGE + 64 * i, 64, CONTEXT(100 + i)));
}

/* What the other side has done. */
static void look(void)
{
	int last = 0;
	if (!iwarp) {
		message_came("write with imm came");
		message_came("send with imm came");
		say("the bytes", "%s, %s", memory + IMMEDIATE, memory + MESSAGE + 64);
		last = 2;
	}
	message_came("message came");
	say("the message", "%s", memory + MESSAGE + 64 * last);
	message_came("message of no bytes came");
	say("written here", "%s, %.8s", memory + WRITTEN, memory + ATOMIC);
}

static void established(struct rpma_conn_req *req, char *bytes)
{
	struct rpma_conn_private_data data = introduction(bytes);
	post_receives(req);
	must("connect", rpma_conn_req_connect(&req, &data, &conn));
	say("event", "%s", event_name(next_event(conn)));
	must("get_cq", rpma_conn_get_cq(conn, &cq));
	introduced();
}

static void finish(void)
{
	must("remote_delete", rpma_mr_remote_delete(&remote));
	must("conn_delete", rpma_conn_delete(&conn));
	must("dereg", rpma_mr_dereg(&local));
	must("peer_delete", rpma_peer_delete(&peer));
}

int main(int argc, char *argv[])
{
	bool server = argc == 2 && strcmp(argv[1], "server") == 0;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_ep *ep;
	char bytes[64];
	begin(server ? "cross_server" : "cross_client", 120);
	prepare(server);
	must("cfg_new", rpma_conn_cfg_new(&cfg));
	must("set_timeout", rpma_conn_cfg_set_timeout(cfg, 20000));
	if (server) {
		must("listen", rpma_ep_listen(peer, test_address(), test_port(), &ep));
		fprintf(stderr, "listening\n");
		must("next_conn_req", rpma_ep_next_conn_req(ep, cfg, &req));
		established(req, bytes);
		look();
		operate("server");
		say("end", "%s", event_name(next_event(conn)));
		must("disconnect", rpma_conn_disconnect(conn));
		must("shutdown", rpma_ep_shutdown(&ep));
	} else {
		must("req_new", rpma_conn_req_new(peer, test_address(), test_port(), cfg, &req));
		established(req, bytes);
		operate("client");
		look();
		must("disconnect", rpma_conn_disconnect(conn));
		say("end", "%s", event_name(next_event(conn)));
	}
	must("cfg_delete", rpma_conn_cfg_delete(&cfg));
	finish();
	say("all", "done");
	return 0;
}
