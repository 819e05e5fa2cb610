/*
 * Everything that librpma.h has, one case after the other.
 *
 *   conformance --list      the names of the cases
 *   conformance CASE…       runs them; each starts with a line "## CASE"
 */
#include "cases.h"

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) {#name, name},
#include "cases.def"
#undef CASE
};

int main(int argc, char *argv[])
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (argc == 2 && strcmp(argv[1], "--list") == 0)
			printf("%s\n", cases[i].name);
		for (int arg = 1; arg < argc; arg++) {
			if (strcmp(argv[arg], cases[i].name) == 0) {
				printf("## %s\n", cases[i].name);
				fflush(stdout);
				begin(cases[i].name, 60);
				cases[i].run();
			}
		}
	}
	return 0;
}
