/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What a tensor costs in a run of a program with many: as many inputs as outputs, each output made by a kernel of the host's that does
 * nothing. And what adding to a graph costs. Times in nanoseconds, for each tensor (input or output), the median of several runs:
 *   replay   the same tensors as in the run before
 *   other    two sets of tensors in turn, in the same order of addresses
 *   mixed    the tensors of one set in another order each time
 * Prints one line for each number of tensors: cc bench/tensors.c -Iinclude -lweir, then ./a.out [most]. With libraries
 * of two versions, one LD_LIBRARY_PATH after the other.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir.h"
#include "weir/inspect.h"

enum { ROUNDS = 21, SETS = 2 };

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != WEIR_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, weir_last_error_message());                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *all) {
    qsort(all, ROUNDS, sizeof *all, by_value);
    return all[ROUNDS / 2];
}

static int32_t nothing(void *user, weir_kernel_context *context) {
    (void)user, (void)context;
    return WEIR_OK;
}

static uint64_t allocations(void) {
    weir_runtime_info info = {.struct_size = sizeof info};
    OK(weir_runtime_get_info(&info));
    return info.allocations;
}

static uint64_t random_state = 1;

static size_t draw(size_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(random_state >> 33) % n;
}

static void shuffle(weir_tensor **tensors, size_t n) {
    for (size_t i = n - 1; i > 0; i--) {
        size_t j = draw(i + 1);
        weir_tensor *kept = tensors[i];
        tensors[i] = tensors[j];
        tensors[j] = kept;
    }
}

static void measure(weir_engine *engine, size_t pairs) {
    const weir_tensor_desc desc = {.dtype = WEIR_F32, .rank = 1, .dims = {1}};
    const weir_host_kernel_desc kernel_desc = {.struct_size = sizeof kernel_desc, .name = "nothing", .compute = nothing,
                                               .num_inputs = 1, .num_outputs = 1, .inputs = &desc, .outputs = &desc};
    weir_kernel *kernel = NULL;
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_tensor **tensors = calloc(SETS * 2 * pairs, sizeof *tensors);
    double adding[3] = {0}, compiling, times[3][ROUNDS];
    char name[32];
    OK(weir_kernel_create_host(engine, &kernel_desc, &kernel));
    OK(weir_graph_create("many", &graph));
    weir_value *values = calloc(2 * pairs, sizeof *values);
    if (tensors == NULL || values == NULL) exit(1);
    for (int part = 0; part < 3; part++) {
        double begin = now();
        for (size_t i = 0; i < pairs; i++) {
            snprintf(name, sizeof name, "%c%zu", "xny"[part], i);
            if (part == 0) OK(weir_graph_add_input(graph, name, &desc, &values[i]));
            if (part == 1) OK(weir_graph_add_kernel(graph, name, kernel, &values[i], 1, &values[pairs + i], 1, NULL));
            if (part == 2) OK(weir_graph_add_output(graph, name, values[pairs + i]));
        }
        adding[part] = (now() - begin) / (double)pairs;
    }
    double begin = now();
    OK(weir_graph_compile(graph, &engine, 1, NULL, &program));
    compiling = (now() - begin) / (double)pairs;
    for (size_t i = 0; i < SETS * 2 * pairs; i++) OK(weir_tensor_create(engine, &desc, NULL, &tensors[i]));
    uint64_t before = 0, allocated = 0;
    size_t runs = 1 + 20000 / pairs;
    for (int way = 0; way < 3; way++) {
        for (int round = -2; round < ROUNDS; round++) {
            double spent = 0;
            if (round == 0) before = allocations();
            for (size_t run = 0; run < runs; run++) {
                weir_tensor **set = tensors + (way == 1 ? run % SETS * 2 * pairs : 0);
                if (way == 2) shuffle(set, 2 * pairs);
                double start = now();
                OK(weir_program_run(program, NULL, set, pairs, set + pairs, pairs, NULL));
                spent += now() - start;
            }
            if (round >= 0) times[way][round] = spent / (double)(runs * 2 * pairs);
        }
        allocated += allocations() - before;
    }
    printf("%6zu  %8.1f %8.1f %8.1f   %8.1f %8.1f %8.1f %8.1f   %llu\n", 2 * pairs, median(times[0]), median(times[1]),
           median(times[2]), adding[0], adding[1], adding[2], compiling, (unsigned long long)allocated);
    fflush(stdout);
    for (size_t i = 0; i < SETS * 2 * pairs; i++) weir_tensor_release(tensors[i]);
    free(tensors);
    free(values);
    weir_program_release(program);
    weir_graph_destroy(graph);
    weir_kernel_release(kernel);
}

int main(int argc, char **argv) {
    static const size_t counts[] = {5, 50, 200, 250, 300, 500, 1000, 2500, 5000, 10000};
    size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    weir_engine *engine = NULL;
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    puts("                 run, ns a tensor           add, ns each                compile   allocations");
    puts("tensors    replay    other    mixed      input   kernel   output  ns a pair   of the runs");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (2 * counts[i] <= most) measure(engine, counts[i]);
    }
    weir_engine_release(engine);
    return 0;
}
