/*
 * Eight threads at once: what librpma documents as safe, and the making of requests, of regions and of configurations, which it does not.
 */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 8
#define ROUNDS 10
#define SIZE 4096

static struct rpma_peer *peer;
static struct rpma_conn_cfg *cfg;
static struct rpma_mr_local *server_mr;
static char *server_memory;
static char descriptor[64];
static size_t descriptor_size;
static struct pair pair;
static struct rpma_mr_remote *shared_remote;
static pthread_barrier_t start;

/* Peers, regions and configurations, each thread its own. */
static void *own(void *arg)
{
	char *memory = pages(SIZE, 0);
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		struct rpma_peer *mine = new_peer();
		struct rpma_mr_local *mr = reg(mine, memory, SIZE, 0xff & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
		struct rpma_mr_remote *remote = remote_of(mr);
		struct rpma_peer_cfg *peer_cfg;
		struct rpma_srq *srq;
		must("peer_cfg_new", rpma_peer_cfg_new(&peer_cfg));
		must("srq_new", rpma_srq_new(mine, NULL, &srq));
		must("srq_recv", rpma_srq_recv(srq, mr, 0, 64, NULL));
		must("srq_delete", rpma_srq_delete(&srq));
		must("peer_cfg_delete", rpma_peer_cfg_delete(&peer_cfg));
		must("remote_delete", rpma_mr_remote_delete(&remote));
		must("dereg", rpma_mr_dereg(&mr));
		must("peer_delete", rpma_peer_delete(&mine));
	}
	free(memory);
	return arg;
}

/* Regions and requests of one peer, with one configuration that all of them change. */
static void *together(void *arg)
{
	long number = (long)(intptr_t)arg;
	char *memory = pages(SIZE, 'a' + (int)number);
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		struct rpma_mr_local *mr = reg(peer, memory, SIZE, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST);
		struct rpma_mr_remote *remote;
		struct rpma_conn_req *req;
		struct rpma_conn *conn;
		struct rpma_cq *cq;
		uint32_t size;
		struct ibv_wc wc;
		must("from_descriptor", rpma_mr_remote_from_descriptor(descriptor, descriptor_size, &remote));
		must("set_sq_size", rpma_conn_cfg_set_sq_size(cfg, 10 + number));
		must("get_sq_size", rpma_conn_cfg_get_sq_size(cfg, &size));
		must("req_new", rpma_conn_req_new(peer, test_address(), test_port(), cfg, &req));
		if (i % 3 == 2) {
			must("req_delete", rpma_conn_req_delete(&req));
		} else {
			must("connect", rpma_conn_req_connect(&req, NULL, &conn));
			if (next_event(conn) != RPMA_CONN_ESTABLISHED)
				exit(1);
			must("get_cq", rpma_conn_get_cq(conn, &cq));
			must("write", rpma_write(conn, remote, 64 * number, mr, 0, 64, ON_ERROR, NULL));
			must("flush", rpma_flush(conn, remote, 64 * number, 64, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, CONTEXT(1)));
			wc = take(cq);
			if (wc.status != IBV_WC_SUCCESS || server_memory[64 * number] != memory[0])
				exit(1);
			must("disconnect", rpma_conn_disconnect(conn));
			must("delete", rpma_conn_delete(&conn));
		}
		must("remote_delete", rpma_mr_remote_delete(&remote));
		must("dereg", rpma_mr_dereg(&mr));
	}
	free(memory);
	return arg;
}

/* Accepts what comes until it is told to stop. */
static atomic_bool stop;

static void *serve(void *arg)
{
	static struct rpma_conn *conns[THREADS * ROUNDS];
	int n = 0, fd;
	must("ep_get_fd", rpma_ep_get_fd(pair.ep, &fd));
	while (!atomic_load(&stop)) {
		struct rpma_conn_req *req;
		if (!readable(fd, 50))
			continue;
		must("next_conn_req", rpma_ep_next_conn_req(pair.ep, NULL, &req));
		must("accept", rpma_conn_req_connect(&req, NULL, &conns[n++]));
	}
	for (int i = 0; i < n; i++)
		must("delete", rpma_conn_delete(&conns[i]));
	return arg;
}

/* Posts to one connection, and completions of it. */
static atomic_int taken;

static void *post(void *arg)
{
	long number = (long)(intptr_t)arg;
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc;
		must("write", rpma_write(pair.client, shared_remote, 64 * number, server_mr, SIZE / 2, 64, ALWAYS, CONTEXT(i)));
		/* Whoever's it is. */
		wc = take(pair.client_cq);
		if (wc.status != IBV_WC_SUCCESS)
			exit(1);
		atomic_fetch_add(&taken, 1);
	}
	return arg;
}

static void at_once(const char *what, void *(*run)(void *))
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&start, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	say(what, "done");
}

int main(void)
{
	pthread_t server;
	begin("threads", 240);
	at_once("peers, regions, shared receive queues", own);

	pair_listen(&pair);
	peer = pair.peer;
	server_memory = pages(SIZE, 0);
	server_mr = reg(peer, server_memory, SIZE, 0xff & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	must("get_descriptor", rpma_mr_get_descriptor(server_mr, descriptor));
	must("get_descriptor_size", rpma_mr_get_descriptor_size(server_mr, &descriptor_size));
	must("cfg_new", rpma_conn_cfg_new(&cfg));
	must("set_timeout", rpma_conn_cfg_set_timeout(cfg, 20000));
	pthread_create(&server, NULL, serve, NULL);
	at_once("requests, regions and one configuration", together);
	atomic_store(&stop, true);
	pthread_join(server, NULL);
	must("cfg_delete", rpma_conn_cfg_delete(&cfg));

	must("cfg_new", rpma_conn_cfg_new(&pair.client_cfg));
	must("set_sq_size", rpma_conn_cfg_set_sq_size(pair.client_cfg, 2 * THREADS));
	pair_connect(&pair);
	shared_remote = remote_of(server_mr);
	at_once("operations of one connection", post);
	say("completions", "%d", atomic_load(&taken));
	must("remote_delete", rpma_mr_remote_delete(&shared_remote));
	must("dereg", rpma_mr_dereg(&server_mr));
	pair_delete(&pair);
	free(server_memory);
	say("all", "done");
	return 0;
}
