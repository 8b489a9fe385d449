/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *   fuzz_kernels [--seed <n>] [--cases <n> | --minutes <n>] [--family <name>] [--case <number>]
 *
 * Random calls of built-in kernels: descriptions, shapes, types, aliases, pools, streams and graphs, some of them
 * spoiled. Each is right by a plain reference, to the bit the same in all ways to run it, or refused with a text; and
 * nothing is written beside the outputs. A case is one number; --case does it again. Operands lie against pages that
 * nobody may touch.
 */

#include <sys/mman.h>
#include <stdbool.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "fuzz.h"

enum { WIDTHS = 4, REGIONS = 24, REGION = 2 << 20, PAGE = 65536, CANARY = 256 };

static const int widths[WIDTHS] = {1, 2, 3, 7};
static const family gemm_families[] = {{"gemm", NULL, NULL, NULL}, {NULL, NULL, NULL, NULL}};
static const family *const tables[] = {gemm_families, elements_families, moving_families, rows_families, products_families, windows_families};

static struct {
    weir_engine *engine;
    weir_threadpool *pools[WIDTHS];
    weir_stream *alone, *streams[WIDTHS], *asynchronous;
    unsigned char *regions[REGIONS];
} world;

/* The case that is under way, for reports. */
static struct {
    uint64_t number;
    const family *family;
    const problem *problem;
    const char *way;
} now;

static void describe(const char *what, const array *all, size_t n) {
    for (size_t i = 0; i < n; i++) {
        fprintf(stderr, "  %s %zu: %s[", what, i, weir_dtype_name(all[i].desc.dtype));
        for (uint32_t k = 0; k < all[i].desc.rank; k++) fprintf(stderr, k ? ",%lld" : "%lld", (long long)all[i].desc.dims[k]);
        fprintf(stderr, "]\n");
    }
}

static void wrong(const char *what) {
    const char *isa = getenv("WEIR_MAX_ISA");
    fprintf(stderr, "%s%s fuzz_kernels --case %llu: %s, %s: %s\n", isa ? "WEIR_MAX_ISA=" : "", isa ? isa : "",
            (unsigned long long)now.number, now.family->name, now.way, what);
    describe("input", now.problem->in, now.problem->num_in);
    describe("output", now.problem->out, now.problem->num_out);
    const uint32_t *words = (const uint32_t *)(const void *)&now.problem->desc;
    fprintf(stderr, "  desc, in words:");
    for (size_t i = 0; i < sizeof now.problem->desc / 4 && i < 64; i++) fprintf(stderr, " %x", words[i]);
    fprintf(stderr, "\n  last error: %s\n", weir_last_error_message());
    fflush(NULL);
    abort();
}

/* ---- Memory ------------------------------------------------------------------------------------ */

static void *chunks;

void *fuzz_alloc(size_t bytes) {
    void **chunk = malloc(sizeof *chunk * 2 + bytes);
    CHECK(chunk != NULL);
    *chunk = chunks;
    chunks = chunk;
    return chunk + 2;
}

static void free_chunks(void) {
    while (chunks != NULL) {
        void *next = *(void **)chunks;
        free(chunks);
        chunks = next;
    }
}

void *fuzz_region(int region, size_t bytes) {
    CHECK(bytes <= REGION && region < REGIONS);
    return world.regions[region] + REGION - bytes;
}

/* An operand between canaries and a page that nobody may touch, in front of it or behind it. */
typedef struct operand {
    weir_tensor *tensor;
    unsigned char *data, *canary;
    size_t bytes;
} operand;

static operand make_operand(const weir_tensor_desc *desc, int region, bool at_end) {
    operand o = {.bytes = elements(desc) * dtype_size(desc->dtype)};
    unsigned char *begin = world.regions[region];
    CHECK(o.bytes + CANARY <= REGION && region < REGIONS);
    o.data = at_end ? begin + REGION - o.bytes : begin;
    o.canary = at_end ? o.data - CANARY : o.data + o.bytes;
    memset(o.canary, 0xc5, CANARY);
    memset(o.data, 0xa5, o.bytes);
    if (weir_tensor_create(world.engine, desc, OVER(o.data), &o.tensor) != WEIR_OK) wrong("no tensor over memory");
    return o;
}

static void check_canary(const operand *o) {
    for (int i = 0; i < CANARY; i++) if (o->canary[i] != 0xc5) wrong("wrote beside an operand");
}

/* ---- Spoiling ---------------------------------------------------------------------------------- */

static array like_of(problem *p, weir_tensor_desc desc) {
    problem other = {.d = p->d};
    return *add_input(&other, desc, NORMAL);
}

static void spoil(problem *p) {
    if (p->num_in == 0) return;
    size_t i = draw_bits(p->d) % p->num_in;
    weir_tensor_desc desc = p->in[i].desc;
    switch (draw_int(p->d, 0, 4)) {
    case 0: p->num_in -= p->packs ? 0 : 1; return;
    case 1: if (p->num_in < MAX_IN) add_input(p, desc, NORMAL); return;
    case 2: if (desc.rank > 0) desc.dims[draw_bits(p->d) % desc.rank] = draw_int(p->d, 0, 9); break;
    case 3: desc.dtype = DRAW_OF(p->d, ALL_DTYPES); break;
    default:
        if (desc.rank < WEIR_MAX_RANK && draw_once_in(p->d, 2)) desc.dims[desc.rank++] = 1;
        else if (desc.rank > 0) desc.rank--;
        break;
    }
    if (elements(&desc) <= 2 * MAX_ELEMENTS) p->in[i] = like_of(p, desc);
}

/* ---- One case ---------------------------------------------------------------------------------- */

static void check_refusal(weir_status status) {
    const char *text = weir_last_error_message();
    const char *colon = strstr(text, ": ");
    if (status == WEIR_INTERNAL || status == WEIR_RESOURCE_EXHAUSTED) wrong("failed in an odd way");
    if (strncmp(text, "weir_", 5) != 0 || colon == NULL || strlen(colon) < 6) wrong("refused without a text");
}

static void compare(const array *out, const void *data) {
    weir_dtype dtype = out->desc.dtype;
    for (size_t i = 0; i < out->n; i++) {
        double got = load(dtype, data, i), lo = out->v[i], hi = out->hi[i];
        if (lo > hi) continue;
        bool right = got >= rounded(dtype, lo) && got <= rounded(dtype, hi);
        if (isnan(lo)) right = is_float(dtype) ? isnan(got) : got == 0;
        if (right) continue;
        char text[200];
        snprintf(text, sizeof text, "element %zu is %.9g, expected %.9g to %.9g", i, got, lo, hi);
        wrong(text);
    }
}

typedef struct way {
    const char *name;
    weir_stream *stream;
    bool graph, constants;
    int alias; /* the input that output 0 shares its memory with, or -1 */
} way;

/* Calls the kernel as a node of a graph. */
static weir_status run_graph(const way *w, weir_kernel *kernel, const problem *p, weir_tensor *const *in, size_t num_in,
                             weir_tensor *const *out) {
    weir_graph *graph = make_graph("fuzz");
    weir_program *program = NULL;
    weir_value values[MAX_IN], results[MAX_OUT];
    weir_tensor *fed[MAX_IN];
    weir_status status = WEIR_OK;
    size_t num_fed = 0;
    char name[32];
    for (size_t i = 0; i < num_in; i++) {
        snprintf(name, sizeof name, "in%zu", i);
        if (w->constants && (p->in[i].n ^ now.number >> i) % 2 == 0) {
            CHECK_OK(weir_graph_add_constant(graph, name, in[i], &values[i]));
        } else {
            CHECK_OK(weir_graph_add_input(graph, name, &p->in[p->packs && i > 0 ? i + 1 : i].desc, &values[i]));
            fed[num_fed++] = in[i];
        }
    }
    status = weir_graph_add_kernel(graph, "kernel", kernel, values, num_in, results, p->num_out, NULL);
    for (size_t i = 0; status == WEIR_OK && i < p->num_out; i++) {
        snprintf(name, sizeof name, "out%zu", i);
        status = weir_graph_add_output(graph, name, results[i]);
    }
    if (status == WEIR_OK) status = weir_graph_compile(graph, &world.engine, 1, NULL, &program);
    if (status == WEIR_OK) status = weir_program_run(program, w->stream, fed, num_fed, out, p->num_out, NULL);
    weir_program_release(program);
    weir_graph_destroy(graph);
    return status;
}

/* Calls the kernel; gives the outputs' bytes if it is done. */
static weir_status call(const way *w, weir_kernel *kernel, const problem *p, unsigned char **results, bool at_end) {
    operand in[MAX_IN], out[MAX_OUT];
    weir_tensor *ins[MAX_IN], *outs[MAX_OUT];
    weir_status status;
    size_t num_in = 0;
    now.way = w->name;
    for (size_t i = 0; i < p->num_in; i++) {
        if (p->packs && i == 1) continue;
        in[num_in] = make_operand(&p->in[i].desc, (int)num_in, at_end);
        for (size_t k = 0; k < p->in[i].n; k++) store(p->in[i].desc.dtype, in[num_in].data, k, p->in[i].v[k]);
        ins[num_in] = in[num_in].tensor;
        num_in++;
    }
    for (size_t i = 0; i < p->num_out; i++) {
        out[i] = make_operand(&p->out[i].desc, MAX_IN + (int)i, at_end);
        outs[i] = out[i].tensor;
    }
    if (w->alias >= 0) {
        /* Output 0 in the memory of an input, which the reference's run has left alone. */
        weir_tensor_release(out[0].tensor);
        out[0] = in[w->alias];
        CHECK_OK(weir_tensor_create(world.engine, &p->out[0].desc, OVER(out[0].data), &out[0].tensor));
        outs[0] = out[0].tensor;
    }
    unsigned char *before[MAX_IN];
    for (size_t i = 0; i < num_in; i++) before[i] = memcpy(fuzz_alloc(in[i].bytes), in[i].data, in[i].bytes);
    if (w->graph) {
        status = run_graph(w, kernel, p, ins, num_in, outs);
    } else {
        status = weir_enqueue(w->stream, kernel, ins, num_in, outs, p->num_out);
        if (status == WEIR_OK && w->stream == world.asynchronous) {
            status = weir_stream_synchronize(w->stream, WEIR_TIMEOUT_INFINITE);
            if (status != WEIR_OK) CHECK_OK(weir_stream_clear_error(w->stream));
        }
    }
    if (status != WEIR_OK) check_refusal(status);
    for (size_t i = 0; i < num_in; i++) {
        check_canary(&in[i]);
        bool written = w->alias == (int)i && status == WEIR_OK;
        if (!written && memcmp(before[i], in[i].data, in[i].bytes) != 0) wrong("wrote an input");
        weir_tensor_release(in[i].tensor);
    }
    for (size_t i = 0; i < p->num_out; i++) {
        check_canary(&out[i]);
        weir_tensor_release(out[i].tensor);
        if (status == WEIR_OK) {
            results[i] = memcpy(fuzz_alloc(out[i].bytes), out[i].data, out[i].bytes);
        } else if (w->alias < 0) {
            for (size_t k = 0; k < out[i].bytes; k++) if (out[i].data[k] != 0xa5) wrong("wrote an output and failed");
        }
    }
    return status;
}

/* An input whose memory output 0 may take over, or else none: -1. */
static int input_to_share(const problem *p) {
    for (size_t i = 0; i < p->num_in && p->num_out > 0; i++) {
        bool fits = p->in[i].n == p->out[0].n && p->in[i].desc.dtype == p->out[0].desc.dtype && p->in[i].n > 0;
        if (fits && !(p->packs && i == 1)) return (int)(p->packs && i > 1 ? i - 1 : i);
    }
    return -1;
}

static void run_kernel(problem *p, verdict v, weir_kernel *kernel, tally *t) {
    unsigned char *first[MAX_OUT] = {NULL, NULL}, *again[MAX_OUT] = {NULL, NULL};
    bool at_end = !draw_once_in(p->d, 4);
    way alone = {"alone", world.alone, false, false, -1};
    weir_status status = call(&alone, kernel, p, first, at_end);
    if (v == RIGHT && status != WEIR_OK) wrong("refused what is right");
    if (v == REFUSED && status == WEIR_OK) wrong("accepted what must be refused");
    if (v == FAILS && status != WEIR_OUT_OF_RANGE) wrong("expected to fail with OUT_OF_RANGE");
    *(status == WEIR_OK ? &t->right : v == FAILS ? &t->failed : &t->refused) += 1;
    for (size_t i = 0; status == WEIR_OK && i < p->num_out; i++) compare(&p->out[i], first[i]);

    int width = (int)(draw_bits(p->d) % WIDTHS), alias = input_to_share(p);
    way ways[] = {
        {"on a pool", world.streams[width], false, false, -1},
        {"asynchronous", world.asynchronous, false, false, -1},
        {"in a graph", world.streams[width], true, false, -1},
        {"in a graph with constants", world.streams[width], true, true, -1},
        {"in place", world.streams[width], false, false, alias},
    };
    for (int k = 0; k < 5; k++) {
        if (k > 0 && !draw_once_in(p->d, 4)) continue;
        if (k == 4 && alias < 0) continue;
        if (k == 3 && v == FAILS) continue; /* compilation may find that out */
        weir_status other = call(&ways[k], kernel, p, again, at_end);
        if (k == 4 && !p->in_place && status == WEIR_OK) {
            if (other != WEIR_INVALID_ARGUMENT || strstr(weir_last_error_message(), "shares") == NULL) wrong("took shared memory");
            continue;
        }
        if ((other == WEIR_OK) != (status == WEIR_OK)) wrong("another verdict than alone");
        for (size_t i = 0; other == WEIR_OK && i < p->num_out; i++) {
            if (memcmp(first[i], again[i], p->out[i].n * dtype_size(p->out[i].desc.dtype)) != 0) wrong("other bits than alone");
        }
    }
}

/* Packs input 1, if the problem says so. */
static weir_status pack(problem *p, weir_packed_weights **weights) {
    if (!p->packs) return WEIR_OK;
    const array *b = &p->in[1];
    weir_packed_weights_desc desc = {.struct_size = sizeof desc, .flags = p->packs_transposed ? WEIR_PACKED_WEIGHTS_TRANSPOSED : 0};
    operand o = make_operand(&b->desc, REGIONS - 1, true);
    for (size_t k = 0; k < b->n; k++) store(b->desc.dtype, o.data, k, b->v[k]);
    weir_status status = weir_packed_weights_create(world.engine, o.tensor, &desc, weights);
    check_canary(&o);
    weir_tensor_release(o.tensor);
    return status;
}

static void run_case(uint64_t number, const family *family, tally *t) {
    draws d = {number};
    problem p = {.d = &d};
    weir_kernel *kernel = NULL;
    weir_packed_weights *weights = NULL;
    now.number = number, now.family = family, now.problem = &p, now.way = "created";
    draw_bits(&d); /* chose the family */
    if (family->draw == NULL) {
        const char *what = fuzz_gemm(&d, world.pools[number % WIDTHS], t);
        if (what != NULL) wrong(what);
        free_chunks();
        return;
    }
    family->draw(&p);
    verdict v = family->solve(&p);
    if (draw_once_in(&d, 6)) {
        size_t outputs = p.num_out;
        spoil(&p);
        p.num_out = 0;
        p.in_place = false;
        v = family->solve(&p);
        if (p.num_out == 0 && v == REFUSED) p.num_out = outputs; /* whatever they were */
    }
    if (v == RIGHT && draw_once_in(&d, 25)) {
        weir_tensor_desc *desc = &p.out[0].desc;
        if (desc->rank > 0 && draw_once_in(&d, 2)) desc->dims[draw_bits(&d) % desc->rank] += 1;
        else desc->dtype = desc->dtype % WEIR_BOOL + 1;
        p.out[0] = (array){.desc = *desc, .n = elements(desc)};
        v = REFUSED;
        now.way = "with a wrong output";
    }
    weir_status status = pack(&p, &weights);
    if (status == WEIR_OK) {
        if (p.packs && family->create == products_families[0].create) p.desc.matmul.weights = weights;
        if (p.packs && family->create == products_families[1].create) p.desc.int8.weights = weights;
        status = family->create(world.engine, &p, &kernel);
        if (status != WEIR_OK && kernel != NULL) wrong("gave a kernel and failed");
    }
    if (status != WEIR_OK) {
        check_refusal(status);
        if (v == RIGHT || v == FAILS) wrong("refused what is right");
        t->refused++;
    } else if (v == EITHER && p.num_out == 0) {
        t->open++;
    } else {
        size_t too_large = 0;
        if (p.num_out == 0) p.out[p.num_out++] = (array){.desc = vector_desc(1), .n = 1};
        for (size_t i = 0; i < p.num_out; i++) too_large += elements(&p.out[i].desc) * 4 + CANARY > REGION;
        if (too_large == 0) run_kernel(&p, v, kernel, t);
    }
    weir_kernel_release(kernel);
    weir_packed_weights_release(weights);
    free_chunks();
}

/* ---- The program ------------------------------------------------------------------------------- */

static void make_world(void) {
    world.engine = make_engine(NULL);
    world.alone = make_stream(world.engine, WEIR_STREAM_DEFAULT, NULL, "alone");
    for (int i = 0; i < WIDTHS; i++) {
        /* Helpers cost next to nothing, so small tensors are shared, too. */
        weir_threadpool_costs costs = {.struct_size = sizeof costs, .submit_ns = 1, .arrive_ns = 1, .join_ns = 1};
        const weir_threadpool_options options = {
            .struct_size = sizeof options, .num_threads = widths[i], .costs = &costs};
        CHECK_OK(weir_threadpool_create_builtin(&options, &world.pools[i]));
        world.streams[i] = make_stream(world.engine, WEIR_STREAM_DEFAULT, world.pools[i], "shared");
    }
    world.asynchronous = make_stream(world.engine, WEIR_STREAM_ASYNCHRONOUS, world.pools[2], "asynchronous");
    for (int i = 0; i < REGIONS; i++) {
        unsigned char *memory = mmap(NULL, REGION + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        CHECK_EQ(mprotect(memory, PAGE, PROT_NONE) | mprotect(memory + PAGE + REGION, PAGE, PROT_NONE), 0);
        world.regions[i] = memory + PAGE;
    }
}

static void end_world(void) {
    weir_stream_release(world.asynchronous);
    weir_stream_release(world.alone);
    for (int i = 0; i < WIDTHS; i++) {
        weir_stream_release(world.streams[i]);
        weir_threadpool_release(world.pools[i]);
    }
    weir_engine_release(world.engine);
    for (int i = 0; i < REGIONS; i++) munmap(world.regions[i] - PAGE, REGION + 2 * PAGE);
}

int main(int argc, char **argv) {
    const family *families[64];
    static tally tallies[64];
    uint64_t seed = 1, cases = (uint64_t)scale(6000), single = 0;
    double minutes = 0;
    bool replay = false;
    const char *only = NULL;
    size_t count = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--cases") == 0) cases = strtoull(argv[i + 1], NULL, 0);
        else if (strcmp(argv[i], "--minutes") == 0) minutes = atof(argv[i + 1]), cases = UINT64_MAX;
        else if (strcmp(argv[i], "--case") == 0) single = strtoull(argv[i + 1], NULL, 0), replay = true;
        else if (strcmp(argv[i], "--family") == 0) only = argv[i + 1];
        else return fprintf(stderr, "unknown argument: %s\n", argv[i]), 2;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (const family *f = tables[i]; f->name != NULL; f++) families[count++] = f;
    }
    make_world();
    uint64_t end = now_ns() + (uint64_t)(minutes * 60e9);
    draws numbers = {seed};
    for (uint64_t i = 0; i < (replay ? 1 : cases); i++) {
        uint64_t number = replay ? single : draw_bits(&numbers);
        draws choice = {number};
        size_t index = draw_bits(&choice) % count;
        if (only != NULL && !replay && strcmp(families[index]->name, only) != 0) continue;
        run_case(number, families[index], &tallies[index]);
        if (minutes > 0 && i % 64 == 0 && now_ns() > end) break;
    }
    end_world();
    tally all = {0, 0, 0, 0};
    for (size_t i = 0; i < count; i++) {
        tally *t = &tallies[i];
        uint64_t sum = t->right + t->refused + t->failed + t->open;
        if (sum == 0) continue;
        printf("%-16s %8llu right %8llu refused %6llu failed %6llu open\n", families[i]->name, (unsigned long long)t->right,
               (unsigned long long)t->refused, (unsigned long long)t->failed, (unsigned long long)t->open);
        /* Who refuses all is never wrong. */
        if (sum > 100) CHECK(t->right * 2 > sum);
        all.right += t->right, all.refused += t->refused + t->failed;
    }
    printf("seed %llu: %llu right, %llu refused\n", (unsigned long long)seed, (unsigned long long)all.right,
           (unsigned long long)all.refused);
    weir_runtime_info info = {.struct_size = sizeof info};
    CHECK_OK(weir_runtime_get_info(&info));
    CHECK_EQ(info.tensors + info.kernels + info.graphs + info.programs + info.packed_weights, 0);
    return 0;
}
