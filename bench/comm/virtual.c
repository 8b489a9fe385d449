/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A thousand ranks in virtual time. Each rank is a communicator and a program of weir, over a transport that moves no
 * bytes: it has a clock for its rank. Kernels advance the clock by what they cost; `test` says that an operation is
 * over when the clock has reached its end; and where a rank has nothing left but to wait, the clock jumps to the next
 * end.
 *
 * Collective k ends when the last rank has begun it, and the network is done with k - 1, plus the time of the fastest
 * algorithm (virtual.h). What a rank does before it begins k depends on the ends of earlier ones alone; so rank after
 * rank is run, again and again, until no end changes: after as many rounds as there are operations, at most.
 *
 * Tensors are small; each of their elements stands for many.
 *
 *   virtual [parameters.txt] [ranks ...]
 */

#include "virtual.h"
#include <assert.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>
#include <weir/comm.h>
#include <weir/inspect.h>

enum { ELEMENTS = 64 };

#undef assert
#define assert(what)                                                                                                   \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != WEIR_OK) {                                                                                       \
            fprintf(stderr, "%s: %s\n", #call, weir_last_error_message());                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* What all ranks share. */
struct world {
    const struct parameters *parameters;
    int ranks, size, in_bucket;
    /* Of operation k: its latest begin and its end, as of the last round; its latest begin in this one. */
    double latest[STEPS * LAYERS], ends[STEPS * LAYERS], next_latest[STEPS * LAYERS];
    struct cost cost; /* of each */
};

struct operation {
    struct rank *rank;
    int number, is_open;
    double end;
    uint64_t seen; /* the rank's `moves` when it was tested last */
};

struct rank {
    struct world *world;
    int number;
    weir_comm *comm;
    weir_program *program;
    double clock, computed, copied, late, latency, link;
    uint64_t moves; /* how often anything has happened */
    int begun, layers, updates;
    struct operation operations[STEPS * LAYERS];
};

/* Of the processor: waits for other processes do not count. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- The transport ---- */

static weir_status get_info(void *ctx, weir_comm_transport_info *info) {
    const struct rank *rank = ctx;
    info->rank = rank->number;
    info->size = rank->world->ranks;
    info->ops = 1 << WEIR_COMM_SEND | 1 << WEIR_COMM_RECV | 1 << WEIR_COMM_ALL_REDUCE;
    info->dtypes = UINT64_C(1) << WEIR_F32;
    info->reductions = 1 << WEIR_COMM_SUM;
    info->max_tag = 32767;
    snprintf(info->name, sizeof info->name, "virtual time");
    return WEIR_OK;
}

static void pass(struct rank *rank, double time) {
    rank->clock += time;
    rank->moves++;
}

static double copy_time(const struct world *world) {
    return world->in_bucket > 1 ? world->in_bucket * gradient_bytes[world->size] * world->parameters->copy : 0;
}

static weir_status start(void *ctx, const weir_comm_operation *of, void **out_request) {
    struct rank *rank = ctx;
    struct world *world = rank->world;
    const double bytes = (double)of->count / ELEMENTS * gradient_bytes[world->size];
    if (of->op != WEIR_COMM_ALL_REDUCE || rank->begun == STEPS * LAYERS) return WEIR_UNIMPLEMENTED;
    const int k = rank->begun++;
    struct operation *operation = &rank->operations[k];
    /* Before: weir has copied a bucket. */
    pass(rank, copy_time(world));
    rank->copied += copy_time(world);
    assert(bytes == world->in_bucket * gradient_bytes[world->size]);
    world->next_latest[k] = fmax(world->next_latest[k], rank->clock);
    operation->rank = rank;
    operation->number = k;
    operation->is_open = 1;
    operation->end = fmax(world->ends[k], rank->clock + world->cost.all);
    operation->seen = 0;
    memcpy(of->recv, of->send, of->count * of->element_bytes);
    pass(rank, world->parameters->call);
    *out_request = operation;
    return WEIR_OK;
}

/* The rank waits until the next of its operations is over: for the latest rank at first, then for the network. */
static void wait_for_next(struct rank *rank) {
    const struct operation *next = NULL;
    const struct world *world = rank->world;
    for (int k = 0; k < rank->begun; k++) {
        const struct operation *at = &rank->operations[k];
        if (at->is_open && (!next || at->end < next->end)) next = at;
    }
    const double wait = next->end - rank->clock;
    const double late = fmin(fmax(world->latest[next->number] - rank->clock, 0), wait);
    const struct cost *cost = &world->cost;
    rank->late += late;
    rank->latency += (wait - late) * cost->latency / cost->all;
    rank->link += (wait - late) * (1 - cost->latency / cost->all);
    pass(rank, wait);
}

static weir_status test(void *ctx, void *request, int32_t *out_done) {
    struct rank *rank = ctx;
    struct operation *operation = request;
    *out_done = 0;
    if (operation->end > rank->clock) {
        /* A second look, and nothing has happened in between: the rank has nothing else to do. */
        if (operation->seen == rank->moves) wait_for_next(rank);
        operation->seen = rank->moves;
    }
    if (operation->end > rank->clock) return WEIR_OK;
    operation->is_open = 0;
    pass(rank, copy_time(rank->world));
    rank->copied += copy_time(rank->world);
    *out_done = 1;
    return WEIR_OK;
}

/* ---- The program ---- */

static int32_t layer_kernel(void *user, weir_kernel_context *context) {
    struct rank *rank = user;
    const double time = layer_time(rank->world->parameters, rank->world->size, rank->number, rank->layers++);
    (void)context;
    rank->computed += time;
    pass(rank, time);
    return WEIR_OK;
}

static int32_t update_kernel(void *user, weir_kernel_context *context) {
    struct rank *rank = user;
    const double time = rank->world->parameters->update[rank->world->size];
    (void)context;
    rank->updates++;
    rank->computed += time;
    pass(rank, time);
    return WEIR_OK;
}

static weir_kernel *make_kernel(weir_engine *engine, struct rank *rank, const char *name, weir_compute_fn compute,
                                double cost, const weir_tensor_desc *in, size_t inputs, const weir_tensor_desc *out,
                                size_t outputs) {
    const weir_host_kernel_desc desc = {.struct_size = sizeof desc,
                                        .name = name,
                                        .inputs = in,
                                        .num_inputs = inputs,
                                        .outputs = out,
                                        .num_outputs = outputs,
                                        .compute = compute,
                                        .cost_ns = (uint64_t)(cost * 1000),
                                        .user = rank};
    weir_kernel *kernel = NULL;
    MUST(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}

static weir_program *make_program(weir_engine *engine, struct rank *rank) {
    const struct world *world = rank->world;
    const struct parameters *of = world->parameters;
    const size_t bucket = (size_t)world->in_bucket;
    const weir_communication all_reduce = {
        .struct_size = sizeof all_reduce, .op = WEIR_COMM_ALL_REDUCE, .num_tensors = bucket};
    const weir_tensor_desc desc = {.dtype = WEIR_F32, .rank = 1, .dims = {ELEMENTS}}, both[2] = {desc, desc};
    weir_kernel *layers, *updates, *sum = NULL;
    weir_graph *graph = NULL;
    weir_program *program = NULL;
    weir_value activation, made[2], gradients[LAYERS], weights[LAYERS];
    char name[32];
    layers = make_kernel(engine, rank, "layer", layer_kernel, of->layer[world->size], &desc, 1, both, 2);
    updates = make_kernel(engine, rank, "update", update_kernel, of->update[world->size], both, 2, &desc, 1);
    MUST(weir_kernel_create_communication(engine, rank->comm, &all_reduce, NULL, &sum));
    MUST(weir_graph_create("step", &graph));
    MUST(weir_graph_add_input(graph, "x", &desc, &activation));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "weights %d", i);
        MUST(weir_graph_add_input(graph, name, &desc, &weights[i]));
        snprintf(name, sizeof name, "layer %d", i);
        MUST(weir_graph_add_kernel(graph, name, layers, &activation, 1, made, 2, NULL));
        activation = made[0];
        gradients[i] = made[1];
        if ((i + 1) % world->in_bucket != 0) continue;
        weir_value *first = &gradients[i + 1 - world->in_bucket];
        snprintf(name, sizeof name, "sum %d", i / world->in_bucket);
        MUST(weir_graph_add_kernel(graph, name, sum, first, bucket, first, bucket, NULL));
        for (int j = i + 1 - world->in_bucket; j <= i; j++) {
            weir_value in[2] = {weights[j], gradients[j]}, out;
            snprintf(name, sizeof name, "update %d", j);
            MUST(weir_graph_add_kernel(graph, name, updates, in, 2, &out, 1, NULL));
            snprintf(name, sizeof name, "updated %d", j);
            MUST(weir_graph_add_output(graph, name, out));
        }
    }
    MUST(weir_graph_compile(graph, &engine, 1, NULL, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(layers);
    weir_kernel_release(updates);
    weir_kernel_release(sum);
    return program;
}

static weir_tensor *make_tensor(weir_engine *engine) {
    const weir_tensor_desc desc = {.dtype = WEIR_F32, .rank = 1, .dims = {ELEMENTS}};
    weir_tensor *tensor = NULL;
    void *data = NULL;
    MUST(weir_tensor_create(engine, &desc, NULL, &tensor));
    MUST(weir_tensor_get_data(tensor, &data));
    memset(data, 0, ELEMENTS * sizeof(float));
    return tensor;
}

/* What a program would have learned of its nodes in real time: kernels take no time here. */
static void write_costs(const struct world *world, char *to, size_t capacity) {
    const struct parameters *of = world->parameters;
    size_t at = (size_t)snprintf(to, capacity, "weir costs 1\n");
    for (int i = 0; i < LAYERS; i++) {
        at += (size_t)snprintf(to + at, capacity - at, "%.0f - layer %d\n%.0f - update %d\n",
                               of->layer[world->size] * 1e3, i, of->update[world->size] * 1e3, i);
        if (i % world->in_bucket) continue;
        at += (size_t)snprintf(to + at, capacity - at, "%.0f - sum %d (begin)\n100 - sum %d\n", of->begin * 1e3,
                               i / world->in_bucket, i / world->in_bucket);
        if (at >= capacity) abort();
    }
}

/* ---- Rounds ---- */

/* What one configuration has come to; memory in bytes a rank. */
struct figures {
    double alone, step, late, latency, link, copied, real_us, comm_bytes, program_bytes, run_bytes, rss_bytes;
    double comm_us, program_us, release_us;
    int rounds;
    char by;
};

static void run_rank(struct rank *rank, const char *costs, weir_tensor *const *in, weir_tensor **out) {
    size_t known = 0;
    rank->clock = rank->computed = rank->copied = rank->late = rank->latency = rank->link = 0;
    rank->begun = rank->layers = rank->updates = 0;
    rank->moves = 1;
    for (int step = 1; step <= STEPS; step++) {
        MUST(weir_program_load_costs(rank->program, costs, &known));
        assert(known == 2 * (size_t)(LAYERS + LAYERS / rank->world->in_bucket));
        MUST(weir_program_run(rank->program, NULL, in, LAYERS + 1, out, LAYERS, NULL));
        assert(rank->layers == step * LAYERS && rank->updates == step * LAYERS);
        assert(rank->begun == step * LAYERS / rank->world->in_bucket);
    }
}

static double heap(void) {
    const struct mallinfo2 info = mallinfo2();
    return (double)info.uordblks + (double)info.hblkhd;
}

static double resident(void) {
    long pages = 0, skipped = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &skipped, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static struct figures simulate(weir_engine *engine, const struct parameters *parameters, int ranks, int size,
                               int in_bucket) {
    static const weir_comm_vtable vtable = {
        .struct_size = sizeof vtable, .get_info = get_info, .start = start, .test = test};
    struct world world = {.parameters = parameters, .ranks = ranks, .size = size, .in_bucket = in_bucket};
    const int operations = STEPS * LAYERS / in_bucket;
    struct rank *each = calloc((size_t)ranks, sizeof *each);
    weir_tensor *in[LAYERS + 1], *out[LAYERS];
    struct figures figures = {0};
    int has_changed = 1;
    char costs[8192];
    assert(each);
    write_costs(&world, costs, sizeof costs);
    for (int i = 0; i <= LAYERS; i++) in[i] = make_tensor(engine);
    for (int i = 0; i < LAYERS; i++) out[i] = make_tensor(engine);
    world.cost = all_reduce_cost(parameters, ranks, in_bucket * gradient_bytes[size]);
    figures.by = world.cost.by;
    const double before = heap(), rss = resident();
    double since = now();
    for (int r = 0; r < ranks; r++) {
        each[r].world = &world;
        each[r].number = r;
        MUST(weir_comm_create(&vtable, &each[r], NULL, &each[r].comm));
    }
    figures.comm_us = (now() - since) * 1e6 / ranks;
    const double with_comms = heap();
    since = now();
    for (int r = 0; r < ranks; r++) each[r].program = make_program(engine, &each[r]);
    figures.program_us = (now() - since) * 1e6 / ranks;
    const double with_programs = heap();
    while (has_changed) {
        assert(figures.rounds++ <= operations + 1);
        memset(world.next_latest, 0, sizeof world.next_latest);
        const double began = now();
        for (int r = 0; r < ranks; r++) run_rank(&each[r], costs, in, out);
        figures.real_us = (now() - began) * 1e6 / ranks / STEPS;
        has_changed = 0;
        double link = 0;
        for (int k = 0; k < operations; k++) {
            link = fmax(link, world.next_latest[k]) + world.cost.all;
            has_changed |= link != world.ends[k] || world.next_latest[k] != world.latest[k];
            world.ends[k] = link;
            world.latest[k] = world.next_latest[k];
        }
    }
    const double with_runs = heap();
    double end = 0;
    for (int r = 0; r < ranks; r++) end = fmax(end, each[r].clock);
    for (int r = 0; r < ranks; r++) {
        const struct rank *rank = &each[r];
        const double of = (double)ranks * STEPS;
        const double calls = operations * parameters->call;
        const double sum = rank->computed + rank->copied + calls + rank->late + rank->latency + rank->link;
        assert(fabs(sum - rank->clock) < 1e-6 * end);
        figures.alone += rank->computed / of;
        figures.late += (rank->late + end - rank->clock) / of;
        figures.latency += rank->latency / of;
        figures.link += rank->link / of;
        figures.copied += rank->copied / of;
    }
    figures.step = end / STEPS;
    figures.comm_bytes = (with_comms - before) / ranks;
    figures.program_bytes = (with_programs - with_comms) / ranks;
    figures.run_bytes = (with_runs - with_programs) / ranks;
    figures.rss_bytes = (resident() - rss) / ranks;
    for (int r = 0; r < ranks; r++) weir_program_release(each[r].program);
    since = now();
    for (int r = 0; r < ranks; r++) weir_comm_release(each[r].comm);
    figures.release_us = (now() - since) * 1e6 / ranks;
    for (int i = 0; i <= LAYERS; i++) weir_tensor_release(in[i]);
    for (int i = 0; i < LAYERS; i++) weir_tensor_release(out[i]);
    free(each);
    return figures;
}

int main(int argc, char **argv) {
    static const int buckets[] = {1, 4, 8};
    static const char *const variants[] = {"", "the network knows halving and doubling",
                                           "weir has learned that its nodes that begin operations take 5 us"};
    const char *path = argc > 1 ? argv[1] : "bench/comm/parameters.txt";
    struct parameters given;
    weir_engine *engine = NULL;
    int ranks[16] = {8, 64, 1024}, number = 3;
    struct figures memory[16];
    if (!read_parameters(path, &given)) {
        fprintf(stderr, "usage: virtual [parameters.txt] [ranks ...]\n");
        return 1;
    }
    for (int i = 2; i < argc && i < 18; i++) ranks[(number = i - 1) - 1] = atoi(argv[i]);
    MUST(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    printf("A step of %d layers in virtual time, mean of %d. Shares of the step, mean of the ranks: waiting for the\n"
           "latest rank, for the network's latency, for its bytes; copying buckets. By: ring, doubling, halving.\n"
           "Twin: without weir. Real: processor time of a run of weir.\n\n"
           "%5s %8s %6s %2s %10s %10s %6s | %6s %7s %6s %6s | %8s %6s %8s\n",
           LAYERS, STEPS, "ranks", "gradient", "bucket", "by", "alone, us", "step, us", "effic.", "latest", "latency",
           "bytes", "copies", "twin", "rounds", "real, us");
    for (int variant = 0; variant < 3; variant++) {
        struct parameters of_variant = given;
        if (variant == 1) of_variant.halving = 1;
        if (variant == 2) of_variant.begin = 5;
        if (variant > 0) printf("The last, but %s:\n", variants[variant]);
        for (int i = variant > 0 ? number - 1 : 0; i < number; i++) {
            for (int row = 0; row < 3 * SIZES; row++) {
                const int size = row / 3, bucket = buckets[row % 3];
                if (variant > 0 && bucket == 4) continue;
                const struct figures of = simulate(engine, &of_variant, ranks[i], size, bucket);
                const double part = 100 / of.step, twin = twin_step(&of_variant, ranks[i], size, bucket);
                printf("%5d %5.0f KB %6d %2c %10.0f %10.0f %5.1f%% | %5.1f%% %6.1f%% %5.1f%% %5.1f%% | %+7.3f%% %6d "
                       "%8.1f\n",
                       ranks[i], gradient_bytes[size] / 1024, bucket, of.by, of.alone, of.step, of.alone * part,
                       of.late * part, of.latency * part, of.link * part, of.copied * part,
                       (twin / of.step - 1) * 100, of.rounds, of.real_us);
                fflush(stdout);
                if (variant == 0 && row == 0) memory[i] = of;
            }
        }
    }
    printf("\nFor each rank, all of them in one process: bytes of the heap, and processor time (us)\n"
           "%5s %13s %9s %11s %9s | %10s %9s %10s\n",
           "ranks", "communicator", "program", "first runs", "resident", "create it", "compile", "release it");
    for (int i = 0; i < number; i++)
        printf("%5d %13.0f %9.0f %11.0f %9.0f | %10.2f %9.1f %10.2f\n", ranks[i], memory[i].comm_bytes,
               memory[i].program_bytes, memory[i].run_bytes, memory[i].rss_bytes, memory[i].comm_us,
               memory[i].program_us, memory[i].release_us);
    for (int size = 0; size < SIZES; size++) {
        const double real = given.measured[size], by_hand = given.measured_mpi[size];
        if (real == 0) continue;
        /* The network moves by itself, or only while the rank waits. */
        const struct figures of = simulate(engine, &given, 2, size, 1);
        const double takes = all_reduce_cost(&given, 2, gradient_bytes[size]).all;
        const double apart = of.alone + LAYERS * (takes + given.call);
        printf("%s%5.0f KB, 2 ranks: virtual %.0f us, without any overlap %.0f us; measured: weir %.0f us (%.2f x, "
               "%.2f x), MPI by hand %.0f us (%.2f x, %.2f x)\n",
               size ? "" : "\n", gradient_bytes[size] / 1024, of.step, apart, real, real / of.step, real / apart,
               by_hand, by_hand / of.step, by_hand / apart);
    }
    weir_engine_release(engine);
    return 0;
}
