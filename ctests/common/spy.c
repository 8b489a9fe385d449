/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "spy.h"

#include "check.h"

/* One call on its way: freed by the last of its tasks. */
typedef struct passage {
    spy *spy;
    weir_task_fn fn;
    void *arg;
    atomic_int left;
} passage;

static _Thread_local int inside;

int spy_inside(void) {
    return inside;
}

static void raise_to(atomic_int *most, int value) {
    int seen = atomic_load(most);
    while (seen < value && !atomic_compare_exchange_weak(most, &seen, value)) {
    }
}

static void pass(void *arg, int32_t i) {
    passage *p = arg;
    spy *s = p->spy;
    weir_task_fn fn = p->fn;
    void *fn_arg = p->arg;
    int last = atomic_fetch_sub(&p->left, 1) == 1;
    if (last) free(p);
    atomic_fetch_add(&s->begun, 1);
    inside++;
    fn(fn_arg, i);
    inside--;
    atomic_fetch_add(&s->ended, 1);
    atomic_fetch_sub(&s->out, 1);
}

static passage *set_out(spy *s, weir_task_fn fn, void *arg, int n) {
    passage *p = malloc(sizeof *p);
    CHECK(p != NULL);
    p->spy = s;
    p->fn = fn;
    p->arg = arg;
    atomic_store(&p->left, n);
    atomic_fetch_add(&s->offered, 1);
    raise_to(&s->most_out, atomic_fetch_add(&s->out, n) + n);
    return p;
}

static int32_t came_back(passage *p, int n, int32_t refused) {
    if (refused) {
        atomic_fetch_sub(&p->spy->out, n);
        free(p);
    }
    return refused;
}

static int32_t num_threads(void *ctx) {
    spy *s = ctx;
    atomic_fetch_add(&s->width_asked, 1);
    return s->host.num_threads(s->ctx);
}

static int32_t nothing(void *arg, int64_t begin, int64_t end, int32_t slot) {
    (void)arg, (void)begin, (void)end, (void)slot;
    return WEIR_OK;
}

static int32_t schedule(void *ctx, weir_task_fn fn, void *arg, const weir_task_hint *hint) {
    spy *s = ctx;
    if (atomic_load(&s->calls_back)) {
        int32_t number = 0;
        CHECK_OK(weir_threadpool_get_num_threads(s->handle, &number));
        CHECK_OK(weir_threadpool_in_parallel(s->handle, &number));
        CHECK_OK(weir_parallel_for(s->handle, 3, NULL, nothing, NULL));
    }
    passage *p = set_out(s, fn, arg, 1);
    return came_back(p, 1, s->host.schedule(s->ctx, pass, p, hint));
}

static int32_t parallel_for(void *ctx, int32_t n, weir_task_fn fn, void *arg) {
    spy *s = ctx;
    int least = atomic_load(&s->least_n);
    while (n < least && !atomic_compare_exchange_weak(&s->least_n, &least, n)) {
    }
    raise_to(&s->most_n, n);
    if (inside) atomic_fetch_add(&s->bulk_inside, 1);
    passage *p = set_out(s, fn, arg, n);
    return came_back(p, n, s->host.parallel_for(s->ctx, n, pass, p));
}

static void release(void *ctx) {
    spy *s = ctx;
    if (inside) atomic_fetch_add(&s->release_inside, 1);
    /* Who ran the last task may be on its way out of it, but none is left that has not begun. */
    if (atomic_load(&s->begun) - atomic_load(&s->ended) != atomic_load(&s->out)) atomic_fetch_add(&s->release_early, 1);
    s->host.release(s->ctx);
    atomic_fetch_add(&s->releases, 1);
}

static int32_t in_parallel(void *ctx) {
    return ((spy *)ctx)->host.in_parallel(((spy *)ctx)->ctx);
}

static int32_t help(void *ctx) {
    return ((spy *)ctx)->host.help(((spy *)ctx)->ctx);
}

test_pool *spy_create(spy *s, pool_kind kind, int threads) {
    test_pool *host = test_pool_create_bare(kind, threads);
    memset(s, 0, sizeof *s);
    s->host = test_pool_vtable(host);
    s->ctx = host;
    atomic_store(&s->least_n, INT32_MAX);
    weir_threadpool_vtable vtable = {.struct_size = sizeof vtable,
                                     .flags = s->host.flags,
                                     .num_threads = num_threads,
                                     .parallel_for = s->host.parallel_for != NULL ? parallel_for : NULL,
                                     .schedule = s->host.schedule != NULL ? schedule : NULL,
                                     .in_parallel = s->host.in_parallel != NULL ? in_parallel : NULL,
                                     .help = s->host.help != NULL ? help : NULL,
                                     .release = release};
    CHECK_OK(weir_threadpool_create(&vtable, s, &s->handle));
    return host;
}

void spy_destroy(spy *s, test_pool *host) {
    test_pool_destroy(host);
    EVENTUALLY(atomic_load(&s->releases) == 1);
    EVENTUALLY(atomic_load(&s->out) == 0);
    CHECK_EQ(atomic_load(&s->release_inside), 0);
    CHECK_EQ(atomic_load(&s->release_early), 0);
}
