/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A libnccl.so.2 for tests, on the CUDA driver of tests/fake_cuda: ranks are threads of this process, each with a device
 * of its own. An operation is a launch in its stream, which waits for those of the other ranks and computes. So streams
 * wait for other ranks as they do with the real one, and for ever where ranks do not do the same; ncclCommAbort lets
 * them go on. The driver's checker knows what it reads and writes.
 *
 * It is strict about what NCCL leaves undefined: two threads in one communicator, a call while the last one is in
 * progress, one after abort. Then it ends the process.
 *
 * FAKE_NCCL_IN_PROGRESS=<seed>: calls are often in progress for a while, and submit nothing until they are over.
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS };
enum { MOST_RANKS = 16, MOST_OPS = 64 };

typedef struct id {
    char internal[128];
} id;

typedef struct config {
    size_t size;
    unsigned int magic, version;
    int blocking;
} config;

typedef enum kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, MESSAGE } kind;

struct op;

/* Where the operations of all ranks meet: the nth collective of a group, or the nth message between two ranks. */
typedef struct slot {
    struct slot *next;
    int from, to; /* of messages; -1 */
    uint64_t number;
    struct op *of[MOST_RANKS]; /* by rank; of a message, its send and its receive */
    int arrived, departed, expected, differs;
} slot;

typedef struct group {
    struct group *next;
    id id;
    int size, joined;
    slot *slots;
} group;

typedef struct comm {
    group *group;
    int rank, device, aborted, broken;
    int in_call;
    int countdown; /* calls of ncclCommGetAsyncError until the last call is over */
    uint64_t random;
    uint64_t collectives, messages[2][MOST_RANKS];
    int outstanding; /* launches that the device is not done with */
    struct launch *pending;
} comm;

typedef struct op {
    comm *comm;
    kind kind;
    size_t count;
    int type, by, root, from, to, is_send;
    const void *send;
    void *recv;
    size_t send_bytes, recv_bytes;
    char *sent, *received, *result;
    slot *slot;
} op;

typedef struct launch {
    struct launch *next; /* among those of aborted communicators */
    comm *comm;
    void *stream;
    int num;
    op ops[MOST_OPS];
} launch;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static group *groups;
static comm *comms[256];
static int num_comms;
static uint64_t ids;
static __thread int depth;
static __thread launch *grouped;

/* As in tests/fake_cuda/src/api/fake.rs. */
typedef struct use {
    uint64_t address, bytes, is_write;
} use;

static struct {
    int (*launch)(void *, const char *, void (*)(void *, void *const *), void *, const use *, size_t);
    int (*device)(int *);
} cuda;
static launch *lost;

__attribute__((format(printf, 1, 2), noreturn)) static void stop(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake NCCL: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    abort();
}

static void find(void *library, const char *name, void *to) {
    void *found = dlsym(library, name);
    if (found == NULL) stop("the driver has no %s", name);
    memcpy(to, &found, sizeof found);
}

static void load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) stop("there is no libcuda.so.1");
    find(library, "fakeCudaLaunch", &cuda.launch);
    find(library, "cuCtxGetDevice", &cuda.device);
}

static void check(int result, const char *what) {
    if (result != 0) stop("%s: the driver's result %d", what, result);
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

static size_t size_of(int type) {
    switch (type) {
    case 0: case 1: return 1;
    case 6: case 9: return 2;
    case 4: case 5: case 8: return 8;
    default: return 4;
    }
}

/* Whole numbers below 2,048 in 16 bits. */
static double read_half(uint16_t half) {
    const int exponent = half >> 10 & 31;
    const double value = exponent == 0 ? 0 : ldexp(1024 + (half & 1023), exponent - 25);
    return half >> 15 ? -value : value;
}

static uint16_t half_of(double value) {
    int exponent = 0;
    const double fraction = frexp(fabs(value), &exponent);
    if (value == 0) return 0;
    return (uint16_t)((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | ((int)(fraction * 2048) & 1023));
}

static double read_value(const char *from, int type) {
    float f;
    uint32_t bits;
    uint16_t half;
    int32_t s32;
    int64_t s64;
    switch (type) {
    case 0: return *(const signed char *)from;
    case 1: return *(const unsigned char *)from;
    case 2: memcpy(&s32, from, 4); return s32;
    case 4: memcpy(&s64, from, 8); return (double)s64;
    case 7: memcpy(&f, from, 4); return (double)f;
    case 6: memcpy(&half, from, 2); return read_half(half);
    case 9: memcpy(&half, from, 2); bits = (uint32_t)half << 16; memcpy(&f, &bits, 4); return (double)f;
    default: stop("type %d is not for this fake", type);
    }
}

/* Values of the tests are small whole numbers, which all types have. */
static void write_value(char *to, int type, double value) {
    float f = (float)value;
    uint32_t bits;
    uint16_t half;
    int32_t s32 = (int32_t)value;
    int64_t s64 = (int64_t)value;
    switch (type) {
    case 0: case 1: *to = (char)(int)value; return;
    case 2: memcpy(to, &s32, 4); return;
    case 4: memcpy(to, &s64, 8); return;
    case 7: memcpy(to, &f, 4); return;
    case 6: half = half_of(value); memcpy(to, &half, 2); return;
    case 9: memcpy(&bits, &f, 4); half = (uint16_t)(bits >> 16); memcpy(to, &half, 2); return;
    default: stop("type %d is not for this fake", type);
    }
}

static double reduced(int by, double a, double b) {
    switch (by) {
    case 0: return a + b;
    case 1: return a * b;
    case 2: return a > b ? a : b;
    default: return a < b ? a : b;
    }
}

static void reduce_into(const op *o, size_t first) {
    const size_t element = size_of(o->type);
    for (size_t i = 0; i < o->count; i++) {
        double value = read_value(o->slot->of[0]->sent + (first + i) * element, o->type);
        for (int rank = 1; rank < o->comm->group->size; rank++) {
            value = reduced(o->by, value, read_value(o->slot->of[rank]->sent + (first + i) * element, o->type));
        }
        write_value(o->result + i * element, o->type, value);
    }
}

static void compute(const op *o) {
    switch (o->kind) {
    case ALL_REDUCE: reduce_into(o, 0); break;
    case REDUCE: if (o->comm->rank == o->root) reduce_into(o, 0); break;
    case REDUCE_SCATTER: reduce_into(o, (size_t)o->comm->rank * o->count); break;
    case BROADCAST: memcpy(o->result, o->slot->of[o->root]->sent, o->recv_bytes); break;
    case ALL_GATHER:
        for (int rank = 0; rank < o->comm->group->size; rank++) {
            memcpy(o->result + (size_t)rank * o->send_bytes, o->slot->of[rank]->sent, o->send_bytes);
        }
        break;
    case MESSAGE: if (o->recv_bytes > 0) memcpy(o->result, o->slot->of[0]->sent, o->recv_bytes); break;
    }
}

/* ---- Meeting --------------------------------------------------------------------------------------------------- */

static slot *find_slot(group *g, int from, int to, uint64_t number, int expected) {
    slot *s = g->slots;
    while (s != NULL && (s->from != from || s->to != to || s->number != number)) s = s->next;
    if (s != NULL) return s;
    s = calloc(1, sizeof *s);
    if (s == NULL) stop("no memory");
    s->from = from;
    s->to = to;
    s->number = number;
    s->expected = expected;
    s->next = g->slots;
    g->slots = s;
    return s;
}

static void drop_slot(group *g, slot *s) {
    slot **at = &g->slots;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    free(s);
}

static int do_match(const op *a, const op *b) {
    if (a->kind == MESSAGE) return a->send_bytes + a->recv_bytes == b->send_bytes + b->recv_bytes;
    return a->kind == b->kind && a->count == b->count && a->type == b->type && a->by == b->by && a->root == b->root;
}

/* In a stream: waits for the other ranks, or for abort. */
static void meet(void *arg, void *const *places) {
    launch *l = arg;
    comm *c = l->comm;
    for (int i = 0; i < l->num; i++) {
        op *o = &l->ops[i];
        o->sent = places[2 * i];
        o->received = places[2 * i + 1];
        o->result = malloc(o->recv_bytes + 1);
        if (o->result == NULL) stop("no memory");
    }
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < l->num; i++) {
        op *o = &l->ops[i];
        slot *s = o->slot;
        for (int rank = 0; rank < MOST_RANKS; rank++) {
            if (s->of[rank] != NULL && !do_match(s->of[rank], o)) s->differs = 1;
        }
        s->of[o->kind != MESSAGE ? c->rank : !o->is_send] = o;
        s->arrived++;
    }
    pthread_cond_broadcast(&changed);
    for (int i = 0; i < l->num; i++) {
        const slot *s = l->ops[i].slot;
        while (!c->aborted && (s->arrived < s->expected || s->differs)) pthread_cond_wait(&changed, &mutex);
    }
    for (int i = 0; i < l->num && !c->aborted; i++) compute(&l->ops[i]);
    /* Where memory is the same for both sides, all have read it before one writes. */
    for (int i = 0; i < l->num && !c->aborted; i++) l->ops[i].slot->departed++;
    pthread_cond_broadcast(&changed);
    for (int i = 0; i < l->num; i++) {
        const slot *s = l->ops[i].slot;
        while (!c->aborted && s->departed < s->expected) pthread_cond_wait(&changed, &mutex);
    }
    const int is_well = !c->aborted;
    for (int i = 0; i < l->num; i++) {
        op *o = &l->ops[i];
        if (is_well && o->recv_bytes > 0) memcpy(o->received, o->result, o->recv_bytes);
        /* The last one takes the place away; those of an aborted communicator stay. */
        if (is_well && ++o->slot->departed == 2 * o->slot->expected) drop_slot(c->group, o->slot);
        free(o->result);
    }
    c->outstanding--;
    if (is_well) {
        free(l);
    } else {
        l->next = lost;
        lost = l;
    }
    pthread_mutex_unlock(&mutex);
}

/* In the order of the calls: what the device is to do. */
static void submit(launch *l) {
    comm *c = l->comm;
    use uses[2 * MOST_OPS];
    pthread_mutex_lock(&mutex);
    c->outstanding++;
    for (int i = 0; i < l->num; i++) {
        op *o = &l->ops[i];
        uses[2 * i] = (use){(uint64_t)(uintptr_t)o->send, o->send_bytes, 0};
        uses[2 * i + 1] = (use){(uint64_t)(uintptr_t)o->recv, o->recv_bytes, 1};
        if (o->kind != MESSAGE) {
            o->slot = find_slot(c->group, -1, -1, c->collectives++, c->group->size);
        } else {
            const int other = o->is_send ? o->to : o->from;
            o->slot = find_slot(c->group, o->from, o->to, c->messages[o->is_send][other]++, 2);
        }
    }
    pthread_mutex_unlock(&mutex);
    check(cuda.launch(l->stream, "an operation of NCCL", meet, l, uses, 2 * (size_t)l->num), "a launch");
}

/* ---- Rules ----------------------------------------------------------------------------------------------------- */

static void enter(comm *c, const char *call, int may_be_in_progress) {
    if (__atomic_exchange_n(&c->in_call, 1, __ATOMIC_ACQ_REL)) stop("%s: two threads are in one communicator", call);
    if (c->aborted) stop("%s: after ncclCommAbort", call);
    if (c->countdown > 0 && !may_be_in_progress) stop("%s: the last call is in progress", call);
}

static void leave(comm *c) {
    __atomic_store_n(&c->in_call, 0, __ATOMIC_RELEASE);
}

static uint64_t draw(comm *c) {
    uint64_t z = c->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The launch, now or when the caller has asked a few times. */
static int launched(launch *l) {
    comm *c = l->comm;
    if (c->random != 0 && draw(c) % 3 == 0) {
        c->countdown = 1 + (int)(draw(c) % 5);
        c->pending = l;
        return IN_PROGRESS;
    }
    submit(l);
    return SUCCESS;
}

static int add(comm *c, void *stream, op o, const char *call) {
    launch *l = grouped;
    int result = SUCCESS;
    enter(c, call, 0);
    o.comm = c;
    if (c->broken) {
        result = REMOTE_ERROR;
    } else if (depth > 0 && l != NULL && (l->comm != c || l->num == MOST_OPS)) {
        stop("%s: a group of two communicators, or of too many operations", call);
    } else {
        if (l == NULL) l = calloc(1, sizeof *l);
        if (l == NULL) stop("no memory");
        l->comm = c;
        l->stream = stream;
        l->ops[l->num++] = o;
        if (depth > 0) {
            grouped = l;
        } else {
            result = launched(l);
        }
    }
    leave(c);
    return result;
}

/* ---- NCCL ------------------------------------------------------------------------------------------------------ */

int ncclGetVersion(int *version) {
    *version = 22803;
    return SUCCESS;
}

const char *ncclGetLastError(void *c) {
    (void)c;
    return "as the test has asked for";
}

int ncclGetUniqueId(id *out) {
    static const char text[] = "fake";
    memset(out, 0, sizeof *out);
    memcpy(out->internal, text, sizeof text);
    uint64_t number = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    memcpy(out->internal + 8, &number, sizeof number);
    return SUCCESS;
}

int ncclCommInitRankConfig(void **out, int size, id of, int rank, config *with) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *seed = getenv("FAKE_NCCL_IN_PROGRESS");
    pthread_once(&once, load);
    if (size < 1 || size > MOST_RANKS || rank < 0 || rank >= size || strcmp(of.internal, "fake") != 0) return INVALID_ARGUMENT;
    if (with->magic != 0xcafebeef || with->size < sizeof *with || with->version < 21400) stop("a config that is none");
    if (with->blocking != 0) stop("a communicator that blocks cannot be given up");
    comm *c = calloc(1, sizeof *c);
    if (c == NULL) stop("no memory");
    if (cuda.device(&c->device) != 0) stop("no device is current");
    c->rank = rank;
    pthread_mutex_lock(&mutex);
    group *g = groups;
    while (g != NULL && memcmp(&g->id, &of, sizeof of) != 0) g = g->next;
    if (g == NULL) {
        g = calloc(1, sizeof *g);
        if (g == NULL) stop("no memory");
        g->id = of;
        g->size = size;
        g->next = groups;
        groups = g;
    }
    if (g->size != size || g->joined == size) stop("an id that is used twice");
    g->joined++;
    c->group = g;
    if (seed != NULL) c->random = strtoull(seed, NULL, 0) * 1000 + (uint64_t)rank + 1;
    if (num_comms == 256) stop("too many communicators");
    comms[num_comms++] = c;
    pthread_mutex_unlock(&mutex);
    *out = c;
    c->countdown = 1;
    return IN_PROGRESS;
}

int ncclCommCuDevice(void *of, int *out) {
    comm *c = of;
    enter(c, "ncclCommCuDevice", 0);
    *out = c->device;
    leave(c);
    return SUCCESS;
}

int ncclCommGetAsyncError(void *of, int *out) {
    comm *c = of;
    enter(c, "ncclCommGetAsyncError", 1);
    pthread_mutex_lock(&mutex);
    const int is_joined = c->group->joined == c->group->size, broken = c->broken;
    pthread_mutex_unlock(&mutex);
    *out = broken ? REMOTE_ERROR : SUCCESS;
    if (!broken && c->countdown > 0) {
        if (is_joined && --c->countdown == 0 && c->pending != NULL) {
            launch *l = c->pending;
            c->pending = NULL;
            submit(l);
        }
        if (c->countdown > 0) *out = IN_PROGRESS;
    }
    leave(c);
    return SUCCESS;
}

/* What is under way goes on, with any result. */
int ncclCommAbort(void *of) {
    comm *c = of;
    enter(c, "ncclCommAbort", 1);
    free(c->pending);
    pthread_mutex_lock(&mutex);
    c->aborted = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    leave(c);
    return SUCCESS;
}

int ncclGroupStart(void) {
    depth++;
    return SUCCESS;
}

int ncclGroupEnd(void) {
    launch *l = grouped;
    if (depth == 0) return INVALID_USAGE;
    if (--depth > 0 || l == NULL) return SUCCESS;
    grouped = NULL;
    enter(l->comm, "ncclGroupEnd", 0);
    comm *c = l->comm;
    const int result = launched(l);
    leave(c);
    return result;
}

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int by, void *c, void *stream) {
    const size_t bytes = count * size_of(type);
    return add(c, stream, (op){.kind = ALL_REDUCE, .count = count, .type = type, .by = by, .send = send, .recv = recv, .send_bytes = bytes, .recv_bytes = bytes}, "ncclAllReduce");
}

int ncclReduce(const void *send, void *recv, size_t count, int type, int by, int root, void *of, void *stream) {
    comm *c = of;
    const size_t bytes = count * size_of(type);
    return add(c, stream, (op){.kind = REDUCE, .count = count, .type = type, .by = by, .root = root, .send = send, .recv = recv, .send_bytes = bytes, .recv_bytes = c->rank == root ? bytes : 0}, "ncclReduce");
}

int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, void *of, void *stream) {
    comm *c = of;
    const size_t bytes = count * size_of(type);
    return add(c, stream, (op){.kind = BROADCAST, .count = count, .type = type, .root = root, .send = send, .recv = recv, .send_bytes = c->rank == root ? bytes : 0, .recv_bytes = c->rank == root && send == recv ? 0 : bytes}, "ncclBroadcast");
}

int ncclAllGather(const void *send, void *recv, size_t count, int type, void *of, void *stream) {
    comm *c = of;
    const size_t bytes = count * size_of(type);
    return add(c, stream, (op){.kind = ALL_GATHER, .count = count, .type = type, .send = send, .recv = recv, .send_bytes = bytes, .recv_bytes = bytes * (size_t)c->group->size}, "ncclAllGather");
}

int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int by, void *of, void *stream) {
    comm *c = of;
    const size_t bytes = count * size_of(type);
    return add(c, stream, (op){.kind = REDUCE_SCATTER, .count = count, .type = type, .by = by, .send = send, .recv = recv, .send_bytes = bytes * (size_t)c->group->size, .recv_bytes = bytes}, "ncclReduceScatter");
}

int ncclSend(const void *send, size_t count, int type, int peer, void *of, void *stream) {
    comm *c = of;
    return add(c, stream, (op){.kind = MESSAGE, .count = count, .type = type, .from = c->rank, .to = peer, .is_send = 1, .send = send, .send_bytes = count * size_of(type)}, "ncclSend");
}

int ncclRecv(void *recv, size_t count, int type, int peer, void *of, void *stream) {
    comm *c = of;
    return add(c, stream, (op){.kind = MESSAGE, .count = count, .type = type, .from = peer, .to = c->rank, .recv = recv, .recv_bytes = count * size_of(type)}, "ncclRecv");
}

/* ---- For tests ------------------------------------------------------------------------------------------------- */

/* A network of this rank is gone: all its communicators that are not aborted notice. */
void fakeNcclBreak(int rank) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < num_comms; i++) {
        if (comms[i]->rank == rank && !comms[i]->aborted) comms[i]->broken = 1;
    }
    pthread_mutex_unlock(&mutex);
}

/* All communicators were given up, and the devices are done with them. */
void fakeNcclEnd(void) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < num_comms; i++) {
        if (!comms[i]->aborted) stop("a communicator is left, of rank %d", comms[i]->rank);
        if (comms[i]->outstanding != 0) stop("the device has work of a communicator, of rank %d", comms[i]->rank);
    }
    pthread_mutex_unlock(&mutex);
}
