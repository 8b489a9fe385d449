/* How late others know: the host, that a kernel is over, by each way there is to learn of it; and a stream, that
 * another has come as far.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "bench.h"
#include "kernels.h"
#include "weir_side.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { STREAMS = 4, ROUNDS = 201, WAYS = 6 };
enum { LOOKING, SLEEPING, HOST_FUNCTION, FLAG, WEIR_WAIT, WEIR_TASK };

static const char *const names[WAYS] = {"cuEventQuery in a loop", "cuEventSynchronize of a blocking event", "cuLaunchHostFunc",
                                        "a word in pinned memory", "weir_event_synchronize", "weir_enqueue_task, on a pool's thread"};

typedef struct latency {
    void *spin, *streams[STREAMS], *looked[STREAMS], *slept[STREAMS];
    volatile uint32_t *flags;
    raw_pointer flags_there, memory;
    uint64_t cycles;
    weir_kernel *kernel;
    weir_stream *weir_streams[STREAMS];
    weir_event *events[STREAMS];
    weir_tensor *inputs[STREAMS], *outputs[STREAMS];
} latency;

/* Streams that have not told yet; who tells as the last notes when. The time is written before the count, which is read
 * with acquire. */
typedef struct told {
    atomic_int left;
    _Atomic double at;
} told;

static void tell(void *arg) {
    told *to = arg;
    atomic_store(&to->at, now_ns());
    atomic_fetch_sub(&to->left, 1);
}

static weir_status tell_weir(void *arg) {
    tell(arg);
    return WEIR_OK;
}

static double process_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

static void launch(latency *l, int way, int stream, told *to, uint32_t round) {
    if (way == WEIR_WAIT || way == WEIR_TASK) {
        OK(weir_enqueue(l->weir_streams[stream], l->kernel, &l->inputs[stream], 1, &l->outputs[stream], 1));
        if (way == WEIR_WAIT) OK(weir_event_record(l->events[stream], l->weir_streams[stream]));
        else OK(weir_enqueue_task(l->weir_streams[stream], tell_weir, to, NULL));
        return;
    }
    raw_pointer x = l->memory + 8 * (raw_pointer)stream, y = x + 4;
    void *arguments[] = {&x, &y, &l->cycles};
    RAW(cuLaunchKernel(l->spin, 1, 1, 1, 32, 1, 1, 0, l->streams[stream], arguments, NULL));
    if (way == LOOKING) RAW(cuEventRecord(l->looked[stream], l->streams[stream]));
    if (way == SLEEPING) RAW(cuEventRecord(l->slept[stream], l->streams[stream]));
    if (way == HOST_FUNCTION) RAW(cuLaunchHostFunc(l->streams[stream], tell, to));
    if (way == FLAG) RAW(cuStreamWriteValue32_v2(l->streams[stream], l->flags_there + 4 * (raw_pointer)stream, round, 0));
}

static void wait_for(latency *l, int way, int stream, told *to, uint32_t round) {
    switch (way) {
    case LOOKING:
        while (raw.cuEventQuery(l->looked[stream]) != 0) continue;
        break;
    case SLEEPING: RAW(cuEventSynchronize(l->slept[stream])); break;
    case FLAG:
        while (l->flags[stream] != round) continue;
        break;
    case WEIR_WAIT: OK(weir_event_synchronize(l->events[stream], WEIR_TIMEOUT_INFINITE)); break;
    default:
        while (atomic_load(&to->left) > 0) sched_yield();
    }
}

/* From the launch of the first kernel to the host that knows of all; `used` is the processors' time meanwhile, of all
 * threads. */
static double once(latency *l, int way, int streams, uint32_t round, double *used) {
    told to = {0};
    atomic_store(&to.left, streams);
    for (int s = 0; s < STREAMS; s++) {
        RAW(cuStreamSynchronize(l->streams[s]));
        OK(weir_stream_synchronize(l->weir_streams[s], WEIR_TIMEOUT_INFINITE));
    }
    const double begun = process_ns(), start = now_ns();
    for (int s = 0; s < streams; s++) launch(l, way, s, &to, round);
    for (int s = 0; s < streams; s++) wait_for(l, way, s, &to, round);
    const double end = way == HOST_FUNCTION || way == WEIR_TASK ? atomic_load(&to.at) : now_ns();
    *used = process_ns() - begun;
    /* `to` is this function's: whoever told has come back. */
    for (int s = 0; s < streams; s++) {
        RAW(cuStreamSynchronize(l->streams[s]));
        OK(weir_stream_synchronize(l->weir_streams[s], WEIR_TIMEOUT_INFINITE));
    }
    return end - start;
}

static void completion(latency *l, double kernel_us) {
    static double took[WAYS][ROUNDS], used[WAYS][ROUNDS];
    const int rounds = quick ? 3 : ROUNDS;
    uint32_t serial = 0;
    printf("Kernels of %.0f us, one on each stream. Latency: from the launch of the first to the host that knows of all, less the shortest such time\n"
           "that looking took. The processors' time is that of all threads, from the launch on.\n\n"
           "| streams | the host learns by | latency: median, us | p99, us | processors' time, us |\n|---|---|---|---|---|\n",
           kernel_us);
    for (int streams = 1; streams <= STREAMS; streams += STREAMS - 1) {
        for (int round = -1; round < rounds; round++) {
            for (int way = 0; way < WAYS; way++) {
                if (way == FLAG && (raw.cuStreamWriteValue32_v2 == NULL || l->flags == NULL)) continue;
                const int at = round < 0 ? 0 : round;
                took[way][at] = once(l, way, streams, ++serial, &used[way][at]);
            }
        }
        const double least = quantile(took[LOOKING], rounds, 0);
        for (int way = 0; way < WAYS; way++) {
            if (way == FLAG && (raw.cuStreamWriteValue32_v2 == NULL || l->flags == NULL)) {
                printf("| %d | %s | this driver cannot | | |\n", streams, names[way]);
                continue;
            }
            const double half = (median(took[way], rounds) - least) / 1e3, late = (quantile(took[way], rounds, 0.99) - least) / 1e3;
            const double busy = median(used[way], rounds) / 1e3;
            printf("| %d | %s | %.1f | %.1f | %.1f |\n", streams, names[way], half, late, busy);
            answer(5, "%s, %d stream%s: %.1f us late (p99 %.1f), %.0f us of processors", names[way], streams, streams > 1 ? "s" : "", half,
                   late, busy);
        }
    }
}

/* The ways in which an engine can be told to wait, and those of the driver. */
static const struct {
    const char *name;
    int way; /* of the driver's; WEIR_WAIT for weir's */
    weir_wait_policy policy;
    uint64_t spin_ns;
} policies[] = {
    {"cuEventQuery in a loop", LOOKING, 0, 0},
    {"cuEventSynchronize of a blocking event", SLEEPING, 0, 0},
    {"weir, as it is by itself", WEIR_WAIT, WEIR_WAIT_DEFAULT, 0},
    {"weir, WEIR_WAIT_BLOCK at once", WEIR_WAIT, WEIR_WAIT_BLOCK, 0},
    {"weir, WEIR_WAIT_BLOCK after 1 ms", WEIR_WAIT, WEIR_WAIT_BLOCK, 1000000},
    {"weir, WEIR_WAIT_YIELD", WEIR_WAIT, WEIR_WAIT_YIELD, 0},
};

static void waiting(latency *l, spin_clock clock) {
    enum { POLICIES = sizeof policies / sizeof *policies, TIMES = 41 };
    static double took[POLICIES][TIMES], used[POLICIES][TIMES];
    static const double lengths_us[] = {50, 200, 1000};
    const int rounds = quick ? 2 : TIMES;
    const uint64_t cycles = l->cycles;
    weir_kernel *const kernel = l->kernel;
    weir_stream *const stream = l->weir_streams[0];
    weir_event *const event = l->events[0];
    printf("\nOne kernel, and who waits for it: latency as above, less the shortest such time that looking took.\n\n"
           "| kernel, us | the host waits by | latency: median, us | p99, us | processors' time, us |\n|---|---|---|---|---|\n");
    for (size_t length = 0; length < sizeof lengths_us / sizeof *lengths_us; length++) {
        l->cycles = spin_cycles(clock, lengths_us[length]);
        for (int p = 0; p < POLICIES; p++) {
            weir_engine *engine = cuda_engine_waiting(policies[p].policy, policies[p].spin_ns);
            l->kernel = spin_kernel(engine, l->cycles, 1, 1);
            l->weir_streams[0] = cuda_stream(engine);
            OK(weir_event_create(engine, 0, &l->events[0]));
            for (int round = -1; round < rounds; round++) {
                const int at = round < 0 ? 0 : round;
                took[p][at] = once(l, policies[p].way, 1, 0, &used[p][at]);
            }
            weir_event_release(l->events[0]);
            weir_stream_release(l->weir_streams[0]);
            weir_kernel_release(l->kernel);
            weir_engine_release(engine);
            l->events[0] = event, l->weir_streams[0] = stream, l->kernel = kernel;
        }
        const double least = quantile(took[0], rounds, 0);
        for (int p = 0; p < POLICIES; p++) {
            printf("| %.0f | %s | %.1f | %.1f | %.1f |\n", lengths_us[length], policies[p].name, (median(took[p], rounds) - least) / 1e3,
                   (quantile(took[p], rounds, 0.99) - least) / 1e3, median(used[p], rounds) / 1e3);
        }
    }
    l->cycles = cycles;
}

/* Empty kernels behind one another, on one stream or on two in turn. All have been issued before the first begins: it
 * stands behind a kernel that works that long. */
static double hop_ns(latency *l, const raw_device *device, int crossing, int *starved) {
    enum { HOPS = 300 };
    void *module = NULL, *empty = raw_kernel(PTX_PLAIN, "empty", &module, NULL);
    void *events[] = {raw_event(RAW_EVENT_NO_TIMING), raw_event(RAW_EVENT_NO_TIMING)};
    void *from = raw_event(RAW_EVENT_DEFAULT), *to = raw_event(RAW_EVENT_DEFAULT);
    raw_pointer x = l->memory, y = x + 4, none = 0;
    uint64_t long_enough = quick ? 100 : (uint64_t)device->clock_khz * 20;
    void *spin_arguments[] = {&x, &y, &long_enough}, *arguments[] = {&none, &none, &none, &none};
    float ms = 0;
    RAW(cuLaunchKernel(l->spin, 1, 1, 1, 32, 1, 1, 0, l->streams[0], spin_arguments, NULL));
    RAW(cuEventRecord(from, l->streams[0]));
    RAW(cuEventRecord(events[1], l->streams[0]));
    const int hops = quick ? 10 : HOPS;
    for (int i = 0; i < hops; i++) {
        void *stream = l->streams[crossing ? (i + 1) % 2 : 0];
        if (crossing) RAW(cuStreamWaitEvent(stream, events[(i + 1) % 2], 0));
        RAW(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
        if (crossing) RAW(cuEventRecord(events[i % 2], stream));
    }
    RAW(cuEventRecord(to, l->streams[crossing ? hops % 2 : 0]));
    *starved = raw.cuEventQuery(from) == 0;
    for (int s = 0; s < 2; s++) RAW(cuStreamSynchronize(l->streams[s]));
    RAW(cuEventElapsedTime(&ms, from, to));
    void *const all[] = {events[0], events[1], from, to};
    for (int i = 0; i < 4; i++) RAW(cuEventDestroy_v2(all[i]));
    RAW(cuModuleUnload(module));
    return (double)ms * 1e6 / hops;
}

static void hops(latency *l, const raw_device *device) {
    int starved[2] = {0};
    double took[2] = {0};
    for (int crossing = 0; crossing < 2; crossing++) {
        double each[9];
        const int rounds = quick ? 1 : 9;
        for (int i = 0; i < rounds; i++) each[i] = hop_ns(l, device, crossing, &starved[crossing]);
        took[crossing] = median(each, rounds) / 1e3;
    }
    printf("\nAn empty kernel behind one on another stream: %.2f us each; behind one on its own stream: %.2f us%s.\n", took[1], took[0],
           !quick && (starved[0] || starved[1]) ? " (the device did not wait until all were issued: the host's time is in this)" : "");
}

void bench_latency(raw_device *device) {
    const double us = 50;
    const spin_clock clock = measure_clock(device);
    void *module = NULL;
    void *words = NULL;
    weir_engine *engine = cuda_engine(1);
    latency l = {.spin = raw_kernel(PTX_PLAIN, "spin", &module, NULL), .cycles = spin_cycles(clock, us), .memory = raw_memory(8 * STREAMS)};
    l.kernel = spin_kernel(engine, l.cycles, 1, 1);
    for (int s = 0; s < STREAMS; s++) {
        l.streams[s] = raw_stream();
        l.looked[s] = raw_event(RAW_EVENT_NO_TIMING);
        l.slept[s] = raw_event(RAW_EVENT_NO_TIMING | RAW_EVENT_BLOCKING);
        l.weir_streams[s] = cuda_stream(engine);
        OK(weir_event_create(engine, 0, &l.events[s]));
        l.inputs[s] = floats_on(engine, 1);
        l.outputs[s] = floats_on(engine, 1);
        OK(weir_enqueue_fill(l.weir_streams[s], l.inputs[s], 0));
    }
    RAW(cuMemsetD32Async(l.memory, 0, 2 * STREAMS, l.streams[0]));
    RAW(cuMemHostAlloc(&words, 4 * STREAMS, RAW_HOST_MAPPED));
    if (raw.cuMemHostGetDevicePointer_v2(&l.flags_there, words, 0) == 0) l.flags = words;
    for (int s = 0; s < STREAMS; s++) ((volatile uint32_t *)words)[s] = 0;
    printf("\n## Who knows when\n\n");
    completion(&l, us);
    waiting(&l, clock);
    hops(&l, device);
    for (int s = 0; s < STREAMS; s++) {
        RAW(cuEventDestroy_v2(l.looked[s]));
        RAW(cuEventDestroy_v2(l.slept[s]));
        RAW(cuStreamDestroy_v2(l.streams[s]));
        weir_tensor_release(l.inputs[s]);
        weir_tensor_release(l.outputs[s]);
        weir_event_release(l.events[s]);
        weir_stream_release(l.weir_streams[s]);
    }
    RAW(cuMemFreeHost(words));
    RAW(cuMemFree_v2(l.memory));
    weir_kernel_release(l.kernel);
    weir_engine_release(engine);
    RAW(cuModuleUnload(module));
}
