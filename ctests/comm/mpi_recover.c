/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A rank is killed in the middle of a run, under an MPI that survives it (ULFM): the others hear who it was, and go on
 * without it.
 */

#include <signal.h>

#include "mpi_ranks.h"

#include "make.h"

#define LIMIT (UINT64_C(20) * 1000000000)

enum { STEPS = 8, WIDTH = 30000, KILLED = 1 };

typedef struct layer {
    atomic_int calls;
    int dies_at; /* the call, or -1 */
} layer;

static int32_t compute_layer(void *user, weir_kernel_context *context) {
    layer *self = (layer *)user;
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    if (atomic_fetch_add(&self->calls, 1) == self->dies_at) raise(SIGKILL);
    memcpy(out->data, in->data, WIDTH * sizeof(float));
    return WEIR_OK;
}

/* Layers, each behind the sum of the one before it. */
static weir_program *make_program(weir_engine *engine, weir_comm *comm, layer *self) {
    const weir_tensor_desc desc = vector_desc(WIDTH);
    const weir_communication sum = {.struct_size = sizeof sum, .op = WEIR_COMM_ALL_REDUCE};
    weir_kernel *compute = make_unary_kernel(engine, "layer", compute_layer, self, &desc), *communicate = NULL;
    weir_graph *graph = make_graph("steps");
    weir_value x;
    CHECK_OK(weir_kernel_create_communication(engine, comm, &sum, NULL, &communicate));
    CHECK_OK(weir_graph_add_input(graph, "x", &desc, &x));
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, compute, &x, 1, &x, 1, NULL));
        snprintf(name, sizeof name, "sum %d", i);
        CHECK_OK(weir_graph_add_kernel(graph, name, communicate, &x, 1, &x, 1, NULL));
    }
    CHECK_OK(weir_graph_add_output(graph, "y", x));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_kernel_release(compute);
    weir_kernel_release(communicate);
    return program;
}

/* Ones in, size to the power of STEPS out. */
static weir_status run(weir_program *program, weir_tensor *x, weir_tensor *y) {
    for (int i = 0; i < WIDTH; i++) floats(x)[i] = 1;
    return weir_program_run(program, NULL, &x, 1, &y, 1, NULL);
}

static void check_result(weir_tensor *y, int ranks) {
    float expected = 1;
    for (int i = 0; i < STEPS; i++) expected *= (float)ranks;
    for (int i = 0; i < WIDTH; i++) CHECK(floats(y)[i] == expected);
}

int main(int argc, char **argv) {
    begin_ranks(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    weir_comm_options options = {.struct_size = sizeof options, .name = "training", .limit_ns = LIMIT};
    weir_comm_info info = {.struct_size = sizeof info};
    weir_comm *comm = NULL, *left = NULL;
    CHECK_OK(weir_mpi_comm_create(MPI_COMM_WORLD, &options, &comm));
    CHECK_OK(weir_comm_get_info(comm, &info));
    CHECK_EQ(info.dead, 0);
    weir_engine *engine = make_engine(NULL);
    weir_tensor *x = make_tensor(engine, vector_desc(WIDTH)), *y = make_tensor(engine, vector_desc(WIDTH));
    layer self = {.dies_at = rank == KILLED ? 2 * STEPS + 3 : -1};
    weir_program *program = make_program(engine, comm, &self);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(run(program, x, y));
        check_result(y, size);
    }
    meet(); /* a failure ends what other ranks are at, be it the run before */
    const uint64_t began = now_ns();
    CHECK(run(program, x, y) != WEIR_OK);
    const uint64_t took = now_ns() - began;
    printf("rank %d after %.0f ms: %s\n", rank, (double)took * 1e-6, weir_last_error_message());
    fflush(stdout);
    CHECK_TEXT(weir_last_error_message(), "rank 1");
    CHECK(took < LIMIT);
    check_result(y, size); /* nothing of a run that fails is seen */
    CHECK_OK(weir_comm_get_info(comm, &info));
    CHECK_EQ(info.dead, 1);
    CHECK_EQ(info.recoverable, 1);
    CHECK_OK(weir_comm_recover(comm, NULL, &left));
    weir_program_release(program);
    weir_comm_release(comm);
    CHECK_OK(weir_comm_get_info(left, &info));
    CHECK_EQ(info.size, size - 1);
    CHECK_EQ(info.rank, rank > KILLED ? rank - 1 : rank);
    program = make_program(engine, left, &self);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(run(program, x, y));
        check_result(y, size - 1);
    }
    weir_program_release(program);
    weir_comm_release(left);
    weir_tensor_release(x);
    weir_tensor_release(y);
    weir_engine_release(engine);
    /* The others come here too. MPI_Finalize of Open MPI 5.0 waits for the dead rank now and then. */
    sleep_ms(300);
    if (rank == 0) printf("%d of %d ranks went on\n", size - 1, size);
    end_open_ranks();
}
