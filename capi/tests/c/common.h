/*
 * What the test programs share. They print one line "KEY = VALUE" for each thing they find, the same on every run, so that the output with
 * one library can be compared with that with another. What must work to get anywhere ends the program where it does not.
 */
#ifndef COMMON_H
#define COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <librpma.h>

/* The part of all keys before the point. */
extern const char *current_case;

/* Starts a case, which ends the program if it takes longer than so many seconds; RPMA_TEST_PATIENCE says otherwise. */
void begin(const char *name, unsigned patience);

/* The address of the device under test, from RPMA_TEST_ADDR. */
const char *test_address(void);

/* A port that nobody else uses while the tests run. */
const char *test_port(void);

/* KEY = the words given */
void say(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* KEY = the name of the error number */
void say_ret(const char *key, int ret);

/* Ends the program unless ret is 0. */
void must(const char *what, int ret);

/* The name of an error number, status, opcode, event. */
const char *ret_name(int ret);
const char *status_name(enum ibv_wc_status status);
const char *opcode_name(enum ibv_wc_opcode opcode);
const char *event_name(enum rpma_conn_event event);

/* A peer on the device under test. */
struct rpma_peer *new_peer(void);

/* Two sides that are connected, and what they are made of; zeroed first, then made as asked for. */
struct pair {
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct rpma_conn_cfg *client_cfg;
	struct rpma_conn_cfg *server_cfg;
	const struct rpma_conn_private_data *client_data;
	const struct rpma_conn_private_data *server_data;
	struct rpma_conn *client;
	struct rpma_conn *server;
	struct rpma_cq *client_cq;
	struct rpma_cq *server_cq;
	struct rpma_mr_local *small;
	char bytes[64];
};

/* Makes the peer and the endpoint, where they are not made yet. */
void pair_listen(struct pair *pair);

/* A request of the client, and what of it came to the server. */
struct rpma_conn_req *pair_request(struct pair *pair);
struct rpma_conn_req *pair_incoming(struct pair *pair);

/* Connects both. */
void pair_connect(struct pair *pair);

/* Posts a receive of the server's, for a small message. */
void pair_receive(struct pair *pair, uint64_t context);
/* The same of the client's. */
void pair_receive_back(struct pair *pair, uint64_t context);

/* Closes both, and deletes what there is. */
void pair_delete(struct pair *pair);

/* The next event of a connection, within 20 s. */
enum rpma_conn_event next_event(struct rpma_conn *conn);

/* KEY = what the next completion is, within 20 s. */
struct ibv_wc take(struct rpma_cq *cq);
void say_wc(const char *key, struct rpma_cq *cq);

/* Is there anything to read within so many ms? */
bool readable(int fd, int ms);
void set_nonblocking(int fd);

/* Memory that starts on a page, filled with a byte; and registered. */
void *pages(size_t size, int byte);
struct rpma_mr_local *reg(struct rpma_peer *peer, void *ptr, size_t size, int usage);
/* What the other side makes of a region. */
struct rpma_mr_remote *remote_of(struct rpma_mr_local *mr);

#define ALWAYS RPMA_F_COMPLETION_ALWAYS
#define ON_ERROR RPMA_F_COMPLETION_ON_ERROR
#define CONTEXT(n) ((const void *)(uintptr_t)(n))

#endif
