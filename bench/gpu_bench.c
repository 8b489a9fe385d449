/* weir beside the raw CUDA driver, in one process.
 *
 *     gpu_bench [--quick] [section]...
 *
 * The two sides take turns; ratios are of the same round. Prints Markdown; lines "<!-- answer n: ... -->" are for
 * gpu/run.sh. Without a device it says so and does nothing. Leaves with 1 if something did not do what it should. "hold"
 * keeps the device open until its standard input ends, so that other processes need not begin with that.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include <string.h>
#include <weir/cuda.h>

#include "gpu/bench.h"
#include "gpu/weir_side.h"

static double opened_s;

static void info(raw_device *device) {
    weir_cuda_device_info facts = {.struct_size = sizeof facts};
    const double begun = now_ns();
    weir_engine *engine = cuda_engine(1);
    const double engine_s = (now_ns() - begun) / 1e9;
    OK(weir_cuda_get_device_info(engine, &facts));
    printf("%s, capability %u.%u, %u multiprocessors, %zu MiB, PCI %s, driver for CUDA %d.%d, clock %d MHz, %s\n", facts.name,
           facts.capability_major, facts.capability_minor, facts.multiprocessors, device->memory_bytes >> 20, facts.pci_bus_id,
           facts.driver_version / 1000, facts.driver_version % 1000 / 10, device->clock_khz / 1000,
           facts.has_memory_pool ? "with memory pools" : "without memory pools");
    printf("opened in %.3f s, the engine in %.3f s more\n", opened_s, engine_s);
    weir_engine_release(engine);
}

/* A kernel of the host's by PTX, with copies there and back. */
static void smoke(raw_device *device) {
    enum { COUNT = 100000 };
    static float values[COUNT], results[COUNT];
    const weir_tensor_desc desc = {WEIR_F32, 1, {COUNT}};
    weir_engine *cpu = NULL, *engine = cuda_engine(1);
    weir_stream *stream = cuda_stream(engine);
    weir_kernel *kernel = add_one_kernel(engine, COUNT);
    weir_tensor *in = floats_on(engine, COUNT), *out = floats_on(engine, COUNT), *from = NULL, *to = NULL;
    (void)device;
    OK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &cpu));
    OK(weir_tensor_create(cpu, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = values}, &from));
    OK(weir_tensor_create(cpu, &desc, &(weir_memory){.struct_size = sizeof(weir_memory), .data = results}, &to));
    for (int i = 0; i < COUNT; i++) values[i] = (float)i;
    OK(weir_enqueue_copy(stream, from, in));
    OK(weir_enqueue(stream, kernel, &in, 1, &out, 1));
    OK(weir_enqueue_copy(stream, out, to));
    OK(weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += results[i] != values[i] + 1;
    printf("a kernel by PTX over %d numbers: %d wrong\n", COUNT, wrong);
    weir_tensor *const all[] = {in, out, from, to};
    for (int i = 0; i < 4; i++) weir_tensor_release(all[i]);
    weir_kernel_release(kernel);
    weir_stream_release(stream);
    weir_engine_release(engine);
    weir_engine_release(cpu);
    if (wrong > 0) exit(1);
}

static void hold(raw_device *device) {
    (void)device;
    printf("held\n");
    while (getchar() != EOF) {
    }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(raw_device *device);
    } sections[] = {{"info", info},         {"smoke", smoke},
                    {"conditions", bench_conditions}, {"questions", bench_questions},
                    {"latency", bench_latency}, {"calls", bench_calls},
                    {"graphs", bench_graphs}, {"dags", bench_dags},
                    {"updates", bench_updates}, {"loops", bench_loops},
                    {"branches", bench_branches}, {"memory", bench_memory},
                    {"products", bench_products}, {"kernels", bench_kernels},
                    {"hold", hold}};
    enum { SECTIONS = sizeof sections / sizeof *sections, ALL = SECTIONS - 1 };
    int wanted[SECTIONS] = {0}, any = 0;
    /* What was measured is there, whatever becomes of the rest. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 1; i < argc; i++) {
        int known = strcmp(argv[i], "--quick") == 0;
        quick |= known;
        for (int s = 0; s < SECTIONS; s++) {
            if (strcmp(argv[i], sections[s].name) == 0) known = wanted[s] = any = 1;
        }
        if (!known) {
            fprintf(stderr, "usage: gpu_bench [--quick]");
            for (int s = 0; s < SECTIONS; s++) fprintf(stderr, " [%s]", sections[s].name);
            fprintf(stderr, "\n");
            return 2;
        }
    }
    raw_device device;
    const double begun = now_ns();
    if (!raw_open(&device)) return 0;
    opened_s = (now_ns() - begun) / 1e9;
    for (int s = 0; s < SECTIONS; s++) {
        if (wanted[s] || (!any && s < ALL)) sections[s].run(&device);
    }
    RAW(cuDevicePrimaryCtxRelease_v2(device.device));
    return wrong;
}
