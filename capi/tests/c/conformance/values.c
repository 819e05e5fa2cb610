/* Words, thresholds, configurations: what needs no device. */
#include "cases.h"

#include <regex.h>

void strings(void)
{
	char key[32];
	for (int ret = RPMA_E_UNKNOWN + 1; ret >= RPMA_E_NOT_SHARED_CHNL - 1; ret--) {
		snprintf(key, sizeof(key), "error %d", ret);
		say(key, "%s", rpma_err_2str(ret));
	}
	say("error 0", "%s", rpma_err_2str(0));
	say("error 1", "%s", rpma_err_2str(1));
	for (int event = -2; event <= RPMA_CONN_UNREACHABLE + 1; event++) {
		snprintf(key, sizeof(key), "event %d", event);
		say(key, "%s", rpma_utils_conn_event_2str((enum rpma_conn_event)event));
	}
}

void thresholds(void)
{
	enum rpma_log_level level;
	char key[32];
	for (int threshold = -1; threshold <= RPMA_LOG_THRESHOLD_MAX; threshold++) {
		for (int wanted = RPMA_LOG_DISABLED - 1; wanted <= RPMA_LOG_LEVEL_DEBUG + 1; wanted++) {
			snprintf(key, sizeof(key), "set %d to %d", threshold, wanted);
			say_ret(key, rpma_log_set_threshold((enum rpma_log_threshold)threshold, (enum rpma_log_level)wanted));
		}
		level = (enum rpma_log_level)42;
		snprintf(key, sizeof(key), "get %d", threshold);
		say_ret(key, rpma_log_get_threshold((enum rpma_log_threshold)threshold, &level));
		snprintf(key, sizeof(key), "got %d", threshold);
		say(key, "%d", (int)level);
	}
	say_ret("get to NULL", rpma_log_get_threshold(RPMA_LOG_THRESHOLD, NULL));
}

static int logged, errors, complete;

static void log_here(enum rpma_log_level level, const char *file_name, const int line_no, const char *function_name,
		const char *message_format, ...)
{
	char message[1000];
	va_list args;
	va_start(args, message_format);
	vsnprintf(message, sizeof(message), message_format, args);
	va_end(args);
	logged++;
	if (level == RPMA_LOG_LEVEL_ERROR)
		errors++;
	if ((file_name == NULL || (line_no > 0 && function_name != NULL)) && message[0] != '\0')
		complete++;
}

/* A call that fails and says so. */
static void provoke(void)
{
	struct ibv_context *context;
	say_ret("provoked", rpma_utils_get_ibv_context("192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
}

void log_function(void)
{
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING));
	say_ret("set", rpma_log_set_function(log_here));
	provoke();
	say("called", "%s", logged > 0 ? "yes" : "no");
	say("with an error", "%s", errors > 0 ? "yes" : "no");
	say("with all that it wants", "%s", complete == logged ? "yes" : "no");
	logged = 0;
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_FATAL));
	provoke();
	say("below the threshold", "%s", logged > 0 ? "called" : "not called");

	/* The default function, to stderr. */
	int ends[2], err = dup(2);
	if (pipe(ends) != 0)
		exit(1);
	say_ret("set the default", rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR));
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_ERROR));
	dup2(ends[1], 2);
	provoke();
	dup2(err, 2);
	close(ends[1]);
	char text[4096] = "";
	ssize_t got = read(ends[0], text, sizeof(text) - 1);
	text[got < 0 ? 0 : got] = '\0';
	char *end = strchr(text, '\n');
	if (end != NULL)
		*end = '\0';
	regex_t line;
	regcomp(&line, "^[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8}\\.[0-9]{6} \\[[0-9]+\\] \\*ERROR\\* +[^ /]+: +[0-9]+: [^ ]+: .+$",
			REG_EXTENDED | REG_NOSUB);
	bool matches = regexec(&line, text, 0, NULL, 0) == 0;
	say("a line on stderr", "%s", matches ? "as it should be" : text);
	regfree(&line);
	logged = 0;
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
	must("set_threshold", rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED));
	close(ends[0]);
	close(err);
}

void conn_cfg(void)
{
	struct rpma_conn_cfg *cfg = NULL;
	int timeout;
	uint32_t cq, rcq, sq, rq;
	bool shared;
	struct rpma_srq *srq = (struct rpma_srq *)&cfg;

	must("new", rpma_conn_cfg_new(&cfg));
	must("get", rpma_conn_cfg_get_timeout(cfg, &timeout));
	must("get", rpma_conn_cfg_get_cq_size(cfg, &cq));
	must("get", rpma_conn_cfg_get_rcq_size(cfg, &rcq));
	must("get", rpma_conn_cfg_get_sq_size(cfg, &sq));
	must("get", rpma_conn_cfg_get_rq_size(cfg, &rq));
	must("get", rpma_conn_cfg_get_compl_channel(cfg, &shared));
	must("get", rpma_conn_cfg_get_srq(cfg, &srq));
	say("defaults", "%d %u %u %u %u %d %d", timeout, cq, rcq, sq, rq, shared, srq != NULL);

	say_ret("timeout -1", rpma_conn_cfg_set_timeout(cfg, -1));
	say_ret("timeout 0", rpma_conn_cfg_set_timeout(cfg, 0));
	must("set", rpma_conn_cfg_set_timeout(cfg, 1234));
	must("set", rpma_conn_cfg_set_cq_size(cfg, 11));
	must("set", rpma_conn_cfg_set_rcq_size(cfg, 12));
	must("set", rpma_conn_cfg_set_sq_size(cfg, 13));
	must("set", rpma_conn_cfg_set_rq_size(cfg, UINT32_MAX));
	must("set", rpma_conn_cfg_set_compl_channel(cfg, true));
	must("get", rpma_conn_cfg_get_timeout(cfg, &timeout));
	must("get", rpma_conn_cfg_get_cq_size(cfg, &cq));
	must("get", rpma_conn_cfg_get_rcq_size(cfg, &rcq));
	must("get", rpma_conn_cfg_get_sq_size(cfg, &sq));
	must("get", rpma_conn_cfg_get_rq_size(cfg, &rq));
	must("get", rpma_conn_cfg_get_compl_channel(cfg, &shared));
	must("get", rpma_conn_cfg_get_srq(cfg, &srq));
	say("after", "%d %u %u %u %u %d %d", timeout, cq, rcq, sq, rq, shared, srq != NULL);

	/* A configuration keeps the handle; it is followed where a connection is made. */
	must("set", rpma_conn_cfg_set_srq(cfg, (struct rpma_srq *)16));
	must("get", rpma_conn_cfg_get_srq(cfg, &srq));
	say("a queue that is not alive", "%s", srq == (struct rpma_srq *)16 ? "that one" : "another");

	say_ret("delete", rpma_conn_cfg_delete(&cfg));
	say("deleted", "%s", cfg == NULL ? "NULL" : "not NULL");
	say_ret("delete again", rpma_conn_cfg_delete(&cfg));
}

void srq_cfg(void)
{
	struct rpma_srq_cfg *cfg = NULL;
	uint32_t rq, rcq;
	must("new", rpma_srq_cfg_new(&cfg));
	must("get", rpma_srq_cfg_get_rq_size(cfg, &rq));
	must("get", rpma_srq_cfg_get_rcq_size(cfg, &rcq));
	say("defaults", "%u %u", rq, rcq);
	must("set", rpma_srq_cfg_set_rq_size(cfg, 7));
	must("set", rpma_srq_cfg_set_rcq_size(cfg, 0));
	must("get", rpma_srq_cfg_get_rq_size(cfg, &rq));
	must("get", rpma_srq_cfg_get_rcq_size(cfg, &rcq));
	say("after", "%u %u", rq, rcq);
	say_ret("delete", rpma_srq_cfg_delete(&cfg));
	say("deleted", "%s", cfg == NULL ? "NULL" : "not NULL");
	say_ret("delete again", rpma_srq_cfg_delete(&cfg));
}

void peer_cfg(void)
{
	struct rpma_peer_cfg *cfg = NULL;
	bool supported;
	size_t size = 0;
	unsigned char bytes[4] = {9, 9, 9, 9};
	char key[32];

	must("new", rpma_peer_cfg_new(&cfg));
	must("get", rpma_peer_cfg_get_direct_write_to_pmem(cfg, &supported));
	say("default", "%d", supported);
	must("size", rpma_peer_cfg_get_descriptor_size(cfg, &size));
	must("descriptor", rpma_peer_cfg_get_descriptor(cfg, bytes));
	say("descriptor", "%zu: %d %d", size, bytes[0], bytes[1]);
	must("set", rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
	must("get", rpma_peer_cfg_get_direct_write_to_pmem(cfg, &supported));
	must("descriptor", rpma_peer_cfg_get_descriptor(cfg, bytes));
	say("declared", "%d, %d %d", supported, bytes[0], bytes[1]);
	must("set", rpma_peer_cfg_set_direct_write_to_pmem(cfg, false));
	must("descriptor", rpma_peer_cfg_get_descriptor(cfg, bytes));
	say("taken back", "%d %d", bytes[0], bytes[1]);
	say_ret("delete", rpma_peer_cfg_delete(&cfg));
	say("deleted", "%s", cfg == NULL ? "NULL" : "not NULL");
	say_ret("delete again", rpma_peer_cfg_delete(&cfg));

	const unsigned char from[] = {0, 1, 2, 255};
	for (size_t i = 0; i < sizeof(from); i++) {
		must("from", rpma_peer_cfg_from_descriptor(&from[i], 1, &cfg));
		must("get", rpma_peer_cfg_get_direct_write_to_pmem(cfg, &supported));
		snprintf(key, sizeof(key), "from %d", from[i]);
		say(key, "%d", supported);
		must("delete", rpma_peer_cfg_delete(&cfg));
	}
	must("from more", rpma_peer_cfg_from_descriptor(from, sizeof(from), &cfg));
	must("delete", rpma_peer_cfg_delete(&cfg));
}
