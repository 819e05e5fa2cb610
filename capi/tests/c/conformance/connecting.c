/* Requests, endpoints, connections and their events. */
#include "cases.h"

static void say_event(const char *key, struct rpma_conn *conn)
{
	say(key, "%s", event_name(next_event(conn)));
}

/* KEY = how many private data there are, and how they start: what a transport pads them with is its own affair. */
static void say_data(const char *key, const struct rpma_conn_private_data *data, size_t sent)
{
	if (data->ptr == NULL || data->len == 0)
		say(key, "%s, %u", data->ptr == NULL ? "NULL" : "not NULL", data->len);
	else
		say(key, "%s, %.*s", data->len >= sent ? "all" : "too few", (int)sent, (const char *)data->ptr);
}

void connecting(void)
{
	struct pair pair = {0};
	uint32_t client, server;
	struct rpma_cq *cq = NULL, *rcq = (struct rpma_cq *)&pair;
	int fd = -1;
	pair_connect(&pair);
	must("get_qp_num", rpma_conn_get_qp_num(pair.client, &client));
	must("get_qp_num", rpma_conn_get_qp_num(pair.server, &server));
	say("queue pairs", "%s", client != 0 && server != 0 && client != server ? "two" : "not two");
	must("get_cq", rpma_conn_get_cq(pair.client, &cq));
	say("the CQ", "%s", cq == pair.client_cq && cq != NULL ? "the same" : "another");
	must("get_rcq", rpma_conn_get_rcq(pair.client, &rcq));
	say("the receive CQ", "%s", rcq == NULL ? "NULL" : "not NULL");
	say_ret("the shared fd", rpma_conn_get_compl_fd(pair.client, &fd));
	say("untouched", "%d", fd);
	say_ret("disconnect", rpma_conn_disconnect(pair.client));
	/* The answer to it is the other side's own. */
	say_event("server", pair.server);
	say_ret("disconnect the other side", rpma_conn_disconnect(pair.server));
	say_event("client", pair.client);
	say_ret("delete", rpma_conn_delete(&pair.client));
	say("deleted", "%s", pair.client == NULL ? "NULL" : "not NULL");
	say_ret("delete again", rpma_conn_delete(&pair.client));
	say_ret("delete the other side", rpma_conn_delete(&pair.server));
	/* The endpoint goes on. */
	pair_connect(&pair);
	say("once more", "connected");
	pair_delete(&pair);
}

void private_data(void)
{
	struct rpma_conn_private_data request = {(void *)"request", 8}, answer = {(void *)"the answer", 11}, got = {0};
	struct pair pair = {.client_data = &request, .server_data = &answer};
	struct rpma_conn_req *outgoing, *incoming;
	pair_listen(&pair);
	outgoing = pair_request(&pair);
	must("req_get_private_data", rpma_conn_req_get_private_data(outgoing, &got));
	say_data("of an outgoing request", &got, 0);
	must("connect", rpma_conn_req_connect(&outgoing, &request, &pair.client));
	must("get_private_data", rpma_conn_get_private_data(pair.client, &got));
	say_data("before it is established", &got, 0);
	incoming = pair_incoming(&pair);
	must("req_get_private_data", rpma_conn_req_get_private_data(incoming, &got));
	say_data("of an incoming request", &got, 8);
	const void *before = got.ptr;
	must("connect", rpma_conn_req_connect(&incoming, &answer, &pair.server));
	must("get_private_data", rpma_conn_get_private_data(pair.server, &got));
	say_data("of the server's connection", &got, 8);
	say("the memory", "%s", before == got.ptr ? "the same" : "another");
	say_event("client", pair.client);
	say_event("server", pair.server);
	must("get_private_data", rpma_conn_get_private_data(pair.client, &got));
	say_data("of the client's connection", &got, 11);
	pair_delete(&pair);

	struct pair without = {0};
	pair_connect(&without);
	must("get_private_data", rpma_conn_get_private_data(without.server, &got));
	say("none sent", "%s", got.len == 0 || ((char *)got.ptr)[0] == 0 ? "none there" : "some there");
	pair_delete(&without);
}

void long_private_data(void)
{
	static char bytes[256];
	struct pair pair = {0};
	/* Soft-iWARP accepts 255 and loses them. */
	const uint8_t sizes[] = {56, 57, 196};
	char key[40];
	pair_listen(&pair);
	for (size_t i = 0; i < sizeof(sizes); i++) {
		struct rpma_conn_private_data data = {bytes, sizes[i]};
		struct rpma_conn_req *req = pair_request(&pair);
		int ret = rpma_conn_req_connect(&req, &data, &pair.client);
		snprintf(key, sizeof(key), "%u bytes", sizes[i]);
		say_ret(key, ret);
		say(key, "%s", req == NULL ? "used up" : "still there");
		if (ret == 0) {
			req = pair_incoming(&pair);
			must("req_delete", rpma_conn_req_delete(&req));
			must("conn_delete", rpma_conn_delete(&pair.client));
		}
	}
	pair_delete(&pair);
}

void rejecting(void)
{
	struct pair pair = {0};
	struct rpma_conn_req *req;
	pair_listen(&pair);
	req = pair_request(&pair);
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
	req = pair_incoming(&pair);
	say_ret("req_delete", rpma_conn_req_delete(&req));
	say("deleted", "%s", req == NULL ? "NULL" : "not NULL");
	say_ret("req_delete again", rpma_conn_req_delete(&req));
	say_event("client", pair.client);
	must("delete", rpma_conn_delete(&pair.client));

	/* One that is not sent is only forgotten. */
	req = pair_request(&pair);
	say_ret("delete an outgoing one", rpma_conn_req_delete(&req));
	say("deleted it", "%s", req == NULL ? "NULL" : "not NULL");
	pair_connect(&pair);
	say("after that", "connected");
	pair_delete(&pair);
}

/* How many connection identifiers the kernel holds for this process. */
static int ids(void)
{
	char line[512], mine[32];
	int n = 0;
	FILE *list = popen("rdma resource show cm_id", "r");
	snprintf(mine, sizeof(mine), " pid %d ", (int)getpid());
	while (list != NULL && fgets(line, sizeof(line), list) != NULL) {
		if (strstr(line, mine) != NULL)
			n++;
	}
	if (list == NULL || pclose(list) != 0)
		return -1000;
	return n;
}

void rejects_leave_nothing(void)
{
	struct pair pair = {0};
	pair_listen(&pair);
	int before = ids();
	for (int i = 0; i < 10; i++) {
		struct rpma_conn_req *req = pair_request(&pair);
		must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
		req = pair_incoming(&pair);
		must("req_delete", rpma_conn_req_delete(&req));
		next_event(pair.client);
		must("delete", rpma_conn_delete(&pair.client));
	}
	say("left", "%d", ids() - before);
	pair_delete(&pair);
}

void nobody_listens(void)
{
	struct pair pair = {0};
	struct rpma_conn_req *req;
	pair.peer = new_peer();
	req = pair_request(&pair);
	/* iWARP may know at once. */
	int ret = rpma_conn_req_connect(&req, NULL, &pair.client);
	say_ret("connect", ret);
	if (ret == 0)
		say_event("client", pair.client);
	pair_delete(&pair);
}

void no_such_name(void)
{
	struct rpma_peer *peer = new_peer();
	struct rpma_conn_req *req = NULL;
	struct rpma_ep *ep = NULL;
	say_ret("request", rpma_conn_req_new(peer, "no such name", "7204", NULL, &req));
	say_ret("request to no service", rpma_conn_req_new(peer, test_address(), "no such service", NULL, &req));
	say_ret("listen", rpma_ep_listen(peer, "no such name", "7204", &ep));
	say_ret("listen on no service", rpma_ep_listen(peer, test_address(), "no such service", &ep));
	say_ret("listen elsewhere", rpma_ep_listen(peer, "192.0.2.1", "7204", &ep));
	say("untouched", "%s", req == NULL && ep == NULL ? "yes" : "no");
	must("peer_delete", rpma_peer_delete(&peer));
}

void no_way_there(void)
{
	/* An address of the same network that nobody has. */
	const char *nobody = getenv("RPMA_TEST_NOBODY");
	struct rpma_peer *peer = new_peer();
	struct rpma_conn_req *req = NULL;
	struct rpma_conn_cfg *cfg;
	must("cfg_new", rpma_conn_cfg_new(&cfg));
	must("set_timeout", rpma_conn_cfg_set_timeout(cfg, 500));
	say_ret("request", rpma_conn_req_new(peer, nobody ? nobody : "192.168.77.99", "7204", cfg, &req));
	say("untouched", "%s", req == NULL ? "yes" : "no");
	must("cfg_delete", rpma_conn_cfg_delete(&cfg));
	must("peer_delete", rpma_peer_delete(&peer));
}

void used_up(void)
{
	struct pair pair = {0};
	struct rpma_conn_private_data none = {(void *)"x", 0};
	struct rpma_conn_private_data null = {NULL, 1};
	struct rpma_conn_req *req;
	pair_listen(&pair);
	req = pair_request(&pair);
	say_ret("nowhere to put the connection", rpma_conn_req_connect(&req, NULL, NULL));
	say("the request", "%s", req == NULL ? "used up" : "still there");
	must("req_delete", rpma_conn_req_delete(&req));
	req = pair_request(&pair);
	say_ret("private data of no bytes", rpma_conn_req_connect(&req, &none, &pair.client));
	say("the request then", "%s", req == NULL ? "used up" : "still there");
	must("req_delete", rpma_conn_req_delete(&req));
	req = pair_request(&pair);
	say_ret("private data at NULL", rpma_conn_req_connect(&req, &null, &pair.client));
	say("the request after that", "%s", req == NULL ? "used up" : "still there");
	must("req_delete", rpma_conn_req_delete(&req));
	say("untouched", "%s", pair.client == NULL ? "yes" : "no");
	pair_connect(&pair);
	say("after all", "connected");
	pair_delete(&pair);
}

/* An accept that fails must tell the other side. */
void bad_accept(void)
{
	struct rpma_conn_private_data none = {(void *)"x", 0};
	struct pair pair = {0};
	struct rpma_conn_req *req;
	int fd;
	pair_listen(&pair);
	req = pair_request(&pair);
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
	req = pair_incoming(&pair);
	say_ret("accept", rpma_conn_req_connect(&req, &none, &pair.server));
	say("the request", "%s", req == NULL ? "used up" : "still there");
	must("event_fd", rpma_conn_get_event_fd(pair.client, &fd));
	if (readable(fd, 3000))
		say_event("client", pair.client);
	else
		say("client", "hears nothing");
	pair_delete(&pair);
}

/* Queues that no device has: the request is refused and the endpoint goes on. */
void bad_queues(void)
{
	struct pair pair = {0};
	struct rpma_conn_req *req = NULL;
	int fd;
	must("cfg_new", rpma_conn_cfg_new(&pair.server_cfg));
	must("set_sq_size", rpma_conn_cfg_set_sq_size(pair.server_cfg, 1000000000));
	pair_listen(&pair);
	req = pair_request(&pair);
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
	say_ret("next_conn_req", rpma_ep_next_conn_req(pair.ep, pair.server_cfg, &req));
	say("untouched", "%s", req == NULL ? "yes" : "no");
	must("event_fd", rpma_conn_get_event_fd(pair.client, &fd));
	if (readable(fd, 3000))
		say_event("client", pair.client);
	else
		say("client", "hears nothing");
	must("delete", rpma_conn_delete(&pair.client));
	say_ret("outgoing", rpma_conn_req_new(pair.peer, test_address(), test_port(), pair.server_cfg, &req));
	must("cfg_delete", rpma_conn_cfg_delete(&pair.server_cfg));
	pair_connect(&pair);
	say("after that", "connected");
	pair_delete(&pair);
}

void endpoints(void)
{
	struct pair pair = {0};
	struct rpma_ep *other = NULL;
	int fd = -1;
	pair_listen(&pair);
	say_ret("get_fd", rpma_ep_get_fd(pair.ep, &fd));
	say("fd", "%s", fd >= 0 && !(fcntl(fd, F_GETFL) & O_NONBLOCK) ? "blocking" : "not blocking");
	say_ret("the same port", rpma_ep_listen(pair.peer, test_address(), test_port(), &other));
	say("untouched", "%s", other == NULL ? "yes" : "no");
	pair_connect(&pair);
	say_ret("shutdown", rpma_ep_shutdown(&pair.ep));
	say("shut down", "%s", pair.ep == NULL ? "NULL" : "not NULL");
	say_ret("shutdown again", rpma_ep_shutdown(&pair.ep));
	/* The connection lives on. */
	pair_receive(&pair, 1);
	must("send", rpma_send(pair.client, NULL, 0, 0, ALWAYS, CONTEXT(2)));
	say_wc("received", pair.server_cq);
	pair_delete(&pair);
	pair_listen(&pair);
	say("listen again", "0");
	pair_delete(&pair);
}

/* The endpoint goes while a request that was taken waits. */
void endpoint_first(void)
{
	struct pair pair = {0};
	struct rpma_conn_req *req;
	pair_listen(&pair);
	req = pair_request(&pair);
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
	req = pair_incoming(&pair);
	say_ret("shutdown", rpma_ep_shutdown(&pair.ep));
	say_ret("accept", rpma_conn_req_connect(&req, NULL, &pair.server));
	say_event("client", pair.client);
	say_event("server", pair.server);
	pair_delete(&pair);
}

void not_blocking(void)
{
	struct pair pair = {0};
	struct rpma_conn_req *req = NULL;
	enum rpma_conn_event event = (enum rpma_conn_event)42;
	int fd;
	pair_listen(&pair);
	must("ep_get_fd", rpma_ep_get_fd(pair.ep, &fd));
	set_nonblocking(fd);
	say_ret("no request", rpma_ep_next_conn_req(pair.ep, NULL, &req));
	say("untouched", "%s", req == NULL ? "yes" : "no");
	req = pair_request(&pair);
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.client));
	say("a request", "%s", readable(fd, 20000) ? "readable" : "none in time");
	req = pair_incoming(&pair);
	must("connect", rpma_conn_req_connect(&req, NULL, &pair.server));
	must("event_fd", rpma_conn_get_event_fd(pair.server, &fd));
	say("event fd", "%s", !(fcntl(fd, F_GETFL) & O_NONBLOCK) ? "blocking" : "not blocking");
	say_event("client", pair.client);
	say_event("server", pair.server);
	set_nonblocking(fd);
	say_ret("no event", rpma_conn_next_event(pair.server, &event));
	say("untouched event", "%s", event == 42 ? "yes" : "no");
	must("disconnect", rpma_conn_disconnect(pair.client));
	say_event("an event", pair.server);
	pair_delete(&pair);
}

/* The end of the time-wait state is another CLOSED. */
void twice_closed(void)
{
	struct pair pair = {0};
	pair_connect(&pair);
	must("disconnect", rpma_conn_disconnect(pair.client));
	say_event("server", pair.server);
	say_ret("disconnect", rpma_conn_disconnect(pair.server));
	pair_delete(&pair);
}
