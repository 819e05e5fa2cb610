/*
 * One end of a conversation with a Rust peer, on librpma: peer server|client ADDRESS PORT
 *
 * Each end gives 4096 bytes of its memory away by its descriptor, and its peer configuration, in the private data. The end that asked
 * for the connection writes a text to offset 100 of the other's memory, flushes it, writes 8 bytes at offset 64 at once, reads both back,
 * and sends "ask" with immediate data 0x01020304. The other looks at its memory and answers "aye" with immediate data 0x05060708.
 */

#include <arpa/inet.h>
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SIZE 4096
#define TEXT "written by one end, read by the other"
#define WORD "8 bytes!"

#define DO(call) do { \
	int ret_ = (call); \
	if (ret_) { \
		fprintf(stderr, "%s: %s\n", #call, rpma_err_2str(ret_)); \
		exit(1); \
	} \
} while (0)

#define NEED(what) do { \
	if (!(what)) { \
		fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what); \
		exit(1); \
	} \
} while (0)

static struct ibv_wc completion(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int ret;
	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		DO(rpma_cq_wait(cq));
	DO(ret);
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "operation %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc;
}

static void event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event got;
	DO(rpma_conn_next_event(conn, &got));
	if (got != wanted) {
		fprintf(stderr, "%s\n", rpma_utils_conn_event_2str(got));
		exit(1);
	}
}

int main(int argc, char *argv[])
{
	NEED(argc == 4);
	int server = !strcmp(argv[1], "server");
	struct ibv_context *context;
	struct rpma_peer *peer;
	struct rpma_mr_local *mr, *mail;
	DO(rpma_utils_get_ibv_context(argv[2], RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
	DO(rpma_peer_new(context, &peer));
	char *memory = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(memory != MAP_FAILED);
	char *letter = memory + SIZE;
	DO(rpma_mr_reg(peer, memory, SIZE, RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
			RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr));
	DO(rpma_mr_reg(peer, letter, SIZE, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mail));

	/* Descriptor and configuration, one behind the other. */
	unsigned char mine[64];
	size_t mr_size, cfg_size;
	struct rpma_peer_cfg *cfg;
	DO(rpma_mr_get_descriptor_size(mr, &mr_size));
	DO(rpma_mr_get_descriptor(mr, mine));
	DO(rpma_peer_cfg_new(&cfg));
	DO(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
	DO(rpma_peer_cfg_get_descriptor_size(cfg, &cfg_size));
	DO(rpma_peer_cfg_get_descriptor(cfg, mine + mr_size));
	DO(rpma_peer_cfg_delete(&cfg));
	struct rpma_conn_private_data data = { .ptr = mine, .len = mr_size + cfg_size };

	struct rpma_ep *ep = NULL;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	if (server) {
		DO(rpma_ep_listen(peer, argv[2], argv[3], &ep));
		puts("listening");
		fflush(stdout);
		DO(rpma_ep_next_conn_req(ep, NULL, &req));
	} else {
		DO(rpma_conn_req_new(peer, argv[2], argv[3], NULL, &req));
	}
	DO(rpma_conn_req_recv(req, mail, 0, 8, (void *)1));
	DO(rpma_conn_req_connect(&req, &data, &conn));
	event(conn, RPMA_CONN_ESTABLISHED);

	/* The other end's: two lengths, then descriptor and configuration. */
	struct rpma_conn_private_data theirs;
	struct rpma_mr_remote *remote;
	DO(rpma_conn_get_private_data(conn, &theirs));
	unsigned char *bytes = theirs.ptr;
	NEED(theirs.len >= 2 && theirs.len >= 2 + bytes[0] + bytes[1]);
	DO(rpma_mr_remote_from_descriptor(bytes + 2, bytes[0], &remote));
	DO(rpma_peer_cfg_from_descriptor(bytes + 2 + bytes[0], bytes[1], &cfg));
	bool direct;
	DO(rpma_peer_cfg_get_direct_write_to_pmem(cfg, &direct));
	NEED(direct);
	DO(rpma_conn_apply_remote_peer_cfg(conn, cfg));
	DO(rpma_peer_cfg_delete(&cfg));
	size_t size;
	int flush_types;
	DO(rpma_mr_remote_get_size(remote, &size));
	DO(rpma_mr_remote_get_flush_type(remote, &flush_types));
	NEED(size == SIZE && (flush_types & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY));

	struct rpma_cq *cq;
	DO(rpma_conn_get_cq(conn, &cq));
	struct ibv_wc wc;
	if (server) {
		wc = completion(cq);
		NEED(wc.opcode == IBV_WC_RECV && wc.wr_id == 1 && wc.byte_len == 3 && !memcmp(letter, "ask", 3));
		NEED((wc.wc_flags & IBV_WC_WITH_IMM) && ntohl(wc.imm_data) == 0x01020304);
		NEED(!memcmp(memory + 100, TEXT, strlen(TEXT)) && !memcmp(memory + 64, WORD, 8));
		memcpy(letter + 64, "aye", 3);
		DO(rpma_send_with_imm(conn, mail, 64, 3, RPMA_F_COMPLETION_ALWAYS, 0x05060708, (void *)2));
		wc = completion(cq);
		NEED(wc.opcode == IBV_WC_SEND && wc.wr_id == 2);
		event(conn, RPMA_CONN_CLOSED);
	} else {
		memcpy(memory + 100, TEXT, strlen(TEXT));
		DO(rpma_write(conn, remote, 100, mr, 100, strlen(TEXT), RPMA_F_COMPLETION_ON_ERROR, NULL));
		DO(rpma_flush(conn, remote, 100, strlen(TEXT), RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, (void *)3));
		wc = completion(cq);
		NEED(wc.wr_id == 3);
		DO(rpma_atomic_write(conn, remote, 64, WORD, RPMA_F_COMPLETION_ALWAYS, (void *)4));
		wc = completion(cq);
		NEED(wc.wr_id == 4);
		DO(rpma_read(conn, mr, 0, remote, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, (void *)5));
		wc = completion(cq);
		NEED(wc.opcode == IBV_WC_RDMA_READ && !memcmp(memory + 100, TEXT, strlen(TEXT)) && !memcmp(memory + 64, WORD, 8));
		memcpy(letter + 64, "ask", 3);
		DO(rpma_send_with_imm(conn, mail, 64, 3, RPMA_F_COMPLETION_ON_ERROR, 0x01020304, NULL));
		wc = completion(cq);
		NEED(wc.opcode == IBV_WC_RECV && wc.wr_id == 1 && !memcmp(letter, "aye", 3));
		NEED((wc.wc_flags & IBV_WC_WITH_IMM) && ntohl(wc.imm_data) == 0x05060708);
		DO(rpma_conn_disconnect(conn));
		event(conn, RPMA_CONN_CLOSED);
	}
	DO(rpma_mr_remote_delete(&remote));
	DO(rpma_conn_delete(&conn));
	if (ep)
		DO(rpma_ep_shutdown(&ep));
	DO(rpma_mr_dereg(&mail));
	DO(rpma_mr_dereg(&mr));
	DO(rpma_peer_delete(&peer));
	puts("done");
	return 0;
}
