/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Graphs and streams whose values cross the ranks of MPI: every operation against what it must give, gradients with
 * computing between them, two communicators, and what all ranks hear of a failure on one.
 */

#include <math.h>

#include "mpi_ranks.h"

#include "make.h"
#include "rank_values.h"

#define LIMIT (UINT64_C(30) * 1000000000)

static weir_comm *make_comm(const char *name, uint64_t flags) {
    weir_comm_options options = {.struct_size = sizeof options, .name = name, .flags = flags, .limit_ns = LIMIT};
    weir_comm *comm = NULL;
    CHECK_OK(weir_mpi_comm_create(MPI_COMM_WORLD, &options, &comm));
    return comm;
}

static weir_kernel *make_communication(weir_engine *engine, weir_comm *comm, weir_communication desc) {
    weir_kernel *kernel = NULL;
    desc.struct_size = sizeof desc;
    CHECK_OK(weir_kernel_create_communication(engine, comm, &desc, NULL, &kernel));
    return kernel;
}

/* Runs one operation on a stream. */
static void enqueue(weir_stream *stream, weir_comm *comm, weir_communication desc, weir_tensor *input,
                    weir_tensor *output) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_stream_get_engine(stream, &engine));
    weir_kernel *kernel = make_communication(engine, comm, desc);
    CHECK_OK(weir_enqueue(stream, kernel, &input, input != NULL, &output, output != NULL));
    CHECK_OK(weir_stream_synchronize(stream, UINT64_MAX));
    weir_kernel_release(kernel);
}

static void *data_of(weir_tensor *tensor) {
    void *data = NULL;
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    return data;
}

static void check_operation(weir_stream *stream, weir_comm *comm, weir_communication desc, weir_dtype dtype,
                            int64_t count) {
    weir_engine *engine = NULL;
    const int64_t own = rank * count;
    const weir_comm_reduction reduction = desc.reduction == 0 ? (weir_comm_reduction)WEIR_COMM_SUM : desc.reduction;
    int64_t in = count, out = count;
    size_t bytes = 0;
    if (desc.op == WEIR_COMM_ALL_GATHER) out = count * size;
    if (desc.op == WEIR_COMM_REDUCE_SCATTER || desc.op == WEIR_COMM_ALL_TO_ALL) in = count * size;
    if (desc.op == WEIR_COMM_ALL_TO_ALL) out = in;
    CHECK_OK(weir_stream_get_engine(stream, &engine));
    weir_tensor *input = make_tensor(engine, make_desc(dtype, 1, in, 0, 0));
    weir_tensor *output = make_tensor(engine, make_desc(dtype, 1, out, 0, 0));
    weir_tensor *expected = make_tensor(engine, make_desc(dtype, 1, out, 0, 0));
    for (int64_t i = 0; i < in; i++) put(data_of(input), dtype, i, value(rank, i));
    for (int64_t i = 0; i < out; i++) {
        int number = 0;
        switch (desc.op) {
        case WEIR_COMM_BROADCAST: number = value(desc.peer, i); break;
        case WEIR_COMM_REDUCE: number = rank == desc.peer ? reduced(reduction, size, i) : value(rank, i); break;
        case WEIR_COMM_ALL_REDUCE: number = reduced(reduction, size, i); break;
        case WEIR_COMM_ALL_GATHER: number = value((int)(i / count), i % count); break;
        case WEIR_COMM_REDUCE_SCATTER: number = reduced(reduction, size, own + i); break;
        default: number = value((int)(i / count), own + i % count); break;
        }
        put(data_of(expected), dtype, i, number);
    }
    enqueue(stream, comm, desc, input, output);
    CHECK_OK(weir_tensor_get_size(output, &bytes));
    if (memcmp(data_of(output), data_of(expected), bytes) != 0) {
        fprintf(stderr, "rank %d: operation %u, reduction %u, type %u, %lld elements, peer %d, flags %llu: wrong\n",
                rank, desc.op, reduction, dtype, (long long)count, desc.peer, (unsigned long long)desc.flags);
        fflush(NULL);
        _Exit(1);
    }
    weir_tensor_release(input);
    weir_tensor_release(output);
    weir_tensor_release(expected);
}

static void test_operations(weir_stream *stream, weir_comm *comm) {
    static const weir_dtype dtypes[] = {WEIR_F32, WEIR_S32, WEIR_U8, WEIR_S8, WEIR_S64, WEIR_F16, WEIR_BF16};
    static const int64_t counts[] = {1, 3, 1001, 40001};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            for (weir_comm_op op = WEIR_COMM_BROADCAST; op <= WEIR_COMM_ALL_TO_ALL; op++) {
                weir_communication desc = {.op = op};
                const int has_root = op == WEIR_COMM_BROADCAST || op == WEIR_COMM_REDUCE;
                const int reduces =
                    op == WEIR_COMM_REDUCE || op == WEIR_COMM_ALL_REDUCE || op == WEIR_COMM_REDUCE_SCATTER;
                for (desc.peer = 0; desc.peer < (has_root ? size : 1); desc.peer++) {
                    for (weir_comm_reduction r = 0; r <= (reduces ? WEIR_COMM_MAX : 0); r++) {
                        /* Bytes without a sign have no negative minimum. */
                        if (dtypes[d] == WEIR_U8 && r >= WEIR_COMM_MIN) continue;
                        desc.reduction = r;
                        desc.flags = 0;
                        check_operation(stream, comm, desc, dtypes[d], counts[c]);
                        if (!reduces) continue;
                        desc.flags = WEIR_COMMUNICATION_DETERMINISTIC;
                        check_operation(stream, comm, desc, dtypes[d], counts[c]);
                    }
                }
            }
        }
    }
}

/* Around the circle, from even ranks first: sends may wait for their receives. */
static void test_messages(weir_stream *stream, weir_comm *comm) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_stream_get_engine(stream, &engine));
    const int64_t counts[] = {1, 777, 300000};
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const weir_tensor_desc desc = vector_desc(counts[c]);
        weir_tensor *mine = make_tensor(engine, desc), *other = make_tensor(engine, desc);
        const weir_communication send = {.op = WEIR_COMM_SEND, .peer = next, .tag = 16383};
        const weir_communication recv = {.op = WEIR_COMM_RECV, .peer = before, .tag = 16383, .desc = desc};
        fill(mine, rank);
        if (rank % 2 == 0) enqueue(stream, comm, send, mine, NULL);
        enqueue(stream, comm, recv, NULL, other);
        if (rank % 2 != 0) enqueue(stream, comm, send, mine, NULL);
        fill(mine, before);
        CHECK(memcmp(floats(mine), floats(other), num_floats(mine) * sizeof(float)) == 0);
        weir_tensor_release(mine);
        weir_tensor_release(other);
    }
    enqueue(stream, comm, (weir_communication){.op = WEIR_COMM_BARRIER}, NULL, NULL);
}

/* NaN on any rank, and the sign of zeros: as weir.h says, whatever MPI does. Sums in rank order have one result. */
static void test_bits(weir_stream *stream, weir_comm *comm) {
    weir_engine *engine = NULL;
    CHECK_OK(weir_stream_get_engine(stream, &engine));
    weir_tensor *in = make_tensor(engine, vector_desc(1000)), *out = make_tensor(engine, vector_desc(1000));
    weir_communication desc = {.op = WEIR_COMM_ALL_REDUCE};
    for (int owner = 0; owner < size; owner++) {
        for (int i = 0; i < 1000; i += 2) {
            floats(in)[i] = rank == owner ? NAN : 1;
            floats(in)[i + 1] = rank == owner ? -0.0f : 0;
        }
        desc.reduction = WEIR_COMM_MIN;
        enqueue(stream, comm, desc, in, out);
        for (int i = 0; i < 1000; i += 2) CHECK(isnan(floats(out)[i]) && signbit(floats(out)[i + 1]));
        desc.reduction = WEIR_COMM_MAX;
        enqueue(stream, comm, desc, in, out);
        for (int i = 0; i < 1000; i += 2) CHECK(isnan(floats(out)[i]) && !signbit(floats(out)[i + 1]));
    }
    desc.reduction = WEIR_COMM_SUM;
    desc.flags = WEIR_COMMUNICATION_DETERMINISTIC;
    for (int i = 0; i < 1000; i++) floats(in)[i] = 1.0f / (float)(3 + i + 17 * rank);
    enqueue(stream, comm, desc, in, out);
    for (int i = 0; i < 1000; i++) {
        float sum = 1.0f / (float)(3 + i);
        for (int r = 1; r < size; r++) sum += 1.0f / (float)(3 + i + 17 * r);
        CHECK(memcmp(&sum, &floats(out)[i], sizeof sum) == 0);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
}

/* y = x / 2 + 1, slowly. On the rank of `fails_on` it fails in the run of that number. */
typedef struct layer {
    atomic_int runs;
    int fails_on, fails_in;
} layer;

static int32_t compute_layer(void *user, weir_kernel_context *context) {
    layer *self = (layer *)user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    if (atomic_fetch_add(&self->runs, 1) == self->fails_in && rank == self->fails_on) {
        return weir_kernel_context_fail(context, WEIR_DATA_LOSS, "a layer is broken");
    }
    for (int64_t i = 0; i < in->desc.dims[0]; i++) ((float *)out->data)[i] = ((const float *)in->data)[i] / 2 + 1;
    return WEIR_OK;
}

enum { LAYERS = 32, WIDTH = 2000 };

/* A step of training in small: layers one after another, and an all_reduce of what each gives, which the next does not
 * wait for. Every second one goes by the second communicator, if there is one. */
static weir_program *make_step(weir_engine *engine, weir_comm *const *comms, int num_comms, layer *self) {
    const weir_tensor_desc desc = vector_desc(WIDTH);
    weir_graph *graph = make_graph("step");
    weir_kernel *compute = make_unary_kernel(engine, "layer", compute_layer, self, &desc);
    weir_kernel *sums[2] = {NULL, NULL};
    weir_value x, sum;
    for (int c = 0; c < num_comms; c++) {
        sums[c] = make_communication(engine, comms[c], (weir_communication){.op = WEIR_COMM_ALL_REDUCE});
    }
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, compute, &x, 1, &x, 1, NULL));
        snprintf(name, sizeof name, "gradient %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, sums[i % num_comms], &x, 1, &sum, 1, NULL));
        CHECK_OK(weir_graph_add_output(graph, name, sum));
    }
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(compute);
    for (int c = 0; c < num_comms; c++) weir_kernel_release(sums[c]);
    return program;
}

/* The tensors of such a step. */
typedef struct tensors {
    weir_tensor *x, *out[LAYERS];
} tensors;

static void tensors_create(tensors *t, weir_engine *engine) {
    t->x = make_tensor(engine, vector_desc(WIDTH));
    for (int i = 0; i < LAYERS; i++) t->out[i] = make_tensor(engine, vector_desc(WIDTH));
}

static void tensors_destroy(tensors *t) {
    weir_tensor_release(t->x);
    for (int i = 0; i < LAYERS; i++) weir_tensor_release(t->out[i]);
}

static weir_status run_step(weir_program *program, tensors *t) {
    fill(t->x, rank);
    for (int i = 0; i < LAYERS; i++) memset(floats(t->out[i]), 0xff, WIDTH * sizeof(float));
    return weir_program_run(program, NULL, &t->x, 1, t->out, LAYERS, NULL);
}

static void check_step(const tensors *t) {
    for (int e = 0; e < WIDTH; e++) {
        double all[64];
        for (int r = 0; r < size; r++) all[r] = (double)((int)(((unsigned)e * 7u + (unsigned)r * 13u) % 17u) - 8);
        for (int i = 0; i < LAYERS; i++) {
            double sum = 0;
            for (int r = 0; r < size; r++) sum += all[r] = (double)((float)all[r] / 2 + 1);
            CHECK(fabs((double)floats(t->out[i])[e] - sum) < 1e-5);
        }
    }
}

static void test_steps(weir_comm *const *comms, int num_comms, weir_threadpool *pool, int runs) {
    layer self = {.fails_on = -1};
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_step(engine, comms, num_comms, &self);
    tensors t;
    tensors_create(&t, engine);
    CHECK_OK(weir_program_agree(program, comms[0], LIMIT));
    for (int i = 0; i < runs; i++) {
        CHECK_OK(run_step(program, &t));
        check_step(&t);
    }
    tensors_destroy(&t);
    weir_program_release(program);
    weir_engine_release(engine);
}

/* Programs that differ: all ranks hear which node, before anything runs. */
static void test_disagreement(weir_threadpool *pool) {
    weir_comm *comm = make_comm("differing", 0);
    weir_engine *engine = make_engine(pool);
    const weir_tensor_desc desc = vector_desc(10);
    weir_graph *graph = make_graph("differs");
    weir_program *program = NULL;
    weir_value x;
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < 5; i++) {
        char name[16];
        weir_communication what = {.op = WEIR_COMM_ALL_REDUCE};
        if (i == 3 && rank == 1) what.reduction = WEIR_COMM_MAX;
        weir_kernel *kernel = make_communication(engine, comm, what);
        snprintf(name, sizeof name, "node %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, kernel, &x, 1, &x, 1, NULL));
        weir_kernel_release(kernel);
    }
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    program = compile(graph, engine);
    CHECK_CODE(weir_program_agree(program, comm, LIMIT), WEIR_FAILED_PRECONDITION, "node 3");
    CHECK_TEXT(weir_last_error_message(), "rank 1");
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_engine_release(engine);
    weir_comm_release(comm);
}

/* A kernel fails on the last rank: no rank is left waiting, and all of them hear where it was. */
static void test_failure(weir_threadpool *pool) {
    const int culprit = size - 1;
    weir_comm *comm = make_comm("failing", 0);
    layer self = {.fails_on = culprit, .fails_in = 2 * LAYERS + LAYERS / 2};
    weir_engine *engine = make_engine(pool);
    weir_program *program = make_step(engine, &comm, 1, &self);
    weir_comm_info info = {.struct_size = sizeof info};
    tensors t;
    char name[32];
    tensors_create(&t, engine);
    snprintf(name, sizeof name, "rank %d", culprit);
    CHECK_OK(run_step(program, &t));
    CHECK_OK(run_step(program, &t));
    meet(); /* a failure ends what other ranks are at, be it the run before */
    const uint64_t began = now_ns();
    const weir_status status = run_step(program, &t);
    CHECK(now_ns() - began < LIMIT);
    if (rank == culprit) {
        CHECK_EQ(status, WEIR_DATA_LOSS);
        CHECK_TEXT(weir_last_error_message(), "a layer is broken");
    } else {
        CHECK(status != WEIR_OK);
        CHECK_TEXT(weir_last_error_message(), name);
    }
    CHECK_OK(weir_comm_get_info(comm, &info));
    CHECK_EQ(info.dead, 1);
    CHECK(run_step(program, &t) != WEIR_OK);
    tensors_destroy(&t);
    weir_program_release(program);
    weir_engine_release(engine);
    weir_comm_release(comm);
}

/* MPI goes on with operations that were given up, also when weir has released all: it writes into no memory that others
 * have got meanwhile. */
static void test_late_writes(void) {
    enum { BLOCKS = 200, BYTES = WIDTH * sizeof(float) };
    static unsigned char *blocks[BLOCKS], untouched[BYTES];
    memset(untouched, 0xa5, BYTES);
    for (int b = 0; b < BLOCKS; b++) {
        blocks[b] = malloc(BYTES);
        CHECK(blocks[b] != NULL);
        memset(blocks[b], 0xa5, BYTES);
    }
    for (int i = 0; i < 20; i++) meet();
    for (int b = 0; b < BLOCKS; b++) {
        CHECK(memcmp(blocks[b], untouched, BYTES) == 0);
        free(blocks[b]);
    }
    meet();
}

int main(int argc, char **argv) {
    const int fails = argc > 1 && strcmp(argv[1], "failure") == 0;
    const int funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    begin_ranks(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    weir_runtime_info before = runtime_info();
    weir_threadpool *pool = NULL;
    weir_threadpool_options options = {.struct_size = sizeof options, .num_threads = 2};
    CHECK_OK(weir_threadpool_create_builtin(&options, &pool));
    if (fails) {
        /* Operations are left open, and with them MPI_Finalize may hang: a host that cannot recover ends by itself. */
        test_failure(pool);
        weir_threadpool_release(pool);
        test_late_writes();
        if (rank == 0) printf("%d ranks: all have heard of the failure\n", size);
        end_open_ranks();
    }
    weir_engine *engine = make_engine(NULL);
    weir_stream *stream = make_stream(engine, WEIR_STREAM_DEFAULT, NULL, NULL);
    weir_comm *comms[2] = {make_comm("one", 0), NULL}, *part = NULL;
    CHECK_OK(weir_comm_duplicate(comms[0], NULL, &comms[1]));
    test_operations(stream, comms[0]);
    test_messages(stream, comms[0]);
    test_bits(stream, comms[0]);
    CHECK_OK(weir_comm_split(comms[0], rank == 0 ? -1 : 0, 0, NULL, &part));
    CHECK_EQ(part == NULL, rank == 0);
    weir_comm_release(part);
    test_steps(comms, 1, NULL, 10);
    if (!funneled) {
        test_steps(comms, 1, pool, 20);
        test_steps(comms, 2, pool, 20);
        weir_comm *own = make_comm("with a thread", WEIR_COMM_OWN_THREAD);
        test_steps(&own, 1, pool, 10);
        weir_comm_release(own);
    }
    weir_comm *checked = make_comm("checked", WEIR_COMM_CHECKED);
    test_steps(&checked, 1, NULL, 5);
    weir_comm_release(checked);
    test_disagreement(NULL);
    weir_comm_release(comms[0]);
    weir_comm_release(comms[1]);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_threadpool_release(pool);
    check_released(&before);
    end_ranks("values cross the ranks");
    return 0;
}
