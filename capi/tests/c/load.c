/*
 * What loading the library does to a process, and what becomes of it over dlclose(). This program is not linked with it.
 *
 *   load nothing LIBRARY    loads it, and says what has changed
 *   load log LIBRARY        loads it, and says under which name the program's own messages go to syslog
 *   load again LIBRARY      loads, uses and unloads it, several times
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <librpma.h>

static const char *library, *mode;

#define say(key, ...) (printf("load_%s.%s = ", mode, key), printf(__VA_ARGS__), printf("\n"))

static void must(const char *what, int ret)
{
	if (ret != 0) {
		say(what, "failed: %d", ret);
		exit(1);
	}
}

static void *load(void)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return handle;
}

#define USE(handle, name) __typeof__(&name) use_##name = (__typeof__(&name))dlsym(handle, #name)

/* What of a process a library could touch. */
struct state {
	struct {
		void (*handler)(int);
		int flags;
	} signals[65];
	char mask[65];
	struct rlimit limits[RLIM_NLIMITS];
	struct itimerval timers[3];
	mode_t umask;
	int threads, fds, environment, rounding, priority;
	char locale[256], folder[256], name[32];
};

static int entries(const char *path)
{
	DIR *folder = opendir(path);
	int n = 0;
	while (folder != NULL && readdir(folder) != NULL)
		n++;
	closedir(folder);
	return n;
}

extern char **environ;

static void look(struct state *state)
{
	memset(state, 0, sizeof(*state));
	for (int i = 1; i < 65; i++) {
		struct sigaction action = {0};
		sigaction(i, NULL, &action);
		state->signals[i].handler = action.sa_handler;
		state->signals[i].flags = action.sa_flags;
	}
	sigset_t mask;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i < 65; i++)
		state->mask[i] = sigismember(&mask, i);
	for (int i = 0; i < RLIM_NLIMITS; i++)
		getrlimit(i, &state->limits[i]);
	for (int i = 0; i < 3; i++) {
		getitimer(i, &state->timers[i]);
		/* It runs. */
		state->timers[i].it_value.tv_usec = state->timers[i].it_value.tv_sec = 0;
	}
	state->umask = umask(0);
	umask(state->umask);
	state->threads = entries("/proc/self/task");
	state->fds = entries("/proc/self/fd");
	for (char **entry = environ; *entry != NULL; entry++)
		state->environment += strlen(*entry) + 1;
	state->rounding = fegetround();
	state->priority = getpriority(PRIO_PROCESS, 0);
	snprintf(state->locale, sizeof(state->locale), "%s", setlocale(LC_ALL, NULL));
	if (getcwd(state->folder, sizeof(state->folder)) == NULL)
		exit(1);
	FILE *comm = fopen("/proc/self/comm", "r");
	if (comm == NULL || fgets(state->name, sizeof(state->name), comm) == NULL)
		exit(1);
	fclose(comm);
}

#define SAME(field) say(#field, "%s", memcmp(&before.field, &after.field, sizeof(before.field)) == 0 ? "the same" : "changed")

static void nothing(void)
{
	static struct state before, after;
	/* What the libraries below do when they are loaded is their affair. */
	if (dlopen("librdmacm.so.1", RTLD_NOW) == NULL)
		exit(1);
	look(&before);
	load();
	look(&after);
	SAME(signals);
	SAME(mask);
	SAME(limits);
	SAME(timers);
	SAME(umask);
	SAME(threads);
	SAME(fds);
	SAME(environment);
	SAME(rounding);
	SAME(priority);
	SAME(locale);
	SAME(folder);
	SAME(name);
}

static void in_syslog(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
	char text[512];
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		perror("/dev/log");
		exit(1);
	}
	openlog("the-host-program", 0, LOG_USER);
	load();
	syslog(LOG_NOTICE, "hello");
	struct pollfd one = {.fd = fd, .events = POLLIN};
	ssize_t got = poll(&one, 1, 5000) == 1 ? recv(fd, text, sizeof(text) - 1, 0) : 0;
	text[got < 0 ? 0 : got] = '\0';
	unlink("/dev/log");
	say("the name", "%s", strstr(text, "the-host-program") != NULL ? "the program's own" : "another");
}

static void use_once(void)
{
	void *handle = load();
	USE(handle, rpma_err_2str);
	USE(handle, rpma_utils_get_ibv_context);
	USE(handle, rpma_peer_new);
	USE(handle, rpma_peer_delete);
	USE(handle, rpma_mr_reg);
	USE(handle, rpma_mr_dereg);
	struct ibv_context *context;
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	const char *address = getenv("RPMA_TEST_ADDR");
	char *memory = calloc(1, 4096);
	must("context", use_rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
	must("peer", use_rpma_peer_new(context, &peer));
	must("reg", use_rpma_mr_reg(peer, memory, 4096, RPMA_MR_USAGE_READ_SRC, &mr));
	must("dereg", use_rpma_mr_dereg(&mr));
	must("delete", use_rpma_peer_delete(&peer));
	say("words", "%s", use_rpma_err_2str(RPMA_E_INVAL));
	free(memory);
	if (dlclose(handle) != 0)
		exit(1);
}

static void again(void)
{
	for (int i = 0; i < 5; i++) {
		int before = entries("/proc/self/fd");
		use_once();
		if (i > 0)
			say("fds", "%s", entries("/proc/self/fd") == before ? "the same" : "more or fewer");
	}
}

int main(int argc, char *argv[])
{
	if (argc != 3)
		return 2;
	mode = argv[1];
	library = argv[2];
	alarm(60);
	if (strcmp(mode, "nothing") == 0)
		nothing();
	else if (strcmp(mode, "log") == 0)
		in_syslog();
	else if (strcmp(mode, "again") == 0)
		again();
	else
		return 2;
	return 0;
}
