/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An all_reduce through weir, on a stream and as a program's only node, beside MPI's own non-blocking call that the
 * waiting thread tests. weir's two sides twice: tensors are copied, or the host has promised that they stay. All
 * sides take turns in one program, in random order; medians of rank 0. Run it under mpirun -n 2 on two free processors.
 */

#include "ranks.h"

enum { SIDES = 5, MOST_ROUNDS = 2001 };

static double times[SIDES][MOST_ROUNDS];
static int rank, ranks;

static void by_mpi(const float *send, float *recv, int count) {
    MPI_Request request;
    MPI_Status status;
    int done = 0;
    MPI_Iallreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
    while (!done) MPI_Test(&request, &done, &status);
}

/* The sides in another order, the same one on all ranks: each finds the caches as another one has left them. */
static void shuffle(int order[SIDES]) {
    static uint32_t random = 1;
    for (int i = SIDES - 1; i > 0; i--) {
        random = random * 1664525u + 1013904223u;
        const int j = (int)((random >> 16) % (uint32_t)(i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* An all_reduce of `count` elements, as a kernel, and as a program's only node. */
struct sum {
    weir_kernel *kernel;
    weir_program *program;
};

static struct sum make_sum(weir_engine *engine, weir_comm *comm, int64_t count) {
    const weir_communication all_reduce = {.struct_size = sizeof all_reduce, .op = WEIR_COMM_ALL_REDUCE};
    const weir_tensor_desc desc = {.dtype = WEIR_F32, .rank = 1, .dims = {count}};
    struct sum sum = {NULL, NULL};
    weir_graph *graph = NULL;
    weir_value x;
    MUST(weir_kernel_create_communication(engine, comm, &all_reduce, NULL, &sum.kernel));
    MUST(weir_graph_create("sum", &graph));
    MUST(weir_graph_add_input(graph, "x", &desc, &x));
    MUST(weir_graph_add_kernel(graph, "sum", sum.kernel, &x, 1, &x, 1, NULL));
    MUST(weir_graph_add_output(graph, "y", x));
    MUST(weir_graph_compile(graph, &engine, 1, NULL, &sum.program));
    weir_graph_destroy(graph);
    return sum;
}

/* One size: the sides in turn, each round behind a barrier. */
static void measure(weir_engine *engine, weir_stream *stream, weir_comm *const comms[2], int64_t count, int rounds) {
    float *send = NULL, *recv = NULL;
    weir_tensor *in = make_tensor(engine, count, &send), *out = make_tensor(engine, count, &recv);
    struct sum sums[2];
    int order[SIDES] = {0, 1, 2, 3, 4};
    for (int i = 0; i < 2; i++) sums[i] = make_sum(engine, comms[i], count);
    for (int r = -rounds / 10 - 2; r < rounds; r++) {
        shuffle(order);
        for (int turn = 0; turn < SIDES; turn++) {
            const int side = order[turn];
            const struct sum *sum = &sums[side > 2];
            memset(recv, 0, sizeof(float));
            MPI_Barrier(MPI_COMM_WORLD);
            const double began = now();
            if (side == 0) {
                by_mpi(send, recv, (int)count);
            } else if (side % 2 == 1) {
                MUST(weir_enqueue(stream, sum->kernel, &in, 1, &out, 1));
                MUST(weir_stream_synchronize(stream, UINT64_MAX));
            } else {
                MUST(weir_program_run(sum->program, NULL, &in, 1, &out, 1, NULL));
            }
            if (r >= 0) times[side][r] = now() - began;
            if (recv[count - 1] != (float)ranks) {
                fprintf(stderr, "side %d: a wrong sum\n", side);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    if (rank == 0) {
        const double mpi = median(times[0], rounds) * 1e6;
        printf("%9lld B %9.2f us", (long long)count * 4, mpi);
        for (int side = 1; side < SIDES; side++) {
            const double weir = median(times[side], rounds) * 1e6;
            printf(" %+9.2f us %5.2f x", weir - mpi, weir / mpi);
        }
        printf("\n");
        fflush(stdout);
    }
    for (int i = 0; i < 2; i++) {
        weir_program_release(sums[i].program);
        weir_kernel_release(sums[i].kernel);
    }
    weir_tensor_release(in);
    weir_tensor_release(out);
}

/* Processor time of rank 0 while the last rank comes a second late. */
static void wait_idly(weir_engine *engine, weir_comm *comm) {
    float *data = NULL;
    weir_tensor *in = make_tensor(engine, 2, &data), *out = make_tensor(engine, 2, &data);
    const struct sum sum = make_sum(engine, comm, 2);
    double used[2];
    struct timespec at;
    const struct timespec second = {.tv_sec = 1};
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) nanosleep(&second, NULL);
    const double began = now();
    for (int i = 0; i < 2; i++) {
        if (i == 1) MUST(weir_program_run(sum.program, NULL, &in, 1, &out, 1, NULL));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
        used[i] = (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
    }
    if (rank == 0)
        printf("a rank that waits for %.2f s takes %.1f ms of a processor\n", now() - began, (used[1] - used[0]) * 1e3);
    weir_program_release(sum.program);
    weir_kernel_release(sum.kernel);
    weir_tensor_release(in);
    weir_tensor_release(out);
}

int main(int argc, char **argv) {
    const int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const weir_comm_options stay = {
        .struct_size = sizeof stay, .name = "tensors stay", .flags = WEIR_COMM_TENSORS_STAY};
    weir_engine *engine = NULL;
    weir_stream *stream = NULL;
    weir_comm *comms[2] = {NULL, NULL};
    int threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MUST(weir_mpi_comm_create(MPI_COMM_WORLD, NULL, &comms[0]));
    MUST(weir_mpi_comm_create(MPI_COMM_WORLD, &stay, &comms[1]));
    MUST(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    MUST(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &stream));
    if (rank == 0) {
        printf("%d ranks, all_reduce of f32, medians of rank 0: MPI_Iallreduce + MPI_Test, and how much longer weir "
               "takes\n%11s %12s %22s %22s %22s %22s\n",
               ranks, "", "MPI", "stream", "program", "stream, tensors stay", "program, they stay");
    }
    for (int64_t bytes = 8; bytes <= INT64_C(64) << 20; bytes *= 8) {
        const int64_t most = quick ? INT64_C(20000000) : INT64_C(200000000);
        int64_t rounds = most / bytes;
        if (rounds > (quick ? 200 : 2000)) rounds = quick ? 200 : 2000;
        if (rounds < (quick ? 3 : 15)) rounds = quick ? 3 : 15;
        measure(engine, stream, comms, bytes / 4, (int)rounds);
    }
    wait_idly(engine, comms[0]);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_comm_release(comms[0]);
    weir_comm_release(comms[1]);
    MPI_Finalize();
    return 0;
}
