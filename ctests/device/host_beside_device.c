/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A device computes while the host does: who starts device work comes before what takes long on the host. Without a
 * clock: the host's long node ends when the device has got its kernel, in each run, the first one too.
 *
 * Twenty-four arrangements: without a pool, with one, and with one that refuses everything; the device's inputs from
 * outside or from two cheap nodes of the host's; costs known or not; the host's node before the device's in the graph
 * or behind it.
 *
 * With an argument, so many milliseconds on both sides, it says how long a run takes.
 */

#include <stdbool.h>
#include <weir/ops.h>
#include <weir/testing.h>

#include "make.h"
#include "test_pools.h"

enum { LEN = 64, RUNS = 5, PATIENCE_S = 20 };

static weir_engine *device;
static uint64_t launches_before;
static uint64_t host_ns;
static atomic_int left_alone;

static uint64_t launches(void) {
    weir_emulated_counters counters = {.struct_size = sizeof counters};
    CHECK_OK(weir_emulated_get_counters(device, &counters));
    return counters.launches;
}

static int32_t long_node(void *arg) {
    (void)arg;
    const uint64_t start = now_ns(), give_up = start + PATIENCE_S * UINT64_C(1000000000);
    while (launches() == launches_before) {
        if (now_ns() > give_up) {
            atomic_fetch_add(&left_alone, 1);
            return WEIR_OK;
        }
        sleep_ns(20000);
    }
    const uint64_t passed = now_ns() - start;
    if (passed < host_ns) sleep_ns(host_ns - passed);
    return WEIR_OK;
}

typedef struct arrangement {
    weir_threadpool *pool;
    const char *pool_name;
    bool is_fed, has_costs, is_host_first;
} arrangement;

static weir_engine *make_device(uint64_t kernel_ns) {
    const weir_emulation emulation = {
        .struct_size = sizeof emulation, .flags = WEIR_EMULATION_CHECK, .kernel_ns = kernel_ns};
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    CHECK_OK(weir_engine_attr_set_emulation(attr, &emulation));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, 0, attr, &engine));
    weir_engine_attr_destroy(attr);
    return engine;
}

static weir_program *arranged(weir_engine *cpu, arrangement how) {
    weir_engine *engines[] = {cpu, device};
    const weir_tensor_desc desc = vector_desc(LEN);
    weir_graph *graph = make_graph("beside");
    weir_kernel *add = NULL, *relu = NULL;
    weir_program *program = NULL;
    weir_value in[2], fed[2], out;
    const uint64_t cost_ns = how.has_costs ? host_ns : 0;
    CHECK_OK(weir_kernel_create_binary(device, BINARY(ADD), NULL, &add));
    CHECK_OK(weir_kernel_create_eltwise(cpu, ELTWISE(RELU), NULL, &relu));
    if (how.is_host_first) CHECK_OK(weir_graph_add_task(graph, "long", long_node, NULL, NULL, cost_ns, NULL));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(weir_graph_add_input(graph, i == 0 ? "a" : "b", &desc, &in[i]));
        fed[i] = in[i];
        if (!how.is_fed) continue;
        CHECK_OK(weir_graph_add_kernel(graph, i == 0 ? "cheap a" : "cheap b", relu, &in[i], 1, &fed[i], 1, NULL));
    }
    CHECK_OK(weir_graph_add_kernel(graph, "sum", add, fed, 2, &out, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "sum", out));
    if (!how.is_host_first) CHECK_OK(weir_graph_add_task(graph, "long", long_node, NULL, NULL, cost_ns, NULL));
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_kernel_release(add);
    weir_kernel_release(relu);
    weir_graph_destroy(graph);
    return program;
}

/* The shortest and the longest run. */
static void run(weir_engine *cpu, arrangement how, bool speaks) {
    weir_program *program = arranged(cpu, how);
    weir_tensor *in[] = {make_tensor(cpu, vector_desc(LEN)), make_tensor(cpu, vector_desc(LEN))};
    weir_tensor *out = make_tensor(cpu, vector_desc(LEN));
    uint64_t shortest = UINT64_MAX, longest = 0;
    for (int i = 0; i < LEN; i++) floats(in[0])[i] = 1, floats(in[1])[i] = 2;
    const weir_run_options options = {.struct_size = sizeof options, .threadpool = how.pool};
    for (int i = 0; i < RUNS; i++) {
        launches_before = launches();
        floats(out)[LEN - 1] = 0;
        const uint64_t start = now_ns();
        CHECK_OK(weir_program_run(program, NULL, in, 2, &out, 1, &options));
        const uint64_t took = now_ns() - start;
        if (took < shortest) shortest = took;
        if (took > longest) longest = took;
        CHECK(floats(out)[LEN - 1] == 3);
        if (atomic_load(&left_alone) > 0) {
            fprintf(stderr, "run %d, %s, the device's inputs %s, costs %s, the host's node %s\n", i,
                    how.pool_name, how.is_fed ? "from the host" : "from outside",
                    how.has_costs ? "known" : "unknown", how.is_host_first ? "first" : "last");
            check_failed(__FILE__, __LINE__, "the device has got its kernel", "is false");
        }
    }
    if (speaks) {
        printf("%-13s %-13s %-9s %-10s %8.2f to %8.2f ms\n", how.pool_name,
               how.is_fed ? "from the host" : "from outside", how.has_costs ? "known" : "unknown",
               how.is_host_first ? "host first" : "host last", (double)shortest / 1e6, (double)longest / 1e6);
    }
    for (int i = 0; i < 2; i++) weir_tensor_release(in[i]);
    weir_tensor_release(out);
    weir_program_release(program);
}

int main(int argc, char **argv) {
    CHECK_OK(weir_emulated_register());
    static const char *const names[] = {"no pool", "three threads", "refusing"};
    weir_threadpool *pools[3] = {NULL, NULL, NULL};
    test_pool *threads = test_pool_create_exact(POOL_FIFO, 3, &pools[1]);
    test_pool *refusing = test_pool_create_exact(POOL_REFUSING, 3, &pools[2]);
    weir_engine *cpu = NULL;
    host_ns = (argc > 1 ? (uint64_t)atoi(argv[1]) : 2) * 1000000;
    device = make_device(host_ns);
    CHECK_OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    for (unsigned i = 0; i < 24; i++) {
        const unsigned bits = i % 8, pool = i / 8;
        run(cpu, (arrangement){pools[pool], names[pool], (bits & 4) != 0, (bits & 2) != 0, (bits & 1) != 0}, argc > 1);
    }
    weir_engine_release(device);
    weir_engine_release(cpu);
    weir_threadpool_release(pools[1]);
    weir_threadpool_release(pools[2]);
    test_pool_destroy(threads);
    test_pool_destroy(refusing);
    return 0;
}
