/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Prints the parameters of two real ranks for bench/comm/virtual.c, and what a step takes for real: by weir, and by
 * hand with MPI_Iallreduce and a test behind each layer. Run it under mpirun -n 2 on two processors that are free.
 *
 * A message of m bytes takes L + 2 o + m G from one rank to the other: half of a ping-pong. o is the time of MPI_Isend
 * of 8 bytes; L and G of a class are the line of least squares through its sizes. gamma is what all_reduces of 32
 * gradients, one after the other, take beyond their messages; call is the time of MPI_Iallreduce of 64 KiB until it
 * returns.
 */

#include "ranks.h"
#include "virtual.h"

enum { MOST_ROUNDS = 1001, MOST_BYTES = 8 << 20, SMALL = 64 };

static int rank, quick;
static int64_t count;
static const int passes = 4;
static float *ours, *theirs;
static float activations[LAYERS + 1][SMALL], *gradients[LAYERS], *sums[LAYERS], *weights[LAYERS], *updated[LAYERS];

static double now_us(void) {
    return now() * 1e6;
}

/* The calmest tenth: others may be at work on the machine. */
static double calm(double *of, int number) {
    qsort(of, (size_t)number, sizeof *of, by_size);
    return of[number / 10];
}

/* ---- What is measured for the network ---- */

static void ping_pong(int bytes) {
    if (rank == 0) {
        MPI_Send(ours, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(theirs, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(theirs, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(ours, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static double sent_at, reduced[SIZES];

static void isend(int bytes) {
    MPI_Request request;
    const double began = now_us();
    if (rank == 0) MPI_Isend(ours, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    sent_at = now_us() - began;
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Recv(theirs, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void all_reduce(const float *from, float *to, int bytes) {
    MPI_Request request;
    const double began = now_us();
    int done = 0;
    MPI_Iallreduce(from, to, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    sent_at = now_us() - began;
    while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void all_reduce_again(int bytes) { all_reduce(ours, theirs, bytes); }

/* The calmest tenth on rank 0: of the call, and of what it has noted in sent_at. */
static double time_of(void (*what)(int), int bytes, double *out_noted) {
    static double times[MOST_ROUNDS], noted[MOST_ROUNDS];
    const int rounds = quick ? 11 : bytes > 1 << 18 ? 21 : 301;
    for (int r = -5; r < rounds; r++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double began = now_us();
        what(bytes);
        if (r < 0) continue;
        times[r] = now_us() - began;
        noted[r] = sent_at;
    }
    if (out_noted) *out_noted = calm(noted, rounds);
    return calm(times, rounds);
}

/* The line through half ping-pongs from `from` to `upto` bytes, relative errors weighed alike. */
static void fit_class(double from, double upto, double overhead, struct message_class *out) {
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;
    for (double bytes = from; bytes <= upto; bytes *= 2) {
        const double y = time_of(ping_pong, (int)bytes, NULL) / 2, weight = 1 / (y * y);
        w += weight;
        wx += weight * bytes;
        wy += weight * y;
        wxx += weight * bytes * bytes;
        wxy += weight * bytes * y;
    }
    out->upto = upto;
    out->overhead = overhead;
    out->gap = (w * wxy - wx * wy) / (w * wxx - wx * wx);
    out->latency = fmax((wy - out->gap * wx) / w - 2 * overhead, 0);
}

/* ---- A step: bench/comm/step.c has the same ---- */

static void layer(const float *before, float *after, float *gradient) {
    for (int64_t i = 0; i < count; i++) gradient[i] = before[i % SMALL] + (float)rank;
    for (int pass = 0; pass < passes; pass++)
        for (int64_t i = 0; i < count; i++) gradient[i] = gradient[i] * 0.5f + before[i % SMALL] * 0.5f;
    for (int i = 0; i < SMALL; i++) after[i] = before[i] * 0.5f + gradient[i] * 0.25f;
}

static void update(const float *from, const float *sum, float *to) {
    for (int64_t i = 0; i < count; i++) to[i] = from[i] - 0.01f * sum[i];
}

static void step_by_mpi(void) {
    MPI_Request requests[LAYERS];
    MPI_Status status[LAYERS];
    int indices[LAYERS], over = 0, begun = 0;
    while (over < LAYERS) {
        int some = 0;
        if (begun < LAYERS) {
            layer(activations[begun], activations[begun + 1], gradients[begun]);
            MPI_Iallreduce(gradients[begun], sums[begun], (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                           &requests[begun]);
            begun++;
        }
        MPI_Testsome(begun, requests, &some, indices, status);
        for (int at = 0; at < some; at++) update(weights[indices[at]], sums[indices[at]], updated[indices[at]]);
        over += some > 0 ? some : 0;
    }
}

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
    const weir_communication sums_up = {.struct_size = sizeof sums_up, .op = WEIR_COMM_ALL_REDUCE};
    const weir_tensor_desc small = {.dtype = WEIR_F32, .rank = 1, .dims = {SMALL}};
    const weir_tensor_desc large = {.dtype = WEIR_F32, .rank = 1, .dims = {count}};
    const weir_tensor_desc made[2] = {small, large}, both[2] = {large, large};
    weir_kernel *layers = make_kernel(engine, "layer", layer_kernel, &small, 1, made, 2);
    weir_kernel *updates = make_kernel(engine, "update", update_kernel, both, 2, &large, 1);
    weir_kernel *sum = NULL;
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_value activation, values[2], weight;
    char name[32];
    MUST(weir_kernel_create_communication(engine, comm, &sums_up, NULL, &sum));
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

/* Layer, change, and step, in us. The costs of a layer and a change are those of a whole step without sums. */
static void measure_step(weir_engine *engine, weir_comm *comm, int size, struct parameters *to) {
    static double times[5][MOST_ROUNDS];
    weir_tensor *in[LAYERS + 1], *out[LAYERS];
    float *x = NULL;
    count = (int64_t)gradient_bytes[size] / 4;
    const int rounds = quick ? 5 : size ? 15 : 201;
    weir_program *program = make_program(engine, comm);
    in[0] = make_tensor(engine, SMALL, &x);
    for (int i = 0; i < LAYERS; i++) {
        in[1 + i] = make_tensor(engine, count, &weights[i]);
        out[i] = make_tensor(engine, count, &updated[i]);
        gradients[i] = calloc((size_t)count, sizeof(float));
        sums[i] = calloc((size_t)count, sizeof(float));
    }
    for (int r = -5; r < rounds; r++) {
        for (int side = 0; side < 5; side++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double began = now_us();
            switch (side) {
            case 0: MUST(weir_program_run(program, NULL, in, LAYERS + 1, out, LAYERS, NULL)); break;
            case 1: step_by_mpi(); break;
            case 2:
                for (int i = 0; i < LAYERS; i++) layer(activations[i], activations[i + 1], gradients[i]);
                break;
            case 3:
                for (int i = 0; i < LAYERS; i++) all_reduce(gradients[i], sums[i], (int)count * 4);
                break;
            default:
                for (int i = 0; i < LAYERS; i++) update(weights[i], sums[i], updated[i]);
                break;
            }
            if (r >= 0) times[side][r] = now_us() - began;
        }
    }
    to->measured[size] = calm(times[0], rounds);
    to->measured_mpi[size] = calm(times[1], rounds);
    to->layer[size] = calm(times[2], rounds) / LAYERS;
    reduced[size] = calm(times[3], rounds) / LAYERS;
    to->update[size] = calm(times[4], rounds) / LAYERS;
    weir_program_release(program);
    weir_tensor_release(in[0]);
    for (int i = 0; i < LAYERS; i++) {
        weir_tensor_release(in[1 + i]);
        weir_tensor_release(out[i]);
        free(gradients[i]);
        free(sums[i]);
    }
}

int main(int argc, char **argv) {
    weir_engine *engine = NULL;
    weir_comm *comm = NULL;
    struct parameters fitted = {.num_classes = 3};
    double overhead, copied;
    int threads = 0, ranks = 0;
    quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        fprintf(stderr, "mpirun -n 2 fit\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    ours = calloc(MOST_BYTES, 1);
    theirs = calloc(MOST_BYTES, 1);
    memset(ours, 0, MOST_BYTES);
    memset(theirs, 1, MOST_BYTES);
    time_of(isend, 8, &overhead);
    fit_class(8, 4096, overhead, &fitted.classes[0]);
    fit_class(8192, 262144, overhead, &fitted.classes[1]);
    fit_class(524288, MOST_BYTES, overhead, &fitted.classes[2]);
    time_of(all_reduce_again, 65536, &fitted.call);
    copied = now_us();
    for (int i = 0; i < 20; i++) {
        memcpy(theirs, ours, MOST_BYTES);
        __asm__ volatile("" ::: "memory");
    }
    copied = (now_us() - copied) / 20;
    MUST(weir_mpi_comm_create(MPI_COMM_WORLD, NULL, &comm));
    MUST(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    for (int size = 0; size < SIZES; size++) measure_step(engine, comm, size, &fitted);
    copied = now_us();
    for (int i = 0; i < 20; i++) {
        memcpy(theirs, ours, MOST_BYTES);
        __asm__ volatile("" ::: "memory");
    }
    copied = (now_us() - copied) / 20;
    MUST(weir_mpi_comm_create(MPI_COMM_WORLD, NULL, &comm));
    MUST(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    for (int size = 0; size < SIZES; size++) measure_step(engine, comm, size, &fitted);
    /* Two ranks, and so a ring: each adds up half of the bytes. */
    for (int size = 0; size < SIZES; size++) {
        struct message_class *class = &fitted.classes[size + 1];
        const double moved = all_reduce_cost(&fitted, 2, gradient_bytes[size]).all;
        class->add = fmax(reduced[size] - moved, 0) / (gradient_bytes[size] / 2);
    }
    fitted.classes[0].add = fitted.classes[1].add;
    if (rank == 0) {
        printf("# Fitted to two ranks. message: up to how many bytes, L (us), o (us), G and gamma (ns a byte)\n");
        for (int i = 0; i < fitted.num_classes; i++) {
            const struct message_class *class = &fitted.classes[i];
            printf("message %.0f %.3f %.3f %.4f %.4f\n", i < 2 ? class->upto : 4294967296.0, class->latency,
                   class->overhead, class->gap * 1e3, class->add * 1e3);
        }
        printf("call %.3f\ncopy %.4f\n", fitted.call, copied / MOST_BYTES * 1e3);
        printf("layer %.2f %.2f\nupdate %.2f %.2f\nnoise_layer 0.02\nnoise_rank 0\n", fitted.layer[0], fitted.layer[1],
               fitted.update[0], fitted.update[1]);
        printf("# A step for real, us: by weir, and by hand\nmeasured %.1f %.1f\nmeasured_mpi %.1f %.1f\n",
               fitted.measured[0], fitted.measured[1], fitted.measured_mpi[0], fitted.measured_mpi[1]);
        for (int i = 0; i < SIZES; i++)
            printf("# all_reduce of %.0f bytes: measured %.1f us, by the model %.1f us\n", gradient_bytes[i],
                   reduced[i], all_reduce_cost(&fitted, 2, gradient_bytes[i]).all);
    }
    weir_engine_release(engine);
    weir_comm_release(comm);
    free(ours);
    free(theirs);
    MPI_Finalize();
    return 0;
}
