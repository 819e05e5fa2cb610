/*
 * A stand-in for libefa: answers with what the test put into `standin`, and keeps there what it was called with.
 *
 * RELEASE is the rdma-core release whose behaviour it has; which symbols are exported, the version script says.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

struct standin {
	int32_t error;
	int32_t depth;
	uint8_t device_attr[32];
	uint8_t cq_attr[32];
	uint8_t mr_attr[16];
	uint8_t wq_attr[2][40];
	void *cq;
	void *efa_cq;
	/* The last call. */
	uint32_t calls;
	uint32_t inlen;
	void *object;
	uint8_t in[64];
	uint8_t in_verbs[56];
};

struct standin standin;

static int call(void *object, uint32_t inlen)
{
	standin.calls++;
	standin.object = object;
	standin.inlen = inlen;
	return standin.error;
}

static int query(void *object, void *attr, uint32_t inlen, const void *answer, uint32_t known)
{
	int error = call(object, inlen);

	if (error)
		return error;
	memcpy(attr, answer, inlen < known ? inlen : known);
	return 0;
}

int efadv_query_device(void *context, void *attr, uint32_t inlen)
{
	return query(context, attr, inlen, standin.device_attr, sizeof(standin.device_attr));
}

int efadv_query_mr(void *mr, void *attr, uint32_t inlen)
{
	return query(mr, attr, inlen, standin.mr_attr, sizeof(standin.mr_attr));
}

int efadv_query_cq(void *cq, void *attr, uint32_t inlen)
{
	/* The doorbell came with 60. */
	return query(cq, attr, inlen, standin.cq_attr, RELEASE < 60 ? 24 : 32);
}

int efadv_query_qp_wqs(void *qp, void *sq, void *rq, uint32_t inlen)
{
	int error = query(qp, sq, inlen, standin.wq_attr[0], sizeof(standin.wq_attr[0]));

	return error ? error : query(qp, rq, inlen, standin.wq_attr[1], sizeof(standin.wq_attr[1]));
}

static int depth(void *context, const void *attr, uint32_t inlen)
{
	int error = call(context, inlen);

	memcpy(standin.in, attr, inlen);
	return error ? -error : standin.depth;
}

int efadv_get_max_sq_depth(void *context, void *attr, uint32_t inlen)
{
	return depth(context, attr, inlen);
}

int efadv_get_max_rq_depth(void *context, void *attr, uint32_t inlen)
{
	return depth(context, attr, inlen);
}

void *efadv_create_cq(void *context, void *attr_ex, void *efa_attr, uint32_t inlen)
{
	int error = call(context, inlen);

	memcpy(standin.in_verbs, attr_ex, sizeof(standin.in_verbs));
	memset(standin.in, 0xee, sizeof(standin.in));
	memcpy(standin.in, efa_attr, inlen);
	if (error) {
		errno = error;
		return NULL;
	}
	return standin.cq;
}

void *efadv_cq_from_ibv_cq_ex(void *cq)
{
	return cq == standin.cq ? standin.efa_cq : NULL;
}
