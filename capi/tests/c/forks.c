/* A child that uses the library before its parent does, and children of a parent that uses it. */
#include "common.h"

#include <sys/wait.h>

static void wait_for(const char *key, pid_t child)
{
	int status;
	waitpid(child, &status, 0);
	say(key, "%s", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "well" : "badly");
}

int main(void)
{
	struct pair pair = {0};
	begin("forks", 60);
	pid_t child = fork();
	if (child == 0) {
		pair_connect(&pair);
		pair_delete(&pair);
		_exit(0);
	}
	wait_for("a child that uses it first ends", child);
	pair_connect(&pair);
	pair_receive(&pair, 1);
	child = fork();
	if (child == 0)
		_exit(rpma_err_2str(RPMA_E_INVAL) == NULL);
	wait_for("a child that does not end", child);
	child = fork();
	if (child == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	wait_for("a child that runs another program ends", child);
	must("send", rpma_send(pair.client, NULL, 0, 0, ALWAYS, CONTEXT(2)));
	say_wc("sent", pair.client_cq);
	say_wc("received", pair.server_cq);
	pair_delete(&pair);
	return 0;
}
