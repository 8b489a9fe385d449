/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A step of training: 32 layers, each of which computes its gradient, behind one another; each gradient is summed over
 * all ranks; each sum changes the layer's weights. Three ways, in turn, with the same functions: MPI_Allreduce behind
 * each layer; MPI_Iallreduce with a test behind each layer, and the changes as sums come; a program of weir. All on one
 * thread of each rank. Run it under mpirun -n 2 on two processors that are free.
 */

#include "ranks.h"

enum { LAYERS = 32, SIDES = 3, MOST_ROUNDS = 2001, MOST_COUNT = 1 << 18 };

static double times[SIDES][MOST_ROUNDS];
static int rank, ranks;
static int64_t count;  /* elements of a gradient */
static int passes;     /* how often a layer goes over its gradient */

/* ---- What all sides compute ---- */

static void layer(const float *before, float *after, float *gradient) {
    for (int64_t i = 0; i < count; i++) gradient[i] = before[i % 64] + (float)rank;
    for (int pass = 0; pass < passes; pass++)
        for (int64_t i = 0; i < count; i++) gradient[i] = gradient[i] * 0.5f + before[i % 64] * 0.5f;
    for (int i = 0; i < 64; i++) after[i] = before[i] * 0.5f + gradient[i] * 0.25f;
}

static void update(const float *weights, const float *sum, float *updated) {
    for (int64_t i = 0; i < count; i++) updated[i] = weights[i] - 0.01f * sum[i];
}

/* ---- By MPI ---- */

/* Each way has memory of its own for gradients and sums, as weir has: none finds in caches what another one left. */
static float activations[LAYERS + 1][64], *all_gradients[2][LAYERS], *all_sums[2][LAYERS];
static float *weights[LAYERS], *updated[LAYERS];

static void by_mpi(int overlaps) {
    float **gradients = all_gradients[overlaps], **sums = all_sums[overlaps];
    MPI_Request requests[LAYERS];
    MPI_Status status[LAYERS];
    int indices[LAYERS], over = 0, begun = 0;
    for (int i = 0; i < LAYERS; i++) {
        layer(activations[i], activations[i + 1], gradients[i]);
        if (!overlaps) {
            MPI_Allreduce(gradients[i], sums[i], (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            update(weights[i], sums[i], updated[i]);
            continue;
        }
        MPI_Iallreduce(gradients[i], sums[i], (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &requests[begun++]);
        int some = 0;
        MPI_Testsome(begun, requests, &some, indices, status);
        for (int at = 0; at < some; at++) update(weights[indices[at]], sums[indices[at]], updated[indices[at]]);
        over += some > 0 ? some : 0;
    }
    while (overlaps && over < LAYERS) {
        int some = 0;
        MPI_Testsome(LAYERS, requests, &some, indices, status);
        for (int at = 0; at < some; at++) update(weights[indices[at]], sums[indices[at]], updated[indices[at]]);
        over += some > 0 ? some : 0;
    }
}

/* ---- By weir ---- */

static int32_t layer_kernel(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t number = 0;
    (void)user;
    MUST(weir_kernel_context_get_inputs(context, &in, &number));
    MUST(weir_kernel_context_get_outputs(context, &out, &number));
    layer(in[0].data, out[0].data, out[1].data);
    return WEIR_OK;
}

static int32_t update_kernel(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t number = 0;
    (void)user;
    MUST(weir_kernel_context_get_inputs(context, &in, &number));
    MUST(weir_kernel_context_get_outputs(context, &out, &number));
    update(in[0].data, in[1].data, out[0].data);
    return WEIR_OK;
}

static weir_kernel *make_kernel(weir_engine *engine, const char *name, weir_compute_fn compute,
                                const weir_tensor_desc *in, size_t inputs, const weir_tensor_desc *out,
                                size_t outputs) {
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc,
                                        .name = name,
                                        .inputs = in,
                                        .num_inputs = inputs,
                                        .outputs = out,
                                        .num_outputs = outputs,
                                        .compute = compute};
    weir_kernel *kernel = NULL;
    MUST(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static weir_program *make_program(weir_engine *engine, weir_comm *comm) {
    const weir_communication all_reduce = {.struct_size = sizeof all_reduce, .op = WEIR_COMM_ALL_REDUCE};
    const weir_tensor_desc small = {.dtype = WEIR_F32, .rank = 1, .dims = {64}};
    const weir_tensor_desc large = {.dtype = WEIR_F32, .rank = 1, .dims = {count}};
    const weir_tensor_desc made[2] = {small, large}, both[2] = {large, large};
    weir_kernel *layers = make_kernel(engine, "layer", layer_kernel, &small, 1, made, 2);
    weir_kernel *updates = make_kernel(engine, "update", update_kernel, both, 2, &large, 1);
    weir_kernel *sum = NULL;
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_value activation, values[2], weight;
    char name[32];
    MUST(weir_kernel_create_communication(engine, comm, &all_reduce, NULL, &sum));
    MUST(weir_graph_create("step", &graph));
    MUST(weir_graph_add_input(graph, "x", &small, &activation));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "weights %d", i);
        MUST(weir_graph_add_input(graph, name, &large, &weight));
        snprintf(name, sizeof name, "layer %d", i);
        MUST(weir_graph_add_kernel(graph, name, layers, &activation, 1, values, 2, NULL));
        activation = values[0];
        snprintf(name, sizeof name, "sum %d", i);
        MUST(weir_graph_add_kernel(graph, name, sum, &values[1], 1, &values[1], 1, NULL));
        snprintf(name, sizeof name, "update %d", i);
        values[0] = weight;
        MUST(weir_graph_add_kernel(graph, name, updates, values, 2, values, 1, NULL));
        snprintf(name, sizeof name, "updated %d", i);
        MUST(weir_graph_add_output(graph, name, values[0]));
    }
    MUST(weir_graph_compile(graph, &engine, 1, NULL, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(layers);
    weir_kernel_release(updates);
    weir_kernel_release(sum);
    return program;
}

static void measure(weir_engine *engine, weir_comm *comm, int rounds) {
    weir_program *program = make_program(engine, comm);
    weir_tensor *in[LAYERS + 1], *out[LAYERS];
    float *x = NULL, computing = 0;
    static uint32_t random = 1;
    in[0] = make_tensor(engine, 64, &x);
    for (int i = 0; i < LAYERS; i++) {
        in[1 + i] = make_tensor(engine, count, &weights[i]);
        out[i] = make_tensor(engine, count, &updated[i]);
        for (int way = 0; way < 2; way++) {
            all_gradients[way][i] = malloc((size_t)count * sizeof(float));
            all_sums[way][i] = malloc((size_t)count * sizeof(float));
        }
    }
    memcpy(activations[0], x, sizeof activations[0]);
    for (int r = -5; r < rounds; r++) {
        random = random * 1664525u + 1013904223u;
        for (int turn = 0; turn < SIDES; turn++) {
            const int side = (int)((random >> 16) + (uint32_t)turn) % SIDES;
            memset(updated[LAYERS - 1], 0, sizeof(float));
            MPI_Barrier(MPI_COMM_WORLD);
            const double began = now();
            if (side < 2) {
                by_mpi(side == 1);
            } else {
                MUST(weir_program_run(program, NULL, in, LAYERS + 1, out, LAYERS, NULL));
            }
            if (r >= 0) times[side][r] = now() - began;
            if (updated[LAYERS - 1][0] == 0) MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    {
        const double began = now();
        for (int i = 0; i < LAYERS; i++) layer(activations[i], activations[i + 1], all_gradients[0][i]);
        computing = (float)(now() - began);
    }
    if (rank == 0) {
        double sides[SIDES];
        for (int side = 0; side < SIDES; side++) sides[side] = median(times[side], rounds) * 1e6;
        printf("%8lld B, layers of %6.1f us: %9.1f us %9.1f us %9.1f us", (long long)count * 4,
               (double)computing / LAYERS * 1e6, sides[0], sides[1], sides[2]);
        printf("   weir / overlap %5.3f   blocking / weir %5.3f\n", sides[2] / sides[1], sides[0] / sides[2]);
        fflush(stdout);
    }
    weir_program_release(program);
    weir_tensor_release(in[0]);
    for (int i = 0; i < LAYERS; i++) {
        weir_tensor_release(in[1 + i]);
        weir_tensor_release(out[i]);
        for (int way = 0; way < 2; way++) {
            free(all_gradients[way][i]);
            free(all_sums[way][i]);
        }
    }
}

int main(int argc, char **argv) {
    const int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    weir_engine *engine = NULL;
    weir_comm *comm = NULL;
    int threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MUST(weir_mpi_comm_create(MPI_COMM_WORLD, NULL, &comm));
    MUST(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    if (rank == 0) {
        printf("%d ranks, a step of %d layers: MPI_Allreduce behind each, MPI_Iallreduce with tests, weir\n", ranks,
               LAYERS);
    }
    for (count = 1 << 10; count <= MOST_COUNT; count *= 16) {
        for (passes = 4; passes <= 16; passes *= 4) measure(engine, comm, quick ? 15 : count > 1 << 16 ? 60 : 300);
    }
    weir_engine_release(engine);
    weir_comm_release(comm);
    MPI_Finalize();
    return 0;
}
