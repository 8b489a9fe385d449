/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Random programs of several ranks over MPI. Each is a number, from which all ranks draw the same steps; each rank
 * makes its own graph of them, and compares what it gets, bit by bit, with an interpreter that does all ranks' steps
 * one after the other.
 *
 *     mpi_random [<programs> [<first>]] [funneled]
 *
 * What fails is printed with its number and its steps.
 */

#include <stdarg.h>

#include <weir/control.h>

#include "mpi_ranks.h"

#include "make.h"
#include "test_pools.h"

enum { MOST_RANKS = 8, MOST_STEPS = 14, MOST_VALUES = 2 + 2 * MOST_STEPS, COMMS = 16 };

#define LIMIT (UINT64_C(60) * 1000000000)

/* Values of f32 are whole and this small, so that all sums are exact. */
#define LARGEST (INT64_C(1) << 20)

typedef enum kind {
    OWN,            /* of and with: whole numbers that depend on the rank */
    ALL_REDUCE,
    BUCKET,         /* of and with in one all_reduce */
    BROADCAST,
    REDUCE,
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    MESSAGE,        /* `from` sends to `to`, others keep theirs */
    EXCHANGE,       /* both of them send to the other */
    CROSSED,        /* two messages, received in the other order */
    RING,           /* each sends to the next one */
    BARRIER,
    COND,
    LOOP,
} kind;

static const char *const kind_names[] = {"own",        "all_reduce", "bucket",   "broadcast", "reduce",
                                         "all_gather", "scatter",    "to_all",   "message",   "exchange",
                                         "crossed",    "ring",       "barrier",  "cond",      "loop"};

typedef struct list list;

typedef struct step {
    kind kind;
    int of, with;
    int from, to, tag;
    weir_comm_reduction reduction;
    uint64_t flags;
    int comm, factor, slow;
    int asks_root;    /* predicates: from a broadcast of `from`, not from an all_reduce */
    int times, asks;  /* loops: how often at most, and whether their condition communicates */
    list *nested[2];
} step;

struct list {
    int num_inputs, num_steps, num_values, result;
    step steps[MOST_STEPS];
    int64_t counts[MOST_VALUES], bounds[MOST_VALUES];
};

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

static uint64_t state, seed;

static int below(int n) {
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

typedef struct drawn {
    weir_dtype dtype;
    int num_comms, parallel;
} drawn;

static void add_value(list *l, int64_t count, int64_t bound) {
    l->counts[l->num_values] = count;
    l->bounds[l->num_values++] = bound;
}

/* Sums grow: where they may become too large it is a maximum. */
static weir_comm_reduction draw_reduction(const drawn *d, int64_t *bound) {
    const weir_comm_reduction all[] = {WEIR_COMM_SUM, WEIR_COMM_SUM, WEIR_COMM_MAX, WEIR_COMM_MIN};
    weir_comm_reduction by = all[below(4)];
    if (by != WEIR_COMM_SUM || d->dtype == WEIR_S32) return by;
    if (*bound * size > LARGEST) return WEIR_COMM_MAX;
    *bound *= size;
    return by;
}

static list *draw(const drawn *d, const int64_t *counts, int num_inputs, int depth) {
    list *l = calloc(1, sizeof *l);
    CHECK(l != NULL);
    l->num_inputs = num_inputs;
    for (int i = 0; i < num_inputs; i++) add_value(l, counts[i], LARGEST);
    const int want = 2 + below(depth == 0 ? MOST_STEPS - 2 : 4);
    while (l->num_steps < want) {
        step *s = &l->steps[l->num_steps++];
        const int last = l->num_values - 1;
        int64_t count, bound;
        s->kind = (kind)below(depth < 2 ? 18 : 13);
        if (s->kind > LOOP || (l->num_steps <= num_inputs && below(2))) s->kind = OWN;
        s->of = below(2) ? last : below(l->num_values);
        s->with = below(l->num_values);
        s->from = below(size);
        s->to = (s->from + 1 + below(size - 1)) % size;
        s->tag = below(3);
        s->comm = below(d->num_comms);
        s->factor = 1 + below(5);
        s->slow = below(6) ? -1 : below(size);
        s->asks_root = below(4) == 0;
        count = l->counts[s->of];
        bound = l->bounds[s->of];
        if (s->kind == ALL_GATHER && count * size > 8000) s->kind = ALL_REDUCE;
        if ((s->kind == REDUCE_SCATTER || s->kind == ALL_TO_ALL) && count % size != 0) s->kind = ALL_GATHER;
        if (s->kind == ALL_GATHER && count * size > 8000) s->kind = OWN;
        if (s->kind == BUCKET && l->bounds[s->with] > bound) bound = l->bounds[s->with];
        if (s->kind == ALL_REDUCE || s->kind == BUCKET || s->kind == REDUCE || s->kind == REDUCE_SCATTER) {
            s->reduction = draw_reduction(d, &bound);
            if (below(4) == 0) s->flags = WEIR_COMMUNICATION_DETERMINISTIC;
        }
        switch (s->kind) {
        case OWN:
            if (l->counts[s->with] != count) s->with = s->of;
            add_value(l, count, 50);
            break;
        case BUCKET:
            add_value(l, count, bound);
            add_value(l, l->counts[s->with], bound);
            break;
        case CROSSED:
            add_value(l, count, bound);
            add_value(l, l->counts[s->with], l->bounds[s->with]);
            break;
        case ALL_GATHER: add_value(l, count * size, bound); break;
        case REDUCE_SCATTER: add_value(l, count / size, bound); break;
        case BARRIER: break;
        case COND:
        case LOOP:
            s->reduction = WEIR_COMM_SUM;
            if (d->dtype == WEIR_F32 && (s->kind == LOOP || bound * size > LARGEST)) s->reduction = WEIR_COMM_MAX;
            s->times = below(5);
            s->asks = below(3) == 0;
            for (int i = 0; i < (s->kind == COND ? 2 : 1); i++) s->nested[i] = draw(d, &count, 1, depth + 1);
            add_value(l, count, LARGEST);
            break;
        default: add_value(l, count, bound);
        }
    }
    /* What a nested list gives: the last value that has the shape of its first one. */
    l->result = l->num_values - 1;
    while (l->counts[l->result] != counts[0]) l->result--;
    return l;
}

static void drop(list *l) {
    if (l == NULL) return;
    for (int i = 0; i < l->num_steps; i++) {
        drop(l->steps[i].nested[0]);
        drop(l->steps[i].nested[1]);
    }
    free(l);
}

static void print_list(const list *l, int indent) {
    int value = l->num_inputs;
    for (int i = 0; i < l->num_steps; i++) {
        const step *s = &l->steps[i];
        fprintf(stderr, "%*sv%d = %s of v%d (%lld) with v%d, %d to %d, tag %d, by %u, comm %d, flags %llu, factor %d, "
                "slow %d, root %d, times %d, asks %d\n", indent, "", value, kind_names[s->kind], s->of,
                (long long)l->counts[s->of], s->with, s->from, s->to, s->tag, s->reduction, s->comm,
                (unsigned long long)s->flags, s->factor, s->slow, s->asks_root, s->times, s->asks);
        for (int n = 0; n < 2; n++) {
            if (s->nested[n] == NULL) continue;
            fprintf(stderr, "%*s%s:\n", indent + 2, "", s->kind == LOOP ? "body" : n == 0 ? "else" : "then");
            print_list(s->nested[n], indent + 4);
        }
        value += s->kind == BARRIER ? 0 : s->kind == BUCKET || s->kind == CROSSED ? 2 : 1;
    }
    fprintf(stderr, "%*sgives v%d\n", indent, "", l->result);
}

static const list *current;

/* Prints the program, and ends. */
static void wrong(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rank %d of %d, program %llu: ", rank, size, (unsigned long long)seed);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    print_list(current, 2);
    fflush(NULL);
    _Exit(1);
}

static void must(const char *what, weir_status status) {
    if (status != WEIR_OK) wrong("%s: %s: %s", what, weir_status_name(status), weir_last_error_message());
}

/* ---- The interpreter --------------------------------------------------------------------------------------------- */

static int32_t own_number(weir_dtype dtype, int of_rank, int factor, int32_t a, int32_t b, int64_t i) {
    if (dtype == WEIR_S32) return (int32_t)(((uint32_t)a + (uint32_t)b) * (uint32_t)factor + (uint32_t)of_rank);
    return (int32_t)((((int64_t)a + b) * factor + 7 * of_rank + i) % 51);
}

static int is_yes(int64_t sum) {
    return ((uint64_t)sum >> 1 & 1) == 0;
}

static int32_t reduce_two(weir_comm_reduction by, int32_t a, int32_t b) {
    if (by == WEIR_COMM_MAX) return a > b ? a : b;
    if (by == WEIR_COMM_MIN) return a < b ? a : b;
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

/* Of values that lie rank by rank. */
static int32_t reduced(weir_comm_reduction by, const int32_t *v, int64_t count, int64_t i) {
    int32_t result = v[i];
    for (int r = 1; r < size; r++) result = reduce_two(by, result, v[r * count + i]);
    return result;
}

static int predicate(const step *s, const int32_t *v, int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += s->asks_root ? v[s->from * count + i] : reduced(s->reduction, v, count, i);
    }
    return is_yes(sum);
}

static int32_t *copied(const int32_t *v, int64_t count) {
    int32_t *copy = malloc((size_t)(count * size) * sizeof *copy);
    CHECK(copy != NULL);
    if (v != NULL) memcpy(copy, v, (size_t)(count * size) * sizeof *copy);
    return copy;
}

static void move(int32_t *to, const int32_t *from, int to_rank, int from_rank, int64_t count) {
    memcpy(to + to_rank * count, from + from_rank * count, (size_t)count * sizeof *to);
}

static void interpret(weir_dtype dtype, const list *l, int32_t **v);

static int32_t *interpret_nested(weir_dtype dtype, const list *l, const int32_t *of) {
    int32_t *inner[MOST_VALUES], *result;
    inner[0] = copied(of, l->counts[0]);
    interpret(dtype, l, inner);
    result = copied(inner[l->result], l->counts[0]);
    for (int i = 0; i < l->num_values; i++) free(inner[i]);
    return result;
}

/* All ranks' values: the first ones are given, those of the steps are added. */
static void interpret(weir_dtype dtype, const list *l, int32_t **v) {
    int at = l->num_inputs;
    for (int n = 0; n < l->num_steps; n++) {
        const step *s = &l->steps[n];
        const int32_t *of = v[s->of], *with = v[s->with];
        const int64_t count = l->counts[s->of], part = count / size;
        int32_t *new = s->kind == BARRIER ? NULL : copied(l->counts[at] == count ? of : NULL, l->counts[at]);
        switch (s->kind) {
        case OWN:
            for (int64_t i = 0; i < count * size; i++) {
                new[i] = own_number(dtype, (int)(i / count), s->factor, of[i], with[i], i % count);
            }
            break;
        case BUCKET:
        case ALL_REDUCE:
            for (int64_t i = 0; i < count * size; i++) new[i] = reduced(s->reduction, of, count, i % count);
            if (s->kind == ALL_REDUCE) break;
            v[at++] = new;
            new = copied(NULL, l->counts[at]);
            for (int64_t i = 0; i < l->counts[at] * size; i++) {
                new[i] = reduced(s->reduction, with, l->counts[at], i % l->counts[at]);
            }
            break;
        case BROADCAST:
            for (int r = 0; r < size; r++) move(new, of, r, s->from, count);
            break;
        case REDUCE:
            for (int64_t i = 0; i < count; i++) new[s->from * count + i] = reduced(s->reduction, of, count, i);
            break;
        case ALL_GATHER:
            for (int r = 0; r < size; r++) memcpy(new + r * count * size, of, (size_t)(count * size) * sizeof *new);
            break;
        case REDUCE_SCATTER:
            for (int64_t i = 0; i < count; i++) new[i] = reduced(s->reduction, of, count, i);
            break;
        case ALL_TO_ALL:
            for (int r = 0; r < size; r++) {
                for (int o = 0; o < size; o++) {
                    memcpy(new + r * count + o * part, of + o * count + r * part, (size_t)part * sizeof *new);
                }
            }
            break;
        case MESSAGE: move(new, of, s->to, s->from, count); break;
        case EXCHANGE:
            move(new, of, s->to, s->from, count);
            move(new, of, s->from, s->to, count);
            break;
        case CROSSED:
            move(new, of, s->to, s->from, count);
            v[at++] = new;
            new = copied(with, l->counts[at]);
            move(new, with, s->to, s->from, l->counts[at]);
            break;
        case RING:
            for (int r = 0; r < size; r++) move(new, of, (r + 1) % size, r, count);
            break;
        case BARRIER: break;
        case COND:
            free(new);
            new = interpret_nested(dtype, s->nested[predicate(s, of, count)], of);
            break;
        case LOOP:
            for (int t = 0; t < s->times && (!s->asks || predicate(s, new, count)); t++) {
                int32_t *next = interpret_nested(dtype, s->nested[0], new);
                free(new);
                new = next;
            }
            break;
        }
        if (new != NULL) v[at++] = new;
    }
    CHECK_EQ(at, l->num_values);
}

/* ---- The graph of this rank -------------------------------------------------------------------------------------- */

typedef struct own {
    struct own *next;
    weir_dtype dtype;
    int factor, slow, times;
} own;

typedef struct maker {
    const drawn *drawn;
    weir_engine *engine;
    weir_comm *const *comms;
    own *first;
    int names;
} maker;

static int32_t load(const weir_tensor_view *view, int64_t i) {
    return view->desc.dtype == WEIR_F32 ? (int32_t)((const float *)view->data)[i] : ((const int32_t *)view->data)[i];
}

static void store(void *data, weir_dtype dtype, int64_t i, int32_t number) {
    if (dtype == WEIR_F32) {
        ((float *)data)[i] = (float)number;
    } else {
        ((int32_t *)data)[i] = number;
    }
}

static int32_t compute_own(void *user, weir_kernel_context *context) {
    const own *self = user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    if (self->slow) sleep_ns(100000);
    for (int64_t i = 0; i < out->desc.dims[0]; i++) {
        store(out->data, self->dtype, i, own_number(self->dtype, rank, self->factor, load(in, i), load(in + 1, i), i));
    }
    return WEIR_OK;
}

static int32_t compute_predicate(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    int64_t sum = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    for (int64_t i = 0; i < in->desc.dims[0]; i++) sum += load(in, i);
    *(int32_t *)out->data = is_yes(sum);
    return WEIR_OK;
}

/* The counter is less than the number of times, and the second input, if there is one, is not 0. */
static int32_t compute_goes_on(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0, num_in = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    *(int32_t *)out->data = load(in, 0) < ((const own *)user)->times && (num_in < 2 || load(in + 1, 0) != 0);
    return WEIR_OK;
}

static int32_t compute_next(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t count = 0;
    (void)user;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &count));
    *(int32_t *)out->data = load(in, 0) + 1;
    return WEIR_OK;
}

static weir_tensor_desc desc_of(const maker *m, int64_t count) {
    return make_desc(m->drawn->dtype, 1, count, 0, 0);
}

/* Adds a kernel under a name of its own. */
static void add(maker *m, weir_graph *graph, const char *what, weir_kernel *kernel, const weir_value *inputs,
                size_t num_inputs, weir_value *outputs, size_t num_outputs) {
    char name[48];
    snprintf(name, sizeof name, "%s %d", what, m->names++);
    must(name, weir_graph_add_kernel(graph, name, kernel, inputs, num_inputs, outputs, num_outputs, NULL));
    weir_kernel_release(kernel);
}

static void add_host(maker *m, weir_graph *graph, const char *what, weir_compute_fn compute, own settings,
                     const weir_tensor_desc *in, const weir_value *inputs, size_t num_inputs, weir_tensor_desc out,
                     weir_value *output) {
    own *user = malloc(sizeof *user);
    weir_kernel *kernel = NULL;
    CHECK(user != NULL);
    *user = settings;
    user->next = m->first;
    m->first = user;
    weir_host_kernel_desc desc = make_kernel_desc(what, compute, user);
    desc.num_inputs = num_inputs;
    desc.inputs = in;
    desc.num_outputs = 1;
    desc.outputs = &out;
    CHECK_OK(weir_kernel_create_host(m->engine, &desc, &kernel));
    add(m, graph, what, kernel, inputs, num_inputs, output, 1);
}

static void add_communication(maker *m, weir_graph *graph, const step *s, weir_communication desc,
                              const weir_value *inputs, size_t num_inputs, weir_value *outputs, size_t num_outputs) {
    weir_kernel *kernel = NULL;
    desc.struct_size = sizeof desc;
    CHECK_OK(weir_kernel_create_communication(m->engine, m->comms[s->comm], &desc, NULL, &kernel));
    add(m, graph, kind_names[s->kind], kernel, inputs, num_inputs, outputs, num_outputs);
}

static void add_send(maker *m, weir_graph *graph, const step *s, int to, int tag, weir_value value) {
    const weir_communication desc = {.op = WEIR_COMM_SEND, .peer = to, .tag = tag};
    add_communication(m, graph, s, desc, &value, 1, NULL, 0);
}

static weir_value add_recv(maker *m, weir_graph *graph, const step *s, int from, int tag, int64_t count) {
    const weir_communication desc = {.op = WEIR_COMM_RECV, .peer = from, .tag = tag, .desc = desc_of(m, count)};
    weir_value value;
    add_communication(m, graph, s, desc, NULL, 0, &value, 1);
    return value;
}

/* The same on all ranks. */
static weir_value add_predicate(maker *m, weir_graph *graph, const step *s, weir_value of, int64_t count) {
    const weir_tensor_desc in = desc_of(m, count);
    weir_communication desc = {.op = WEIR_COMM_ALL_REDUCE, .reduction = s->reduction};
    weir_value value, yes;
    if (s->asks_root) desc = (weir_communication){.op = WEIR_COMM_BROADCAST, .peer = s->from};
    add_communication(m, graph, s, desc, &of, 1, &value, 1);
    add_host(m, graph, "is yes", compute_predicate, (own){0}, &in, &value, 1, make_desc(WEIR_S32, 1, 1, 0, 0), &yes);
    return yes;
}

static void build(maker *m, weir_graph *graph, const list *l, weir_value *v);

static weir_graph *build_branch(maker *m, const list *l) {
    const weir_tensor_desc desc = desc_of(m, l->counts[0]);
    weir_graph *graph = make_graph("branch");
    weir_value v[MOST_VALUES];
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &v[0]));
    build(m, graph, l, v);
    CHECK_OK(weir_graph_add_output(graph, "y", v[l->result]));
    return graph;
}

static weir_value build_cond(maker *m, weir_graph *graph, const step *s, weir_value of, int64_t count) {
    weir_graph *branches[2] = {build_branch(m, s->nested[0]), build_branch(m, s->nested[1])};
    weir_cond_desc desc = {.struct_size = sizeof desc, .then_graph = branches[1], .else_graph = branches[0]};
    weir_value result;
    char name[48];
    desc.predicate = add_predicate(m, graph, s, of, count);
    desc.inputs = &of;
    desc.num_inputs = 1;
    snprintf(name, sizeof name, "cond %d", m->names++);
    must(name, weir_graph_add_cond(graph, name, &desc, &result, 1, NULL));
    weir_graph_destroy(branches[0]);
    weir_graph_destroy(branches[1]);
    return result;
}

static weir_value build_loop(maker *m, weir_graph *graph, const step *s, weir_value of, int64_t count) {
    const weir_tensor_desc one = make_desc(WEIR_S32, 1, 1, 0, 0), in[2] = {one, one}, desc = desc_of(m, count);
    weir_graph *condition = make_graph("condition"), *body = make_graph("body");
    weir_tensor *zero = make_tensor(m->engine, one);
    weir_value v[MOST_VALUES], counter, asked[2], next, goes_on, variables[2] = {of, of}, results[2];
    void *data = NULL;
    char name[48];
    CHECK_OK(weir_graph_add_input(condition, "n", &one, &asked[0]));
    CHECK_OK(weir_graph_add_input(condition, "x", &desc, &v[0]));
    if (s->asks) asked[1] = add_predicate(m, condition, s, v[0], count);
    add_host(m, condition, "goes on", compute_goes_on, (own){.times = s->times}, in, asked, s->asks ? 2 : 1, one,
             &goes_on);
    CHECK_OK(weir_graph_add_output(condition, "goes on", goes_on));
    CHECK_OK(weir_graph_add_input(body, "n", &one, &counter));
    CHECK_OK(weir_graph_add_input(body, "x", &desc, &v[0]));
    add_host(m, body, "next", compute_next, (own){0}, in, &counter, 1, one, &next);
    build(m, body, s->nested[0], v);
    CHECK_OK(weir_graph_add_output(body, "n", next));
    CHECK_OK(weir_graph_add_output(body, "y", v[s->nested[0]->result]));
    CHECK_OK(weir_tensor_get_data(zero, &data));
    *(int32_t *)data = 0;
    snprintf(name, sizeof name, "zero %d", m->names++);
    CHECK_OK(weir_graph_add_constant(graph, name, zero, &variables[0]));
    weir_while_desc loop = {.struct_size = sizeof loop, .cond_graph = condition, .body_graph = body};
    loop.variables = variables;
    loop.num_variables = 2;
    loop.parallel_iterations = m->drawn->parallel;
    snprintf(name, sizeof name, "loop %d", m->names++);
    must(name, weir_graph_add_while(graph, name, &loop, results, NULL));
    weir_graph_destroy(condition);
    weir_graph_destroy(body);
    weir_tensor_release(zero);
    return results[1];
}

static void build(maker *m, weir_graph *graph, const list *l, weir_value *v) {
    int at = l->num_inputs;
    for (int n = 0; n < l->num_steps; n++) {
        const step *s = &l->steps[n];
        const weir_value both[2] = {v[s->of], v[s->with]};
        const int64_t count = l->counts[s->of];
        const weir_tensor_desc in[2] = {desc_of(m, count), desc_of(m, count)};
        weir_communication desc = {.reduction = s->reduction, .flags = s->flags};
        weir_value new = v[s->of];
        switch (s->kind) {
        case OWN:
            add_host(m, graph, "own", compute_own,
                     (own){.dtype = m->drawn->dtype, .factor = s->factor, .slow = s->slow == rank}, in, both, 2, in[0],
                     &new);
            break;
        case BUCKET:
            desc.op = WEIR_COMM_ALL_REDUCE;
            desc.num_tensors = 2;
            add_communication(m, graph, s, desc, both, 2, &v[at], 2);
            at += 2;
            continue;
        case ALL_REDUCE: desc.op = WEIR_COMM_ALL_REDUCE; break;
        case BROADCAST: desc.op = WEIR_COMM_BROADCAST; break;
        case REDUCE: desc.op = WEIR_COMM_REDUCE; break;
        case ALL_GATHER: desc.op = WEIR_COMM_ALL_GATHER; break;
        case REDUCE_SCATTER: desc.op = WEIR_COMM_REDUCE_SCATTER; break;
        case ALL_TO_ALL: desc.op = WEIR_COMM_ALL_TO_ALL; break;
        case EXCHANGE:
        case MESSAGE:
            if (rank == s->from) add_send(m, graph, s, s->to, s->tag, new);
            if (rank == s->to && s->kind == EXCHANGE) add_send(m, graph, s, s->from, s->tag, new);
            if (rank == s->to) new = add_recv(m, graph, s, s->from, s->tag, count);
            if (rank == s->from && s->kind == EXCHANGE) new = add_recv(m, graph, s, s->to, s->tag, count);
            break;
        case CROSSED:
            v[at] = new;
            v[at + 1] = v[s->with];
            if (rank == s->from) {
                add_send(m, graph, s, s->to, s->tag, v[at]);
                add_send(m, graph, s, s->to, s->tag + 1, v[at + 1]);
            } else if (rank == s->to) {
                v[at + 1] = add_recv(m, graph, s, s->from, s->tag + 1, l->counts[s->with]);
                v[at] = add_recv(m, graph, s, s->from, s->tag, count);
            }
            at += 2;
            continue;
        case RING:
            add_send(m, graph, s, (rank + 1) % size, s->tag, new);
            new = add_recv(m, graph, s, (rank + size - 1) % size, s->tag, count);
            break;
        case BARRIER:
            desc.op = WEIR_COMM_BARRIER;
            add_communication(m, graph, s, desc, NULL, 0, NULL, 0);
            continue;
        case COND: new = build_cond(m, graph, s, new, count); break;
        case LOOP: new = build_loop(m, graph, s, new, count); break;
        }
        if (desc.op == WEIR_COMM_BROADCAST || desc.op == WEIR_COMM_REDUCE) desc.peer = s->from;
        if (desc.op != 0) add_communication(m, graph, s, desc, both, 1, &new, 1);
        v[at++] = new;
    }
    CHECK_EQ(at, l->num_values);
}

/* ---- Trials ------------------------------------------------------------------------------------------------------ */

typedef enum way { CALL, START, STREAM, WAYS } way;

static void run(weir_program *program, weir_engine *engine, way way, weir_tensor **in, weir_tensor **out, int num_out) {
    if (way == CALL) {
        must("run", weir_program_run(program, NULL, in, 2, out, (size_t)num_out, NULL));
        return;
    }
    weir_stream *stream = make_stream(engine, WEIR_STREAM_ASYNCHRONOUS, NULL, NULL);
    if (way == START) {
        weir_run *started = NULL;
        must("start", weir_program_start(program, stream, in, 2, out, (size_t)num_out, NULL, &started));
        must("wait for the run", weir_run_synchronize(started, UINT64_MAX));
        weir_run_release(started);
    } else {
        must("queue", weir_program_run(program, stream, in, 2, out, (size_t)num_out, NULL));
    }
    must("wait for the stream", weir_stream_synchronize(stream, UINT64_MAX));
    weir_stream_release(stream);
}

static void try_program(weir_comm *const *all, int funneled) {
    static const pool_kind kinds[] = {POOL_FIFO, POOL_LIFO, POOL_PARALLEL_FOR, POOL_ASYNCHRONOUS, POOL_FULL,
                                      POOL_INLINE, POOL_HALF, POOL_SEEDED};
    state = seed * UINT64_C(0xd1342543de82ef95) + (uint64_t)size;
    const int flags = below(8) & (funneled ? ~WEIR_COMM_OWN_THREAD : ~0);
    weir_comm *const comms[2] = {all[flags], all[8 + flags]};
    const drawn d = {below(2) ? WEIR_F32 : WEIR_S32, 1 + (below(4) == 0), below(2) ? 4 : 1};
    const int64_t widths[] = {1, 5, size, 3 * size, 40 * size * size, 999};
    const int64_t counts[2] = {widths[below(6)], widths[below(6)]};
    const int pooled = below(3), kind = below(8), agrees = below(8) == 0, hop = below(3) == 0, way = below(WAYS);
    const uint64_t dropped = (uint64_t)below(1 << 30) & (uint64_t)below(1 << 30);
    list *l = draw(&d, counts, 2, 0);
    weir_threadpool *handle = NULL;
    test_pool *pool = NULL;
    current = l;
    /* Ranks have pools of different kinds. */
    if (pooled) pool = test_pool_create(kinds[(kind + rank) % 8], 2, &handle);
    weir_engine *engine = make_engine(handle);
    maker m = {.drawn = &d, .engine = engine, .comms = comms};
    weir_graph *graph = make_graph("drawn");
    weir_compile_options options = {.struct_size = sizeof options, .hop_ns = hop ? WEIR_HOP_NONE : 0};
    weir_program *program = NULL;
    weir_value v[MOST_VALUES];
    weir_tensor *in[2], *out[MOST_VALUES];
    int values[MOST_VALUES], num_out = 0;
    for (int i = 0; i < 2; i++) {
        const weir_tensor_desc desc = desc_of(&m, counts[i]);
        CHECK_OK(weir_graph_add_input(graph, i == 0 ? "x" : "y", &desc, &v[i]));
        in[i] = make_tensor(engine, desc);
    }
    build(&m, graph, l, v);
    for (int i = 0; i < l->num_values; i++) {
        char name[16];
        if (dropped >> i & 1) continue; /* nobody uses it, but what communicates is done */
        snprintf(name, sizeof name, "v%d", i);
        CHECK_OK(weir_graph_add_output(graph, name, v[i]));
        out[num_out] = make_tensor(engine, desc_of(&m, l->counts[i]));
        values[num_out++] = i;
    }
    must("compile", weir_graph_compile(graph, &engine, 1, &options, &program));
    weir_graph_destroy(graph);
    for (int c = 0; agrees && c < d.num_comms; c++) must("agree", weir_program_agree(program, comms[c], LIMIT));
    for (int r = 0; r < 2; r++) {
        int32_t *expected[MOST_VALUES];
        void *data = NULL;
        for (int i = 0; i < 2; i++) {
            expected[i] = copied(NULL, counts[i]);
            for (int64_t e = 0; e < counts[i] * size; e++) {
                expected[i][e] = (int32_t)(((uint64_t)e * 7 + (uint64_t)i * 5 + (uint64_t)r * 3 + seed) % 23) - 11;
            }
            CHECK_OK(weir_tensor_get_data(in[i], &data));
            for (int64_t e = 0; e < counts[i]; e++) store(data, d.dtype, e, expected[i][rank * counts[i] + e]);
        }
        for (int o = 0; o < num_out; o++) {
            CHECK_OK(weir_tensor_get_data(out[o], &data));
            memset(data, 0xa5, (size_t)l->counts[values[o]] * 4);
        }
        run(program, engine, (enum way)way, in, out, num_out);
        interpret(d.dtype, l, expected);
        for (int o = 0; o < num_out; o++) {
            const int64_t count = l->counts[values[o]];
            CHECK_OK(weir_tensor_get_data(out[o], &data));
            for (int64_t e = 0; e < count; e++) {
                int32_t bits, got;
                const int32_t number = expected[values[o]][rank * count + e];
                store(&bits, d.dtype, 0, number);
                memcpy(&got, (const char *)data + e * 4, 4);
                if (got == bits) continue;
                wrong("run %d, flags %d, pool %d, way %d: v%d[%lld] has the bits %#x, expected %#x (%d)", r, flags,
                      pooled ? (kind + rank) % 8 : -1, way, values[o], (long long)e, (unsigned)got, (unsigned)bits,
                      number);
            }
        }
        for (int i = 0; i < l->num_values; i++) free(expected[i]);
    }
    for (int i = 0; i < 2; i++) weir_tensor_release(in[i]);
    for (int o = 0; o < num_out; o++) weir_tensor_release(out[o]);
    weir_program_release(program);
    weir_engine_release(engine);
    weir_threadpool_release(handle);
    if (pool != NULL) test_pool_destroy(pool);
    while (m.first != NULL) {
        own *next = m.first->next;
        free(m.first);
        m.first = next;
    }
    drop(l);
}

int main(int argc, char **argv) {
    const int funneled = argc > 1 && strcmp(argv[argc - 1], "funneled") == 0, numbers = argc - funneled;
    const uint64_t first = numbers > 2 ? strtoull(argv[2], NULL, 10) : funneled ? 1000 : 0;
    weir_comm *comms[COMMS] = {NULL};
    char text[80];
    begin_ranks(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    CHECK(size >= 2 && size <= MOST_RANKS);
    const int programs = scale(numbers > 1 ? atoi(argv[1]) : 500 / size);
    weir_runtime_info before = runtime_info();
    /* Two of each kind. */
    for (int c = 0; c < COMMS; c++) {
        weir_comm_options options = {.struct_size = sizeof options, .name = "drawn", .limit_ns = LIMIT};
        options.flags = (uint64_t)c % 8;
        if (funneled) options.flags &= ~(uint64_t)WEIR_COMM_OWN_THREAD;
        CHECK_OK(weir_mpi_comm_create(MPI_COMM_WORLD, &options, &comms[c]));
    }
    for (seed = first; seed < first + (uint64_t)programs; seed++) {
        alarm(240); /* for each of them */
        try_program(comms, funneled);
    }
    meet();
    for (int c = 0; c < COMMS; c++) weir_comm_release(comms[c]);
    check_released(&before);
    snprintf(text, sizeof text, "%d programs give what the interpreter gives", programs);
    end_ranks(text);
    return 0;
}
