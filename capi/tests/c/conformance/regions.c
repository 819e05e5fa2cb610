/* Devices, peers, memory regions. */
#include "cases.h"

#include <endian.h>

void contexts(void)
{
	struct ibv_context *local = NULL, *remote = NULL, *again = NULL, *none = NULL;
	int odp = 42;
	say_ret("local", rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &local));
	say_ret("remote", rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &remote));
	say_ret("again", rpma_utils_get_ibv_context(test_address(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &again));
	say("the same device", "%s", local != NULL && local == remote && local == again ? "yes" : "no");
	/* It must still be open. */
	say("its name", "%s", ibv_get_device_name(local->device)[0] != '\0' ? "there" : "none");
	say_ret("no type", rpma_utils_get_ibv_context(test_address(), (enum rpma_util_ibv_context_type)2, &none));
	say_ret("not here", rpma_utils_get_ibv_context("192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &none));
	say_ret("no name", rpma_utils_get_ibv_context("no such name", RPMA_UTIL_IBV_CONTEXT_LOCAL, &none));
	say_ret("no remote name", rpma_utils_get_ibv_context("no such name", RPMA_UTIL_IBV_CONTEXT_REMOTE, &none));
	say("untouched", "%s", none == NULL ? "yes" : "no");
	say_ret("on demand", rpma_utils_ibv_context_is_odp_capable(local, &odp));
	say("on demand", "%d", odp);

	struct rpma_peer *one = NULL, *two = NULL;
	say_ret("a peer", rpma_peer_new(local, &one));
	say_ret("another", rpma_peer_new(remote, &two));
	say_ret("delete", rpma_peer_delete(&one));
	say("deleted", "%s", one == NULL ? "NULL" : "not NULL");
	say_ret("delete the other", rpma_peer_delete(&two));
}

void registration(void)
{
	struct rpma_peer *peer = new_peer();
	char *memory = pages(8192, 0);
	struct rpma_mr_local *mr = NULL, *other = NULL;
	void *ptr = NULL;
	size_t size = 0;
	say_ret("reg", rpma_mr_reg(peer, memory + 100, 5000, RPMA_MR_USAGE_READ_SRC, &mr));
	must("get_ptr", rpma_mr_get_ptr(mr, &ptr));
	must("get_size", rpma_mr_get_size(mr, &size));
	say("ptr", "%+ld", (long)((char *)ptr - memory));
	say("size", "%zu", size);
	say_ret("the same once more", rpma_mr_reg(peer, memory + 100, 5000, RPMA_MR_USAGE_READ_SRC, &other));
	say_ret("dereg", rpma_mr_dereg(&mr));
	say("gone", "%s", mr == NULL ? "NULL" : "not NULL");
	say_ret("dereg again", rpma_mr_dereg(&mr));
	must("dereg", rpma_mr_dereg(&other));
	say_ret("no bytes", rpma_mr_reg(peer, memory, 0, RPMA_MR_USAGE_READ_SRC, &mr));
	say_ret("not mapped", rpma_mr_reg(peer, (void *)4096, 4096, RPMA_MR_USAGE_READ_SRC, &mr));
	say("untouched", "%s", mr == NULL ? "yes" : "no");
	must("peer_delete", rpma_peer_delete(&peer));
	free(memory);
}

void usages(void)
{
	struct rpma_peer *peer = new_peer();
	char *memory = pages(4096, 0), key[40];
	/* Persistence takes memory that is persistent. */
	for (int usage = 0; usage < 256; usage++) {
		struct rpma_mr_local *mr = NULL;
		if (usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
			continue;
		int ret = rpma_mr_reg(peer, memory, 4096, usage, &mr);
		snprintf(key, sizeof(key), "usage %#x", usage);
		if (ret != 0) {
			say_ret(key, ret);
			continue;
		}
		struct rpma_mr_remote *remote = remote_of(mr);
		char bytes[21];
		int types;
		size_t size;
		must("descriptor", rpma_mr_get_descriptor(mr, bytes));
		must("flush_type", rpma_mr_remote_get_flush_type(remote, &types));
		must("size", rpma_mr_remote_get_size(remote, &size));
		say(key, "%#x, flush %#x, %zu bytes", (unsigned char)bytes[20], types, size);
		must("delete", rpma_mr_remote_delete(&remote));
		must("dereg", rpma_mr_dereg(&mr));
	}
	int more[] = {0x100, 0x101, -1 & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT};
	for (size_t i = 0; i < sizeof(more) / sizeof(*more); i++) {
		struct rpma_mr_local *mr = NULL;
		snprintf(key, sizeof(key), "usage %#x", more[i]);
		say_ret(key, rpma_mr_reg(peer, memory, 4096, more[i], &mr));
		must("dereg", rpma_mr_dereg(&mr));
	}
	must("peer_delete", rpma_peer_delete(&peer));
	free(memory);
}

void descriptors(void)
{
	struct rpma_peer *peer = new_peer();
	char *memory = pages(4096, 0);
	unsigned char bytes[32];
	uint64_t address, length;
	uint32_t rkey;
	size_t size = 0;
	memset(bytes, 0x55, sizeof(bytes));
	struct rpma_mr_local *mr = reg(peer, memory + 8, 1234, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	must("size", rpma_mr_get_descriptor_size(mr, &size));
	must("descriptor", rpma_mr_get_descriptor(mr, bytes));
	memcpy(&address, bytes, 8);
	memcpy(&length, bytes + 8, 8);
	memcpy(&rkey, bytes + 16, 4);
	say("size", "%zu", size);
	say("address", "%s", le64toh(address) == (uintptr_t)memory + 8 ? "that of the memory" : "another");
	say("length", "%lu", (unsigned long)le64toh(length));
	say("rkey", "%s", le32toh(rkey) != 0 ? "there" : "0");
	say("usage", "%#x", bytes[20]);
	say("behind", "%#x", bytes[21]);

	for (size_t i = 0; i <= sizeof(bytes); i++) {
		struct rpma_mr_remote *remote = NULL;
		char key[32];
		int ret = rpma_mr_remote_from_descriptor(bytes, i, &remote);
		snprintf(key, sizeof(key), "from %zu bytes", i);
		say(key, "%s", ret_name(ret));
		must("delete", rpma_mr_remote_delete(&remote));
	}
	must("dereg", rpma_mr_dereg(&mr));
	must("peer_delete", rpma_peer_delete(&peer));
	free(memory);
}

static void odd(const char *key, uint64_t address, uint64_t length, uint8_t usage)
{
	unsigned char bytes[21] = {0};
	struct rpma_mr_remote *remote = NULL;
	address = htole64(address);
	length = htole64(length);
	memcpy(bytes, &address, 8);
	memcpy(bytes + 8, &length, 8);
	bytes[20] = usage;
	say_ret(key, rpma_mr_remote_from_descriptor(bytes, sizeof(bytes), &remote));
	if (remote != NULL) {
		size_t size;
		int types;
		must("size", rpma_mr_remote_get_size(remote, &size));
		must("flush_type", rpma_mr_remote_get_flush_type(remote, &types));
		say(key, "%zu bytes, flush %#x", size, types);
	}
	must("delete", rpma_mr_remote_delete(&remote));
}

void odd_descriptors(void)
{
	odd("as it should be", 0x1000, 0x1000, 0xff);
	odd("persistent only", 0x1000, 0x1000, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	odd("no usage", 0x1000, 0x1000, 0);
	odd("address 0", 0, 0x1000, 1);
	odd("length 0", 0x1000, 0, 1);
	odd("all 0 but the usage", 0, 0, 1);
	odd("leaves the address space", UINT64_MAX, 2, 1);
}

void advice(void)
{
	struct rpma_peer *peer = new_peer();
	char *memory = pages(8192, 0);
	struct rpma_mr_local *mr = reg(peer, memory, 8192, RPMA_MR_USAGE_READ_SRC);
	say_ret("prefetch", rpma_mr_advise(mr, 0, 4096, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH));
	must("dereg", rpma_mr_dereg(&mr));
	must("peer_delete", rpma_peer_delete(&peer));
	free(memory);
}

void peer_in_use(void)
{
	struct rpma_peer *peer = new_peer();
	char *memory = pages(4096, 0);
	struct rpma_mr_local *mr = reg(peer, memory, 4096, RPMA_MR_USAGE_READ_SRC);
	say_ret("peer_delete", rpma_peer_delete(&peer));
	say_ret("dereg", rpma_mr_dereg(&mr));
	free(memory);
}
