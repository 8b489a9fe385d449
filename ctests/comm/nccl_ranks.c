/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Ranks over weir/adapters/nccl.h, with the fake driver and the fake NCCL of this folder: each rank is a thread with a
 * CUDA device of its own. Every operation on streams, random programs beside an interpreter over all ranks, and what
 * ranks hear when one of them fails, is late, does something else, or loses its network.
 */
#include <dlfcn.h>
#include <pthread.h>

#include <weir/adapters/nccl.h>
#include <weir/conformance.h>
#include <weir/control.h>
#include <weir/device.h>

#include "make.h"
#include "rank_values.h"
#include "thread_transport.h"

enum { SIZE = 4, N = 24, STEPS = 14, MOST_VALUES = 40 };

#define SECOND UINT64_C(1000000000)
#define LIMIT (30 * SECOND)

/* What a rank has, in its thread. */
typedef struct rank {
    int number;
    weir_engine *cpu, *gpu;
    weir_stream *stream;
    int left[SIZE]; /* after a failure */
} rank;

static rank ranks[SIZE];
static fabric *between;
static pthread_barrier_t all;
static weir_nccl_id shared_id;
static void (*break_network)(int);

/* ---- Ranks ----------------------------------------------------------------------------------------------------- */

static void *driver(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library != NULL);
    void *found = dlsym(library, name);
    CHECK(found != NULL);
    return found;
}

/* As cudaSetDevice: what NCCL makes in this thread is for the rank's device. */
static void make_current(const rank *r) {
    int (*set)(void *);
    uint64_t context = 0;
    void *const found = driver("cuCtxSetCurrent");
    memcpy(&set, &found, sizeof set);
    CHECK_OK(weir_engine_get_native_handle(r->gpu, &context));
    CHECK_EQ(set((void *)(uintptr_t)context), 0);
}

static weir_status try_comm(rank *r, const weir_comm_options *options, int has_host, weir_comm **out, char *text) {
    weir_nccl_options nccl = {.rank = r->number, .size = SIZE, .id = &shared_id, .text = text, .text_capacity = 400};
    if (has_host) {
        nccl.host = &thread_vtable;
        nccl.host_ctx = thread_rank_make(between, r->number, r->left);
    }
    make_current(r);
    const weir_status status = weir_nccl_comm_create(&nccl, options, out);
    if (status != WEIR_OK) free(nccl.host_ctx);
    return status;
}

static weir_comm *make_comm_with(rank *r, uint64_t flags, uint64_t limit_ns, int has_host) {
    const weir_comm_options options = {.struct_size = sizeof options, .name = "dp", .flags = flags, .limit_ns = limit_ns};
    char text[400];
    weir_comm *comm = NULL;
    if (try_comm(r, &options, has_host, &comm, text) != WEIR_OK) check_failed(__FILE__, __LINE__, "a communicator", text);
    return comm;
}

static weir_comm *make_comm(rank *r) {
    return make_comm_with(r, 0, LIMIT, 1);
}

/* Runs a test on all ranks at once, over a fabric of its own. */
static void on_all(void *(*test)(void *)) {
    pthread_t threads[SIZE];
    between = fabric_make(SIZE);
    CHECK_EQ(weir_nccl_id_create(NULL, &shared_id), WEIR_OK);
    for (int i = 0; i < SIZE; i++) CHECK_EQ(pthread_create(&threads[i], NULL, test, &ranks[i]), 0);
    for (int i = 0; i < SIZE; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    fabric_free(between);
}

static weir_kernel *kernel_on(weir_engine *engine, weir_comm *comm, weir_communication desc) {
    weir_kernel *kernel = NULL;
    desc.struct_size = sizeof desc;
    CHECK_OK(weir_kernel_create_communication(engine, comm, &desc, NULL, &kernel));
    return kernel;
}

/* ---- Operations on streams ------------------------------------------------------------------------------------- */

static void *data_of(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

/* One operation on the device, from and to the host's tensors. */
static void enqueue(rank *r, weir_comm *comm, weir_communication desc, weir_tensor *input, weir_tensor *output, int in_place) {
    weir_kernel *kernel = kernel_on(r->gpu, comm, desc);
    weir_tensor_desc shape;
    CHECK_OK(weir_tensor_get_desc(input, &shape));
    weir_tensor *there = make_tensor(r->gpu, shape);
    CHECK_OK(weir_tensor_get_desc(output, &shape));
    weir_tensor *result = in_place ? there : make_tensor(r->gpu, shape);
    CHECK_OK(weir_enqueue_copy(r->stream, input, there));
    CHECK_OK(weir_enqueue(r->stream, kernel, &there, 1, &result, 1));
    CHECK_OK(weir_enqueue_copy(r->stream, result, output));
    CHECK_OK(weir_stream_synchronize(r->stream, WEIR_TIMEOUT_INFINITE));
    weir_tensor_release(there);
    if (!in_place) weir_tensor_release(result);
    weir_kernel_release(kernel);
}

static void check_operation(rank *r, weir_comm *comm, weir_communication desc, weir_dtype dtype, int64_t count, int in_place) {
    const int64_t own = r->number * count;
    const weir_comm_reduction by = desc.reduction == 0 ? (weir_comm_reduction)WEIR_COMM_SUM : desc.reduction;
    int64_t in = count, out = count;
    size_t bytes = 0;
    if (desc.op == WEIR_COMM_ALL_GATHER) out = count * SIZE;
    if (desc.op == WEIR_COMM_REDUCE_SCATTER || desc.op == WEIR_COMM_ALL_TO_ALL) in = count * SIZE;
    if (desc.op == WEIR_COMM_ALL_TO_ALL) out = in;
    weir_tensor *input = make_tensor(r->cpu, make_desc(dtype, 1, in, 0, 0));
    weir_tensor *output = make_tensor(r->cpu, make_desc(dtype, 1, out, 0, 0));
    weir_tensor *expected = make_tensor(r->cpu, make_desc(dtype, 1, out, 0, 0));
    for (int64_t i = 0; i < in; i++) put(data_of(input), dtype, i, value(r->number, i));
    for (int64_t i = 0; i < out; i++) {
        int number;
        switch (desc.op) {
        case WEIR_COMM_BROADCAST: number = value(desc.peer, i); break;
        case WEIR_COMM_REDUCE: number = r->number == desc.peer ? reduced(by, SIZE, i) : value(r->number, i); break;
        case WEIR_COMM_ALL_REDUCE: number = reduced(by, SIZE, i); break;
        case WEIR_COMM_ALL_GATHER: number = value((int)(i / count), i % count); break;
        case WEIR_COMM_REDUCE_SCATTER: number = reduced(by, SIZE, own + i); break;
        default: number = value((int)(i / count), own + i % count); break;
        }
        put(data_of(expected), dtype, i, number);
    }
    enqueue(r, comm, desc, input, output, in_place);
    CHECK_OK(weir_tensor_get_size(output, &bytes));
    if (memcmp(data_of(output), data_of(expected), bytes) != 0) {
        fprintf(stderr, "rank %d: operation %u, reduction %u, type %u, %lld elements, peer %d: wrong\n", r->number, desc.op,
                by, dtype, (long long)count, desc.peer);
        _Exit(1);
    }
    weir_tensor_release(input);
    weir_tensor_release(output);
    weir_tensor_release(expected);
}

static void *operations(void *arg) {
    static const weir_dtype dtypes[] = {WEIR_F32, WEIR_S32, WEIR_S64, WEIR_S8, WEIR_F16, WEIR_BF16};
    static const int64_t counts[] = {1, 7, 1000};
    rank *r = arg;
    weir_comm *comm = make_comm(r);
    weir_comm_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_comm_get_info(comm, &info));
    CHECK_TEXT(info.transport, "NCCL 2.28.3, threads");
    CHECK_EQ(info.device_ops, 0x1fe);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (weir_comm_op op = WEIR_COMM_BROADCAST; op <= WEIR_COMM_ALL_TO_ALL; op++) {
                const int has_root = op == WEIR_COMM_BROADCAST || op == WEIR_COMM_REDUCE;
                const int reduces = op == WEIR_COMM_REDUCE || op == WEIR_COMM_ALL_REDUCE || op == WEIR_COMM_REDUCE_SCATTER;
                weir_communication desc = {.op = op};
                for (desc.peer = 0; desc.peer < (has_root ? SIZE : 1); desc.peer++) {
                    for (desc.reduction = 0; desc.reduction <= (reduces ? WEIR_COMM_MAX : 0); desc.reduction++) {
                        check_operation(r, comm, desc, dtypes[d], counts[c], 0);
                        if (has_root || op == WEIR_COMM_ALL_REDUCE) check_operation(r, comm, desc, dtypes[d], counts[c], 1);
                    }
                }
            }
        }
    }
    weir_comm_release(comm);
    return NULL;
}

/* ---- Random programs ------------------------------------------------------------------------------------------- */

typedef enum what {
    ADD, LARGER, HOST_ADD, ALL_REDUCE, HOST_ALL_REDUCE, BROADCAST, REDUCE, MESSAGE, BUCKET, GATHER, ALL_TO_ALL, COND, WHATS
} what;

typedef struct step {
    what what;
    int a, b, root, to;
    weir_comm_reduction by;
} step;

typedef struct plan {
    step steps[STEPS];
    int condition, sums;
} plan;

static uint64_t state;

static int draw(int below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)below);
}

/* The same for all ranks. Values: 0 is the input, and each step gives one. */
static plan draw_plan(uint64_t seed) {
    plan p = {.sums = 0};
    state = seed * 977 + 5;
    p.condition = draw(2);
    for (int i = 0; i < STEPS; i++) {
        step *s = &p.steps[i];
        s->what = (what)draw(WHATS);
        s->a = draw(2) ? i : draw(i + 1);
        s->b = draw(i + 1);
        s->root = draw(SIZE);
        s->to = (s->root + 1 + draw(SIZE - 1)) % SIZE;
        s->by = (weir_comm_reduction)(draw(2) ? WEIR_COMM_MAX : WEIR_COMM_MIN);
        /* Few sums: they must stay exact. */
        if (p.sums < 2 && draw(3) == 0) {
            s->by = WEIR_COMM_SUM;
            p.sums += s->what == ALL_REDUCE || s->what == HOST_ALL_REDUCE || s->what == REDUCE || s->what == GATHER;
        }
    }
    return p;
}

static float of_all(weir_comm_reduction by, float values[][SIZE][N], int of, int i) {
    float result = values[of][0][i];
    for (int r = 1; r < SIZE; r++) {
        const float v = values[of][r][i];
        if (by == WEIR_COMM_SUM) result += v;
        if (by == WEIR_COMM_MAX && v > result) result = v;
        if (by == WEIR_COMM_MIN && v < result) result = v;
    }
    return result;
}

static void interpret(const plan *p, float values[][SIZE][N]) {
    for (int at = 0; at < STEPS; at++) {
        const step *s = &p->steps[at];
        for (int r = 0; r < SIZE; r++) {
            for (int i = 0; i < N; i++) {
                const float a = values[s->a][r][i], b = values[s->b][r][i];
                float to = a;
                switch (s->what) {
                case ADD: case HOST_ADD: to = a + b; break;
                case LARGER: to = a > b ? a : b; break;
                case ALL_REDUCE: case HOST_ALL_REDUCE: to = of_all(s->by, values, s->a, i); break;
                case BROADCAST: to = values[s->a][s->root][i]; break;
                case REDUCE: if (r == s->root) to = of_all(s->by, values, s->a, i); break;
                case MESSAGE: if (r == s->to) to = values[s->a][s->root][i]; break;
                case BUCKET: to = of_all(WEIR_COMM_MAX, values, s->a, i) + of_all(WEIR_COMM_MAX, values, s->b, i); break;
                /* All ranks gather the same, so a sum of it is so many times this rank's part. */
                case GATHER: to = s->by == WEIR_COMM_SUM ? a * SIZE : a; break;
                case ALL_TO_ALL: to = values[s->a][i / (N / SIZE)][r * (N / SIZE) + i % (N / SIZE)]; break;
                default: to = p->condition ? of_all(s->by, values, s->a, i) : a + a; break;
                }
                values[at + 1][r][i] = to;
            }
        }
    }
}

static weir_value add(weir_graph *graph, weir_kernel *kernel, const weir_value *inputs, size_t num_inputs, size_t num_outputs, weir_value *outputs) {
    char name[32];
    static _Thread_local int number;
    snprintf(name, sizeof name, "node %d", number++);
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, inputs, num_inputs, outputs, num_outputs, NULL));
    weir_kernel_release(kernel);
    return num_outputs > 0 ? outputs[0] : 0;
}

static weir_kernel *binary_on(weir_engine *engine, const weir_binary_desc *desc) {
    weir_kernel *kernel = NULL;
    CHECK_OK(weir_kernel_create_binary(engine, desc, NULL, &kernel));
    return kernel;
}

/* A branch: one input, one output. */
static weir_graph *make_branch(rank *r, weir_comm *comm, const step *s, int communicates) {
    const weir_tensor_desc like = vector_desc(N);
    weir_graph *graph = make_graph(communicates ? "with ranks" : "alone");
    weir_value x, y;
    CHECK_OK(weir_graph_add_input(graph, "x", &like, &x));
    if (communicates) {
        add(graph, kernel_on(r->gpu, comm, (weir_communication){.op = WEIR_COMM_ALL_REDUCE, .reduction = s->by}), &x, 1, 1, &y);
    } else {
        add(graph, binary_on(r->gpu, BINARY(ADD)), (weir_value[]){x, x}, 2, 1, &y);
    }
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    return graph;
}

static weir_program *build(rank *r, weir_comm *comm, const plan *p, int outputs) {
    const weir_tensor_desc like = vector_desc(N), flag = make_desc(WEIR_S32, 1, 1, 0, 0);
    weir_engine *engines[2] = {r->cpu, r->gpu};
    weir_graph *graph = make_graph("ranks");
    weir_program *program = NULL;
    weir_value values[STEPS + 1], condition, two[2];
    CHECK_OK(weir_graph_add_input(graph, "x", &like, &values[0]));
    CHECK_OK(weir_graph_add_input(graph, "condition", &flag, &condition));
    for (int at = 0; at < STEPS; at++) {
        const step *s = &p->steps[at];
        const weir_value pair[2] = {values[s->a], values[s->b]};
        weir_value *to = &values[at + 1];
        weir_communication desc = {.reduction = s->by};
        *to = values[s->a];
        switch (s->what) {
        case ADD: add(graph, binary_on(r->gpu, BINARY(ADD)), pair, 2, 1, to); break;
        case LARGER: add(graph, binary_on(r->gpu, BINARY(MAX)), pair, 2, 1, to); break;
        case HOST_ADD: add(graph, binary_on(r->cpu, BINARY(ADD)), pair, 2, 1, to); break;
        case ALL_REDUCE:
        case HOST_ALL_REDUCE:
            desc.op = WEIR_COMM_ALL_REDUCE;
            add(graph, kernel_on(s->what == ALL_REDUCE ? r->gpu : r->cpu, comm, desc), pair, 1, 1, to);
            break;
        case BROADCAST:
            desc = (weir_communication){.op = WEIR_COMM_BROADCAST, .peer = s->root};
            add(graph, kernel_on(r->gpu, comm, desc), pair, 1, 1, to);
            break;
        case REDUCE:
            desc.op = WEIR_COMM_REDUCE;
            desc.peer = s->root;
            add(graph, kernel_on(r->gpu, comm, desc), pair, 1, 1, to);
            break;
        case MESSAGE:
            if (r->number == s->root) {
                add(graph, kernel_on(r->gpu, comm, (weir_communication){.op = WEIR_COMM_SEND, .peer = s->to}), pair, 1, 0, NULL);
            } else if (r->number == s->to) {
                desc = (weir_communication){.op = WEIR_COMM_RECV, .peer = s->root, .desc = like};
                add(graph, kernel_on(r->gpu, comm, desc), NULL, 0, 1, to);
            }
            break;
        case BUCKET:
            desc = (weir_communication){.op = WEIR_COMM_ALL_REDUCE, .reduction = WEIR_COMM_MAX, .num_tensors = 2};
            add(graph, kernel_on(r->gpu, comm, desc), pair, 2, 2, two);
            add(graph, binary_on(r->gpu, BINARY(ADD)), two, 2, 1, to);
            break;
        case GATHER:
            add(graph, kernel_on(r->gpu, comm, (weir_communication){.op = WEIR_COMM_ALL_GATHER}), pair, 1, 1, two);
            desc.op = WEIR_COMM_REDUCE_SCATTER;
            add(graph, kernel_on(r->gpu, comm, desc), two, 1, 1, to);
            break;
        case ALL_TO_ALL:
            add(graph, kernel_on(r->gpu, comm, (weir_communication){.op = WEIR_COMM_ALL_TO_ALL}), pair, 1, 1, to);
            break;
        default: {
            weir_graph *branches[2] = {make_branch(r, comm, s, 1), make_branch(r, comm, s, 0)};
            char name[32];
            snprintf(name, sizeof name, "cond %d", at);
            const weir_cond_desc cond = {.struct_size = sizeof cond, .predicate = condition, .then_graph = branches[0], .else_graph = branches[1], .inputs = pair, .num_inputs = 1};
            CHECK_OK(weir_graph_add_cond(graph, name, &cond, to, 1, NULL));
            weir_graph_destroy(branches[0]);
            weir_graph_destroy(branches[1]);
        }
        }
    }
    for (int i = 0; i < outputs; i++) {
        char name[32];
        snprintf(name, sizeof name, "y%d", i);
        CHECK_OK(weir_graph_add_output(graph, name, values[STEPS - i]));
    }
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    return program;
}

static int programs = 60;

static void *random_programs(void *arg) {
    enum { OUTPUTS = 4 };
    rank *r = arg;
    weir_comm *comm = make_comm(r);
    weir_tensor *input = make_tensor(r->cpu, vector_desc(N)), *condition = make_tensor(r->cpu, make_desc(WEIR_S32, 1, 1, 0, 0));
    weir_tensor *inputs[2] = {input, condition}, *outputs[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) outputs[i] = make_tensor(r->cpu, vector_desc(N));
    for (int seed = 0; seed < programs; seed++) {
        static _Thread_local float values[STEPS + 1][SIZE][N];
        pthread_barrier_wait(&all);
        /* The generator is one for all: drawn by one rank after the other. */
        static pthread_mutex_t drawing = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&drawing);
        const plan p = draw_plan((uint64_t)seed);
        pthread_mutex_unlock(&drawing);
        weir_program *program = build(r, comm, &p, OUTPUTS);
        CHECK_OK(weir_program_agree(program, comm, LIMIT));
        ((int32_t *)data_of(condition))[0] = p.condition;
        for (int run = 0; run < 4; run++) {
            for (int other = 0; other < SIZE; other++) {
                for (int i = 0; i < N; i++) values[0][other][i] = (float)value(other + run, i);
            }
            memcpy(floats(input), values[0][r->number], sizeof values[0][0]);
            interpret(&p, values);
            if (run % 2 == 0) {
                CHECK_OK(weir_program_run(program, NULL, inputs, 2, outputs, OUTPUTS, NULL));
            } else {
                CHECK_OK(weir_program_run(program, r->stream, inputs, 2, outputs, OUTPUTS, NULL));
                CHECK_OK(weir_stream_synchronize(r->stream, WEIR_TIMEOUT_INFINITE));
            }
            for (int o = 0; o < OUTPUTS; o++) {
                for (int i = 0; i < N; i++) {
                    if (floats(outputs[o])[i] == values[STEPS - o][r->number][i]) continue;
                    fprintf(stderr, "rank %d, program %d, run %d, value %d[%d]: %g, expected %g\n", r->number, seed, run, STEPS - o, i,
                            (double)floats(outputs[o])[i], (double)values[STEPS - o][r->number][i]);
                    _Exit(1);
                }
            }
        }
        weir_program_release(program);
    }
    for (int i = 0; i < OUTPUTS; i++) weir_tensor_release(outputs[i]);
    weir_tensor_release(input);
    weir_tensor_release(condition);
    weir_comm_release(comm);
    return NULL;
}

/* ---- Failures -------------------------------------------------------------------------------------------------- */

/* y = sum over the ranks, on the device; before it, in a node of the host's, what `fails` says. */
static int32_t fail_if(void *arg, weir_kernel_context *context) {
    const int *fails = arg;
    const weir_tensor_view *from = NULL, *to = NULL;
    size_t count = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &from, &count));
    CHECK_OK(weir_kernel_context_get_outputs(context, &to, &count));
    memcpy(to->data, from->data, N * sizeof(float));
    return *fails ? WEIR_DATA_LOSS : WEIR_OK;
}

static weir_program *make_sum(rank *r, weir_comm *comm, int *fails) {
    const weir_tensor_desc like = vector_desc(N);
    weir_engine *engines[2] = {r->cpu, r->gpu};
    weir_graph *graph = make_graph("sum");
    weir_kernel *step = make_unary_kernel(r->cpu, "step", fail_if, fails, &like);
    weir_program *program = NULL;
    weir_value x, first, own, y;
    CHECK_OK(weir_graph_add_input(graph, "x", &like, &x));
    weir_kernel *sum = kernel_on(r->gpu, comm, (weir_communication){.op = WEIR_COMM_ALL_REDUCE});
    CHECK_OK(weir_graph_add_kernel(graph, "first", sum, &x, 1, &first, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "step", step, &first, 1, &own, 1, NULL));
    CHECK_OK(weir_graph_add_kernel(graph, "second", sum, &own, 1, &y, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", y));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_kernel_release(step);
    weir_kernel_release(sum);
    weir_graph_destroy(graph);
    return program;
}

static weir_status run_sum(weir_program *program, weir_tensor *x, weir_tensor *y) {
    for (int i = 0; i < N; i++) floats(x)[i] = (float)i;
    return weir_program_run(program, NULL, &x, 1, &y, 1, NULL);
}

/* The device is there for others: its streams have gone on. */
static void check_alive(rank *r) {
    weir_tensor *there = make_tensor(r->gpu, vector_desc(N)), *here = make_tensor(r->cpu, vector_desc(N));
    CHECK_OK(weir_stream_clear_error(r->stream));
    CHECK_OK(weir_enqueue_fill(r->stream, there, 0));
    CHECK_OK(weir_enqueue_copy(r->stream, there, here));
    CHECK_OK(weir_stream_synchronize(r->stream, 20 * SECOND));
    CHECK(floats(here)[N - 1] == 0);
    weir_tensor_release(there);
    weir_tensor_release(here);
}

/* A node fails on rank 1 between two operations: all hear of it, with its text, and the others go on without it. */
static void *a_rank_fails(void *arg) {
    rank *r = arg;
    int fails = 0;
    weir_comm *comm = make_comm(r), *rest = NULL;
    weir_program *program = make_sum(r, comm, &fails);
    weir_tensor *x = make_tensor(r->cpu, vector_desc(N)), *y = make_tensor(r->cpu, vector_desc(N));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(run_sum(program, x, y));
        CHECK(floats(y)[5] == 5.f * SIZE * SIZE);
    }
    pthread_barrier_wait(&all);
    fails = r->number == 1;
    if (r->number == 1) {
        CHECK_CODE(run_sum(program, x, y), WEIR_DATA_LOSS, "node 'step'");
    } else {
        CHECK_CODE(run_sum(program, x, y), WEIR_ABORTED, "rank 1 gave up");
        CHECK_TEXT(weir_last_error_message(), "node 'step': its compute function failed with DATA_LOSS");
    }
    CHECK_CODE(run_sum(program, x, y), r->number == 1 ? WEIR_DATA_LOSS : WEIR_ABORTED, "is dead");
    check_alive(r);
    weir_program_release(program);
    pthread_barrier_wait(&all);
    if (r->number != 1) {
        const float sum = 5.f * (SIZE - 1) * (SIZE - 1);
        make_current(r);
        CHECK_OK(weir_comm_recover(comm, NULL, &rest));
        program = make_sum(r, rest, &fails);
        CHECK_OK(run_sum(program, x, y));
        CHECK(floats(y)[5] == sum);
        weir_program_release(program);
        weir_comm_release(rest);
    }
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_comm_release(comm);
    return NULL;
}

/* Rank 2 does not come: the limit ends the others' runs, with no control messages as well. */
static void *a_rank_is_late(void *arg) {
    rank *r = arg;
    for (int has_host = 0; has_host < 2; has_host++) {
        int fails = 0;
        weir_comm *comm = make_comm_with(r, 0, SECOND / 4, has_host);
        weir_program *program = make_sum(r, comm, &fails);
        weir_tensor *x = make_tensor(r->cpu, vector_desc(N)), *y = make_tensor(r->cpu, vector_desc(N));
        pthread_barrier_wait(&all);
        if (r->number != 2) {
            const uint64_t begin = now_ns();
            const weir_status status = run_sum(program, x, y);
            CHECK(status == WEIR_DEADLINE_EXCEEDED || (has_host && status == WEIR_ABORTED));
            CHECK_TEXT(weir_last_error_message(), "not over within 250000000 ns");
            CHECK(now_ns() - begin < 20 * SECOND);
            check_alive(r);
        }
        pthread_barrier_wait(&all);
        weir_program_release(program);
        weir_tensor_release(x);
        weir_tensor_release(y);
        weir_comm_release(comm);
    }
    return NULL;
}

/* Given up while a stream has an operation: the stream goes on, and says so. */
static void *given_up_on_a_stream(void *arg) {
    rank *r = arg;
    weir_comm *comm = make_comm(r);
    weir_kernel *kernel = kernel_on(r->gpu, comm, (weir_communication){.op = WEIR_COMM_ALL_REDUCE});
    weir_tensor *x = make_tensor(r->gpu, vector_desc(N));
    pthread_barrier_wait(&all);
    if (r->number != 3) {
        CHECK_OK(weir_enqueue_fill(r->stream, x, 0));
        CHECK_OK(weir_enqueue(r->stream, kernel, &x, 1, &x, 1));
        CHECK_CODE(weir_stream_synchronize(r->stream, WEIR_TIMEOUT_INFINITE), WEIR_ABORTED, "rank 3 gave up");
        CHECK_TEXT(weir_last_error_message(), "enough of this");
        CHECK_CODE(weir_enqueue(r->stream, kernel, &x, 1, &x, 1), WEIR_FAILED_PRECONDITION, "has failed");
        check_alive(r);
    } else {
        sleep_ns(20000000);
        CHECK_OK(weir_comm_abort(comm, "enough of this"));
    }
    pthread_barrier_wait(&all);
    weir_tensor_release(x);
    weir_kernel_release(kernel);
    weir_comm_release(comm);
    return NULL;
}

/* Rank 0 has two operations the other way round. NCCL would say nothing. */
static void *swapped(void *arg) {
    rank *r = arg;
    weir_comm *comm = make_comm_with(r, WEIR_COMM_CHECKED, LIMIT, 1);
    weir_engine *engines[2] = {r->cpu, r->gpu};
    const weir_tensor_desc like = vector_desc(N);
    weir_graph *graph = make_graph("swapped");
    weir_program *program = NULL;
    weir_value x, values[2];
    CHECK_OK(weir_graph_add_input(graph, "x", &like, &x));
    for (int i = 0; i < 2; i++) {
        const int first = (r->number == 0) == (i == 0);
        weir_communication desc = {.op = first ? WEIR_COMM_ALL_REDUCE : WEIR_COMM_BROADCAST};
        weir_kernel *kernel = kernel_on(r->gpu, comm, desc);
        CHECK_OK(weir_graph_add_kernel(graph, first ? "sum" : "root's", kernel, &x, 1, &values[i], 1, NULL));
        CHECK_OK(weir_graph_add_output(graph, first ? "sum" : "root's", values[i]));
        weir_kernel_release(kernel);
    }
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_tensor *in = make_tensor(r->cpu, like), *out[2] = {make_tensor(r->cpu, like), make_tensor(r->cpu, like)};
    for (int i = 0; i < N; i++) floats(in)[i] = 1;
    const weir_status status = weir_program_run(program, NULL, &in, 1, out, 2, NULL);
    CHECK(status == WEIR_FAILED_PRECONDITION || status == WEIR_ABORTED);
    CHECK_TEXT(weir_last_error_message(), "all_reduce f32[24] on cuda");
    CHECK_TEXT(weir_last_error_message(), "broadcast f32[24] on cuda");
    check_alive(r);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_tensor_release(in);
    weir_tensor_release(out[0]);
    weir_tensor_release(out[1]);
    weir_comm_release(comm);
    return NULL;
}

/* Before they run, weir_program_agree says that rank 2 has an operation elsewhere. */
static void *agreement(void *arg) {
    rank *r = arg;
    int fails = 0;
    weir_comm *comm = make_comm(r);
    weir_engine *engines[2] = {r->cpu, r->gpu};
    const weir_tensor_desc like = vector_desc(N);
    weir_graph *graph = make_graph("differs");
    weir_program *program = make_sum(r, comm, &fails);
    weir_value x, values[1];
    CHECK_OK(weir_program_agree(program, comm, LIMIT));
    weir_program_release(program);
    CHECK_OK(weir_graph_add_input(graph, "x", &like, &x));
    weir_kernel *kernel = kernel_on(r->number == 2 ? r->cpu : r->gpu, comm, (weir_communication){.op = WEIR_COMM_ALL_REDUCE});
    CHECK_OK(weir_graph_add_kernel(graph, "sum", kernel, &x, 1, values, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", values[0]));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    CHECK_CODE(weir_program_agree(program, comm, LIMIT), WEIR_FAILED_PRECONDITION, "differ at collective 1");
    CHECK_TEXT(weir_last_error_message(), "rank 2 has node 'sum' (all_reduce f32[24])");
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
    weir_comm_release(comm);
    return NULL;
}

/* NCCL finds out that rank 0's network is gone. */
static void *network_breaks(void *arg) {
    rank *r = arg;
    int fails = 0;
    weir_comm *comm = make_comm(r);
    weir_program *program = make_sum(r, comm, &fails);
    weir_tensor *x = make_tensor(r->cpu, vector_desc(N)), *y = make_tensor(r->cpu, vector_desc(N));
    CHECK_OK(run_sum(program, x, y));
    pthread_barrier_wait(&all);
    if (r->number == 0) break_network(0);
    pthread_barrier_wait(&all);
    const weir_status status = run_sum(program, x, y);
    CHECK_EQ(status, r->number == 0 ? WEIR_UNAVAILABLE : WEIR_ABORTED);
    CHECK_TEXT(weir_last_error_message(), "NCCL's result 6");
    check_alive(r);
    pthread_barrier_wait(&all);
    weir_program_release(program);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_comm_release(comm);
    return NULL;
}

/* Two runs at once have a communicator each; with one, the second is refused. */
static void *duplicates(void *arg) {
    rank *r = arg;
    int fails = 0;
    weir_comm *comms[2] = {make_comm(r), NULL};
    weir_program *of[2];
    weir_run *runs[2];
    weir_tensor *x = make_tensor(r->cpu, vector_desc(N)), *y[2] = {make_tensor(r->cpu, vector_desc(N)), make_tensor(r->cpu, vector_desc(N))};
    weir_threadpool *pool = NULL;
    weir_stream *streams[2];
    CHECK_OK(weir_threadpool_create_builtin(&(weir_threadpool_options){.struct_size = sizeof(weir_threadpool_options), .num_threads = 2}, &pool));
    CHECK_OK(weir_comm_duplicate(comms[0], NULL, &comms[1]));
    for (int i = 0; i < N; i++) floats(x)[i] = 1;
    for (int i = 0; i < 2; i++) {
        of[i] = make_sum(r, comms[i], &fails);
        streams[i] = make_stream(r->cpu, WEIR_STREAM_ASYNCHRONOUS, pool, NULL);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 2; i++) CHECK_OK(weir_program_start(of[i], streams[i], &x, 1, &y[i], 1, NULL, &runs[i]));
        for (int i = 0; i < 2; i++) {
            CHECK_OK(weir_run_synchronize(runs[i], WEIR_TIMEOUT_INFINITE));
            weir_run_release(runs[i]);
            CHECK(floats(y[i])[0] == SIZE * SIZE);
        }
    }
    for (int i = 0; i < 2; i++) {
        weir_program_release(of[i]);
        weir_stream_release(streams[i]);
        weir_comm_release(comms[i]);
        weir_tensor_release(y[i]);
    }
    weir_tensor_release(x);
    weir_threadpool_release(pool);
    return NULL;
}

static void report(void *arg, const weir_conformance_line *line) {
    int *passed = arg;
    *passed += line->verdict == WEIR_CONFORMANCE_PASS;
    if (line->verdict == WEIR_CONFORMANCE_FAIL || line->verdict == WEIR_CONFORMANCE_NOT_CHECKED) {
        fprintf(stderr, "%s: %s: %s\n", line->clause, line->title, line->text);
    }
    if (strcmp(line->clause, "T12") == 0 || strcmp(line->clause, "T13") == 0) CHECK_EQ(line->verdict, WEIR_CONFORMANCE_PASS);
}

/* The adapter keeps the contract, clause by clause. */
static void *conformance(void *arg) {
    rank *r = arg;
    const weir_conformance_options options = {.struct_size = sizeof options, .budget_ns = 20 * SECOND};
    const weir_nccl_options nccl = {.host = &thread_vtable, .host_ctx = thread_rank_make(between, r->number, r->left)};
    weir_comm_vtable vtable;
    void *ctx = NULL;
    int passed = 0;
    int32_t failed = -1;
    make_current(r);
    CHECK_EQ(weir_nccl_vtable_create(&nccl, &vtable, &ctx), WEIR_OK);
    CHECK_OK(weir_comm_conformance(&vtable, ctx, &options, report, &passed, &failed));
    CHECK_EQ(failed, 0);
    CHECK(passed >= 8);
    vtable.release(ctx);
    return NULL;
}

/* What is refused, and with which words. */
static void *refusals(void *arg) {
    rank *r = arg;
    weir_comm *comm = make_comm(r), *plain = make_comm_with(r, 0, LIMIT, 0);
    weir_kernel *kernel = NULL;
    weir_graph *graph = make_graph("empty");
    weir_program *program = NULL;
    weir_communication desc = {.struct_size = sizeof desc, .op = WEIR_COMM_BARRIER};
    CHECK_CODE(weir_kernel_create_communication(r->gpu, comm, &desc, NULL, &kernel), WEIR_UNIMPLEMENTED, "does no barrier in the memory of cuda:");
    desc.op = WEIR_COMM_ALL_REDUCE;
    desc.flags = WEIR_COMMUNICATION_DETERMINISTIC;
    CHECK_CODE(weir_kernel_create_communication(r->gpu, comm, &desc, NULL, &kernel), WEIR_UNIMPLEMENTED, "WEIR_COMMUNICATION_DETERMINISTIC");
    desc.flags = 0;
    CHECK_CODE(weir_kernel_create_communication(ranks[(r->number + 1) % SIZE].gpu, comm, &desc, NULL, &kernel), WEIR_INVALID_ARGUMENT, "takes memory of cuda:");
    CHECK_CODE(weir_kernel_create_communication(r->cpu, plain, &desc, NULL, &kernel), WEIR_INVALID_ARGUMENT, "takes no memory of the host");
    weir_communication message = {.struct_size = sizeof message, .op = WEIR_COMM_SEND, .peer = (r->number + 1) % SIZE, .tag = 7};
    CHECK_CODE(weir_kernel_create_communication(r->gpu, comm, &message, NULL, &kernel), WEIR_OUT_OF_RANGE, "desc->tag is 7, and messages on a device have none");
    CHECK_OK(weir_kernel_create_communication(r->gpu, comm, &desc, NULL, &kernel));
    weir_tensor *flags = make_tensor(r->gpu, make_desc(WEIR_BOOL, 1, N, 0, 0));
    CHECK_CODE(weir_enqueue(r->stream, kernel, &flags, 1, &flags, 1), WEIR_UNIMPLEMENTED, "the transport reduces no bool on cuda");
    CHECK_OK(weir_graph_compile(graph, &r->cpu, 1, NULL, &program));
    CHECK_CODE(weir_program_agree(program, plain, LIMIT), WEIR_UNIMPLEMENTED, "takes no memory of the host");
    weir_nccl_options none = {.size = 0};
    char text[400];
    none.text = text;
    none.text_capacity = sizeof text;
    weir_comm *made = NULL;
    CHECK_EQ(weir_nccl_comm_create(&none, NULL, &made), WEIR_INVALID_ARGUMENT);
    CHECK_TEXT(text, "neither `host`");
    none.library = "no_such_nccl.so";
    none.id = &shared_id;
    none.size = 1;
    CHECK_EQ(weir_nccl_comm_create(&none, NULL, &made), WEIR_UNIMPLEMENTED);
    CHECK_TEXT(text, "NCCL cannot be opened as 'no_such_nccl.so'");
    CHECK_TEXT(text, "No such file");
    none.library = "libcuda.so.1";
    CHECK_EQ(weir_nccl_comm_create(&none, NULL, &made), WEIR_UNIMPLEMENTED);
    CHECK_TEXT(text, "NCCL, opened as 'libcuda.so.1', has no ncclGetVersion");
    weir_nccl_id id;
    CHECK_CODE(weir_nccl_id_create("no_such_nccl.so", &id), WEIR_UNIMPLEMENTED,
               "NCCL cannot be opened as 'no_such_nccl.so'");
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_tensor_release(flags);
    weir_kernel_release(kernel);
    weir_comm_release(comm);
    weir_comm_release(plain);
    return NULL;
}

int main(void) {
    void (*end)(void);
    /* What has made an id has a thread of NCCL's in it. */
    CHECK_OK(weir_nccl_id_create(NULL, &shared_id));
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL);
    void *found = dlsym(library, "fakeNcclBreak");
    CHECK(found != NULL);
    memcpy(&break_network, &found, sizeof found);
    found = dlsym(library, "fakeNcclEnd");
    memcpy(&end, &found, sizeof found);
    programs = scale(programs);
    pthread_barrier_init(&all, NULL, SIZE);
    for (int i = 0; i < SIZE; i++) {
        ranks[i].number = i;
        for (int other = 0; other < SIZE; other++) ranks[i].left[other] = other != 1;
        ranks[i].cpu = make_engine(NULL);
        CHECK_OK(weir_engine_create(WEIR_ENGINE_CUDA, (uint32_t)i, NULL, &ranks[i].gpu));
        CHECK_OK(weir_stream_create(ranks[i].gpu, 0, NULL, &ranks[i].stream));
    }
    on_all(operations);
    on_all(random_programs);
    on_all(a_rank_fails);
    on_all(a_rank_is_late);
    on_all(given_up_on_a_stream);
    on_all(swapped);
    on_all(agreement);
    on_all(network_breaks);
    on_all(duplicates);
    on_all(conformance);
    on_all(refusals);
    end();
    for (int i = 0; i < SIZE; i++) {
        weir_stream_release(ranks[i].stream);
        weir_engine_release(ranks[i].gpu);
        weir_engine_release(ranks[i].cpu);
    }
    pthread_barrier_destroy(&all);
    CHECK_EQ(runtime_info().comms, 0);
    printf("passed\n");
    return 0;
}
