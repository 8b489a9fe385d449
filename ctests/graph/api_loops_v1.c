/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Loops that are said by their edges, as in TensorFlow's first control flow: the graphs of "Dynamic Control Flow in
 * Large-Scale Machine Learning" (Yu et al. 2018), on several pools; and every refusal with its text.
 */

#include <weir/control.h>
#include <weir/inspect.h>

#include "make.h"
#include "test_pools.h"

static const weir_tensor_desc number = {.dtype = WEIR_S32, .rank = 1, .dims = {1}};

typedef int32_t (*function)(int32_t a, int32_t b);

static int32_t compute(void *user, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    CHECK_OK(weir_kernel_context_get_inputs(context, &in, &num_in));
    CHECK_OK(weir_kernel_context_get_outputs(context, &out, &num_out));
    const int32_t *a = in[0].data, *b = num_in > 1 ? in[1].data : a;
    *(int32_t *)out->data = (*(function *)user)(*a, *b);
    return WEIR_OK;
}

static int32_t less(int32_t a, int32_t b) {
    return a < b;
}
static int32_t plus_one(int32_t a, int32_t b) {
    (void)b;
    return a + 1;
}
static int32_t sum(int32_t a, int32_t b) {
    return a + b;
}
static int32_t product(int32_t a, int32_t b) {
    return a * b;
}
static int32_t is_odd(int32_t a, int32_t b) {
    (void)b;
    return a & 1;
}
static int32_t half(int32_t a, int32_t b) {
    (void)b;
    return a / 2;
}

static function fs[] = {less, plus_one, sum, product, is_odd, half};
enum { LESS, PLUS_ONE, SUM, PRODUCT, IS_ODD, HALF };

/* The graph at hand, and the nodes of the last call. */
static weir_engine *engine;
static weir_graph *graph;
static weir_node node;
static uint64_t kernel_flags;

static weir_value input(const char *name) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_input(graph, name, &number, &value));
    return value;
}

static weir_value constant(const char *name, int32_t content) {
    weir_value value = 0;
    void *data = NULL;
    weir_tensor *tensor = make_tensor(engine, number);
    CHECK_OK(weir_tensor_get_data(tensor, &data));
    *(int32_t *)data = content;
    CHECK_OK(weir_graph_add_constant(graph, name, tensor, &value));
    weir_tensor_release(tensor);
    return value;
}

static weir_value apply(const char *name, int f, weir_value a, weir_value b) {
    const weir_tensor_desc inputs[] = {number, number};
    weir_value values[] = {a, b}, value = 0;
    weir_kernel *kernel = NULL;
    weir_host_kernel_desc desc = make_kernel_desc(name, compute, &fs[f]);
    desc.num_inputs = b == 0 ? 1 : 2;
    desc.inputs = inputs;
    desc.num_outputs = 1;
    desc.outputs = &number;
    desc.cost_ns = 2000;
    desc.flags = kernel_flags;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, name, kernel, values, desc.num_inputs, &value, 1, &node));
    weir_kernel_release(kernel);
    return value;
}

static weir_value enter(const char *name, weir_value from, const char *frame, int32_t is_constant, int32_t parallel) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_enter(graph, name, from, frame, is_constant, parallel, &value, &node));
    return value;
}

static weir_value loop_merge(const char *name, weir_value from) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_loop_merge(graph, name, from, &value, &node));
    return value;
}

static weir_value loop_cond(const char *name, weir_value from) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_loop_cond(graph, name, from, &value, &node));
    return value;
}

static weir_value next_iteration(const char *name, weir_value from) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_next_iteration(graph, name, from, &value, &node));
    return value;
}

static weir_value leave(const char *name, weir_value from) {
    weir_value value = 0;
    CHECK_OK(weir_graph_add_exit(graph, name, from, &value, &node));
    return value;
}

typedef struct sides {
    weir_value on_false, on_true;
} sides;

static sides split(const char *name, weir_value from, weir_value predicate) {
    sides s = {0, 0};
    CHECK_OK(weir_graph_add_switch(graph, name, from, predicate, &s.on_false, &s.on_true, &node));
    return s;
}

static weir_value merge(const char *name, weir_value a, weir_value b) {
    weir_value value = 0, both[] = {a, b};
    CHECK_OK(weir_graph_add_merge(graph, name, both, 2, &value, NULL, &node));
    return value;
}

static void output(const char *name, weir_value value) {
    CHECK_OK(weir_graph_add_output(graph, name, value));
}

/* A variable of a loop: entered and merged; then switched; then sent round. */
typedef struct variable {
    weir_value value;
    weir_node merge;
    sides at;
} variable;

static char text[32][64];

static const char *join(const char *a, const char *b) {
    static unsigned next;
    char *to = text[next++ % 32];
    snprintf(to, 64, "%s/%s", a, b);
    return to;
}

static variable begin(const char *name, weir_value from, const char *frame, int32_t parallel) {
    variable v = {0, 0, {0, 0}};
    v.value = loop_merge(join(name, "merge"), enter(join(name, "enter"), from, frame, 0, parallel));
    v.merge = node;
    return v;
}

static void again(const char *name, const variable *v, weir_value value) {
    CHECK_OK(weir_graph_set_back_edge(graph, v->merge, next_iteration(join(name, "next"), value)));
}

static weir_threadpool *pools[3];

/* Compiles, runs on each pool, and compares the outputs. */
static void expect(const int32_t *in, size_t num_in, const int32_t *out, size_t num_out) {
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    weir_tensor *inputs[4], *outputs[4];
    void *data = NULL;
    for (size_t i = 0; i < num_in; i++) {
        inputs[i] = make_tensor(engine, number);
        CHECK_OK(weir_tensor_get_data(inputs[i], &data));
        *(int32_t *)data = in[i];
    }
    for (size_t i = 0; i < num_out; i++) outputs[i] = make_tensor(engine, number);
    for (size_t pool = 0; pool < 3; pool++) {
        for (int round = 0; round < 5; round++) {
            const weir_run_options options = {.struct_size = sizeof options, .threadpool = pools[pool]};
            CHECK_OK(weir_program_run(program, NULL, inputs, num_in, outputs, num_out, &options));
            for (size_t i = 0; i < num_out; i++) {
                CHECK_OK(weir_tensor_get_data(outputs[i], &data));
                CHECK_EQ(*(int32_t *)data, out[i]);
            }
        }
    }
    for (size_t i = 0; i < num_in; i++) weir_tensor_release(inputs[i]);
    for (size_t i = 0; i < num_out; i++) weir_tensor_release(outputs[i]);
    weir_program_release(program);
}

/* i, n = 0, in; while i < n: i += 1, s += x with x an invariant. The loop's figure of the paper. */
static void the_while_of_the_paper(int32_t parallel) {
    graph = make_graph("while");
    weir_value n = enter("n", input("limit"), "loop", 1, parallel), x = enter("x", input("step"), "loop", 1, parallel);
    variable i = begin("i", constant("zero", 0), "loop", parallel), s = begin("s", input("first"), "loop", parallel);
    weir_value goes_on = loop_cond("goes on", apply("less", LESS, i.value, n));
    i.at = split("i/switch", i.value, goes_on);
    s.at = split("s/switch", s.value, goes_on);
    again("i", &i, apply("count", PLUS_ONE, i.at.on_true, 0));
    again("s", &s, apply("add", SUM, s.at.on_true, x));
    output("i", leave("i/exit", i.at.on_false));
    output("s", leave("s/exit", s.at.on_false));
    /* Loops that are drawn as they are said. */
    char dumped[16384];
    CHECK_OK(weir_graph_dump(graph, WEIR_DUMP_JSON, dumped, sizeof dumped, NULL));
    CHECK(strstr(dumped, "\"kind\":\"next iteration\"") != NULL && strstr(dumped, "\"frame\":\"loop\"") != NULL);
    expect((int32_t[]){20, 3, 5}, 3, (int32_t[]){20, 65}, 2);
}

/* sum over i < n of sum over j < i of i * j: an exit of the inner loop is the outer one's next value. */
static void loops_in_loops(void) {
    graph = make_graph("nested");
    weir_value n = enter("n", input("limit"), "outer", 1, 2), zero = constant("zero", 0);
    variable i = begin("i", zero, "outer", 2), s = begin("s", zero, "outer", 2);
    weir_value outer = loop_cond("outer goes on", apply("i < n", LESS, i.value, n));
    i.at = split("i/switch", i.value, outer);
    s.at = split("s/switch", s.value, outer);
    weir_value end = enter("end", i.at.on_true, "inner", 1, 3);
    variable j = begin("j", zero, "inner", 3), t = begin("t", s.at.on_true, "inner", 3);
    weir_value inner = loop_cond("inner goes on", apply("j < i", LESS, j.value, end));
    j.at = split("j/switch", j.value, inner);
    t.at = split("t/switch", t.value, inner);
    again("j", &j, apply("j + 1", PLUS_ONE, j.at.on_true, 0));
    again("t", &t, apply("t + i * j", SUM, t.at.on_true, apply("i * j", PRODUCT, j.at.on_true, end)));
    again("s", &s, leave("t/exit", t.at.on_false));
    again("i", &i, apply("i + 1", PLUS_ONE, i.at.on_true, 0));
    output("s", leave("s/exit", s.at.on_false));
    int32_t expected = 0;
    for (int a = 0; a < 9; a++)
        for (int b = 0; b < a; b++) expected += a * b;
    expect((int32_t[]){9}, 1, &expected, 1);
}

/* x odd: count up to n from x, in a loop; else x / 2. The loop of the side that is not taken is skipped. */
static void a_loop_in_a_cond(int32_t x, int32_t result) {
    graph = make_graph("loop in cond");
    weir_value in = input("x"), limit = input("n"), odd = apply("odd", IS_ODD, in, 0);
    sides at = split("x/switch", in, odd), end = split("n/switch", limit, odd);
    weir_value n = enter("n/enter", end.on_true, "loop", 1, 1);
    variable i = begin("i", at.on_true, "loop", 1);
    weir_value goes_on = loop_cond("goes on", apply("less", LESS, i.value, n));
    i.at = split("i/switch", i.value, goes_on);
    again("i", &i, apply("count", PLUS_ONE, i.at.on_true, 0));
    weir_value last = leave("i/exit", i.at.on_false);
    output("y", merge("merge", last, apply("half", HALF, at.on_false, 0)));
    expect((int32_t[]){x, 50}, 2, &result, 1);
}

/* Collatz: a cond by switch and merge in a loop. steps, n = 0, in; while 1 < n: n = odd ? n * 3 + 1 : n / 2. */
static void a_cond_in_a_loop(void) {
    graph = make_graph("cond in loop");
    weir_value one = constant("one", 1), three = constant("three", 3);
    variable n = begin("n", input("n"), "loop", 2), steps = begin("steps", constant("zero", 0), "loop", 2);
    weir_value goes_on = loop_cond("goes on", apply("more", LESS, one, n.value));
    n.at = split("n/switch", n.value, goes_on);
    steps.at = split("steps/switch", steps.value, goes_on);
    sides s = split("parity", n.at.on_true, apply("odd", IS_ODD, n.at.on_true, 0));
    weir_value up = apply("up", PLUS_ONE, apply("triple", PRODUCT, s.on_true, three), 0);
    again("n", &n, merge("both", up, apply("half", HALF, s.on_false, 0)));
    again("steps", &steps, apply("count", PLUS_ONE, steps.at.on_true, 0));
    output("steps", leave("steps/exit", steps.at.on_false));
    expect((int32_t[]){27}, 1, (int32_t[]){111}, 1);
}

/* A merge of the two sides of p whose inputs are behind switches of q as well: it is absent where p and q differ, so it
 * is no cond. The loop has compile look for conds. */
static void a_merge_that_may_be_absent_is_no_cond(void) {
    graph = make_graph("leaving");
    weir_value p = input("p"), q = input("q"), x = input("x");
    variable i = begin("i", x, "loop", 1);
    i.at = split("i/switch", i.value, loop_cond("goes on", apply("less", LESS, i.value, enter("n", q, "loop", 1, 1))));
    again("i", &i, apply("count", PLUS_ONE, i.at.on_true, 0));
    output("i", leave("i/exit", i.at.on_false));
    sides by_p = split("by p", x, p);
    weir_value both = split("both", by_p.on_true, q).on_true, none = split("none", by_p.on_false, q).on_false;
    output("y", merge("merge", apply("b", PLUS_ONE, both, 0), apply("a", HALF, none, 0)));
    weir_program *program = NULL;
    const weir_compile_options allowing = {.struct_size = sizeof allowing, .flags = WEIR_COMPILE_ALLOW_ABSENT};
    CHECK_OK(weir_graph_compile(graph, &engine, 1, &allowing, &program));
    weir_graph_destroy(graph);
    weir_tensor *in[3], *out[2];
    void *data[5];
    for (int t = 0; t < 5; t++) {
        weir_tensor **tensor = t < 3 ? &in[t] : &out[t - 3];
        *tensor = make_tensor(engine, number);
        CHECK_OK(weir_tensor_get_data(*tensor, &data[t]));
    }
    for (int round = 0; round < 12; round++) {
        uint8_t absent[2] = {7, 7};
        const int32_t of_p = round & 1, of_q = round >> 1 & 1;
        const weir_run_options options = {
            .struct_size = sizeof options, .threadpool = pools[round / 4], .absent = absent, .num_absent = 2};
        *(int32_t *)data[0] = of_p;
        *(int32_t *)data[1] = of_q;
        *(int32_t *)data[2] = 40;
        *(int32_t *)data[4] = -1;
        CHECK_OK(weir_program_run(program, NULL, in, 3, out, 2, &options));
        CHECK_EQ(*(int32_t *)data[3], 40);
        CHECK_EQ(absent[0], 0);
        CHECK_EQ(absent[1], of_p != of_q);
        CHECK_EQ(*(int32_t *)data[4], of_p != of_q ? -1 : of_p != 0 ? 41 : 20);
    }
    for (int t = 0; t < 5; t++) weir_tensor_release(t < 3 ? in[t] : out[t - 3]);
    weir_program_release(program);
}

/* An RNN's shape: h = h * w + x with invariants w and x; the count of steps is not looked at outside. Its exit enters
 * the next loop. */
static void one_loop_behind_another(void) {
    graph = make_graph("rnn");
    weir_value zero = constant("zero", 0), w = input("w"), x = input("x"), n = input("n"), h = input("h");
    for (int layer = 0; layer < 2; layer++) {
        const char *frame = layer == 0 ? "layer 0" : "layer 1";
        weir_value weight = enter(join(frame, "w"), w, frame, 1, 1), in = enter(join(frame, "x"), x, frame, 1, 1);
        weir_value end = enter(join(frame, "n"), n, frame, 1, 1);
        variable t = begin(join(frame, "t"), zero, frame, 1), state = begin(join(frame, "h"), h, frame, 1);
        weir_value goes_on = loop_cond(join(frame, "goes on"), apply(join(frame, "less"), LESS, t.value, end));
        t.at = split(join(frame, "t/switch"), t.value, goes_on);
        state.at = split(join(frame, "h/switch"), state.value, goes_on);
        weir_value scaled = apply(join(frame, "scaled"), PRODUCT, state.at.on_true, weight);
        again(join(frame, "t"), &t, apply(join(frame, "count"), PLUS_ONE, t.at.on_true, 0));
        again(join(frame, "h"), &state, apply(join(frame, "added"), SUM, scaled, in));
        h = leave(join(frame, "exit"), state.at.on_false);
    }
    output("h", h);
    int32_t expected = 1;
    for (int i = 0; i < 10; i++) expected = expected * 2 + 3;
    expect((int32_t[]){2, 3, 5, 1}, 4, &expected, 1);
}

/* A name of a node does not stand in the way of the frame's; names inside are the user's. */
static void names_are_kept(void) {
    graph = make_graph("names");
    weir_value n = enter("n", input("loop"), "loop", 1, 1);
    variable i = begin("i", constant("zero", 0), "loop", 1);
    weir_value goes_on = loop_cond("goes on", apply("less", LESS, i.value, n));
    i.at = split("i/switch", i.value, goes_on);
    again("i", &i, apply("count", PLUS_ONE, i.at.on_true, 0));
    output("i", leave("i/exit", i.at.on_false));
    weir_program *program = compile(graph, engine);
    weir_graph_destroy(graph);
    char dumped[16384];
    CHECK_OK(weir_program_dump(program, WEIR_DUMP_JSON, dumped, sizeof dumped, NULL));
    CHECK(strstr(dumped, "\"loop loop/body/count\"") != NULL);
    weir_program_release(program);
}

/* The parts of one loop, each of which a refusal makes worse. */
typedef struct parts {
    weir_value x, n, predicate, goes_on, outside;
    weir_node enter, less, count, loop_cond, switched, outside_node;
    variable i;
} parts;

static parts make_parts(void) {
    parts p;
    memset(&p, 0, sizeof p);
    graph = make_graph("refused");
    p.x = input("x");
    p.outside = apply("outside", PLUS_ONE, p.x, 0);
    p.outside_node = node;
    p.n = enter("n", p.x, "loop", 1, 1);
    p.enter = node;
    p.i = begin("i", constant("zero", 0), "loop", 1);
    p.predicate = apply("less", LESS, p.i.value, p.n);
    p.less = node;
    p.goes_on = loop_cond("goes on", p.predicate);
    p.loop_cond = node;
    p.i.at = split("i/switch", p.i.value, p.goes_on);
    p.switched = node;
    return p;
}

static void close_loop(parts *p) {
    weir_value next = apply("count", PLUS_ONE, p->i.at.on_true, 0);
    p->count = node;
    again("i", &p->i, next);
    output("i", leave("i/exit", p->i.at.on_false));
}

static void refused(const char *why) {
    weir_program *program = NULL;
    CHECK_CODE(weir_graph_compile(graph, &engine, 1, NULL, &program), WEIR_INVALID_ARGUMENT, why);
    weir_graph_destroy(graph);
}

static void refusals(void) {
    parts p = make_parts();
    close_loop(&p);
    apply("bad", SUM, p.i.at.on_true, p.outside);
    refused("node 'bad' is in frame 'loop', but its input 1 comes from node 'outside' outside of it: only an "
            "enter brings a value into a frame");

    p = make_parts();
    close_loop(&p);
    output("o", p.n);
    refused("graph 'refused' output 'o': node 'n' is in frame 'loop': only an exit takes a value out of a frame");

    p = make_parts();
    close_loop(&p);
    CHECK_OK(weir_graph_add_control_edge(graph, p.count, p.outside_node));
    refused("node 'outside' is outside of frame 'loop', but it waits for node 'count' inside of it: only an exit "
            "is waited for outside of its frame");

    p = make_parts();
    close_loop(&p);
    CHECK_OK(weir_graph_add_control_edge(graph, p.outside_node, p.count));
    refused("node 'count' is in frame 'loop', but it waits for node 'outside' outside of it: only an enter waits "
            "for what is outside of its frame");

    p = make_parts();
    close_loop(&p);
    weir_value other = enter("other", p.x, "second", 1, 1);
    apply("bad", SUM, p.i.at.on_true, other);
    refused("'bad' is in frame");

    p = make_parts();
    close_loop(&p);
    leave("bad", p.x);
    refused("node 'bad' is an exit and in no frame: no enter leads to it");

    p = make_parts();
    close_loop(&p);
    next_iteration("bad", constant("one", 1));
    refused("node 'bad' is a next iteration of a constant, and nothing of a frame takes its value");

    p = make_parts();
    next_iteration("i/next", apply("count", PLUS_ONE, p.i.at.on_true, 0));
    refused("frame 'loop': node 'i/merge' has no back edge (weir_graph_set_back_edge)");

    p = make_parts();
    close_loop(&p);
    next_iteration("bad", p.i.at.on_true);
    refused("frame 'loop': node 'bad' is a next iteration that no loop merge takes");

    p = make_parts();
    close_loop(&p);
    loop_cond("again", p.predicate);
    refused("frame 'loop': nodes 'goes on' and 'again' are both its loop cond: two loops beside one another need "
            "frames of different names");

    graph = make_graph("refused");
    enter("n", input("x"), "loop", 0, 1);
    refused("frame 'loop': it has no loop cond, and node 'n' leads into it");

    graph = make_graph("refused");
    loop_cond("goes on", enter("n", input("x"), "loop", 1, 1));
    refused("frame 'loop': it has no loop merge, so nothing in it goes round");

    p = make_parts();
    close_loop(&p);
    enter("m", p.x, "loop", 1, 2);
    refused("frame 'loop': node 'n' asks for parallel_iterations 1, node 'm' for 2");

    p = make_parts();
    close_loop(&p);
    loop_merge("bad", p.n);
    refused("frame 'loop': node 'bad' takes its first value from node 'n', which is a constant enter");

    p = make_parts();
    weir_value next = next_iteration("i/next", apply("count", PLUS_ONE, p.i.at.on_true, 0));
    CHECK_OK(weir_graph_set_back_edge(graph, p.i.merge, next));
    loop_merge("bad", next);
    CHECK_OK(weir_graph_set_back_edge(graph, node, next));
    refused("frame 'loop': node 'bad' takes its first value from node 'i/next', a next iteration, expected an "
            "enter");

    p = make_parts();
    close_loop(&p);
    apply("bad", PLUS_ONE, p.goes_on, 0);
    refused("frame 'loop': node 'bad' takes the value of loop cond 'goes on': only a switch does, as its "
            "predicate");

    p = make_parts();
    close_loop(&p);
    apply("bad", PLUS_ONE, enter("first", p.x, "loop", 0, 1), 0);
    refused("frame 'loop': node 'bad' takes the value of enter 'first': only a loop merge does, or it must be a "
            "constant enter");

    p = make_parts();
    close_loop(&p);
    apply("bad", PLUS_ONE, p.i.at.on_false, 0);
    refused("frame 'loop': node 'bad' takes the false side of the loop's switch 'i/switch': only an exit does");

    p = make_parts();
    next = next_iteration("i/next", p.i.at.on_true);
    CHECK_OK(weir_graph_set_back_edge(graph, p.i.merge, next));
    apply("bad", PLUS_ONE, next, 0);
    refused("frame 'loop': node 'bad' takes next iteration 'i/next': only a loop merge does, as its back edge");

    p = make_parts();
    close_loop(&p);
    leave("bad", p.i.at.on_true);
    refused("frame 'loop': node 'bad' takes the true side of switch 'i/switch', expected the false side of a "
            "switch of a loop merge by loop cond 'goes on'");

    p = make_parts();
    close_loop(&p);
    leave("bad", split("n/switch", p.n, p.goes_on).on_false);
    refused("frame 'loop': node 'bad' takes the false side of a switch that passes on no variable, 'n/switch', "
            "expected");

    p = make_parts();
    close_loop(&p);
    leave("bad", p.predicate);
    refused("frame 'loop': node 'bad' takes node 'less', expected the false side of a switch");

    p = make_parts();
    close_loop(&p);
    CHECK_OK(weir_graph_add_control_edge(graph, p.switched, p.count));
    refused("frame 'loop': node 'count' waits for node 'i/switch', a switch, without data, which does not say in "
            "which iterations: let it wait for a node that takes its value");

    p = make_parts();
    close_loop(&p);
    CHECK_OK(weir_graph_add_control_edge(graph, p.less, p.switched));
    refused("frame 'loop': node 'i/switch', a switch, waits for node 'less' without data: let the nodes that "
            "take its value do so");

    p = make_parts();
    close_loop(&p);
    CHECK_OK(weir_graph_add_control_edge(graph, p.count, p.less));
    refused("frame 'loop': loop cond 'goes on' depends on node 'less', which is behind a switch that it decides");

    p = make_parts();
    CHECK_OK(weir_graph_set_back_edge(graph, p.i.merge, next_iteration("i/next", p.predicate)));
    refused("frame 'loop': node 'i/next' takes node 'less', which no switch of loop cond 'goes on' holds back, "
            "so that the loop would never end");

    p = make_parts();
    CHECK_OK(weir_graph_set_back_edge(graph, p.i.merge,
                                      next_iteration("i/next", apply("count", SUM, p.i.at.on_true, p.predicate))));
    refused("frame 'loop': node 'less' is needed both before and behind loop cond 'goes on' and would be "
            "computed twice, for which it must be pure");

    /* A loop that waits for itself is a cycle that no next iteration closes. */
    p = make_parts();
    weir_value count = apply("count", PLUS_ONE, p.i.at.on_true, 0);
    again("i", &p.i, count);
    enter("late", leave("i/exit", p.i.at.on_false), "loop", 1, 1);
    refused("graph 'refused' has a cycle: 'loop' -> 'loop'");

    /* What a variable is differs in more than sizes. */
    p = make_parts();
    weir_value merged = 0, index = 0;
    CHECK_OK(weir_graph_add_merge(graph, "one", &p.i.at.on_true, 1, &merged, &index, NULL));
    const weir_tensor_desc wide = {.dtype = WEIR_F32, .rank = 1, .dims = {1}};
    weir_kernel *kernel = NULL;
    weir_host_kernel_desc desc = make_kernel_desc("to f32", compute, &fs[PLUS_ONE]);
    desc.num_inputs = desc.num_outputs = 1;
    desc.inputs = &number;
    desc.outputs = &wide;
    CHECK_OK(weir_kernel_create_host(engine, &desc, &kernel));
    CHECK_OK(weir_graph_add_kernel(graph, "to f32", kernel, &merged, 1, &count, 1, NULL));
    weir_kernel_release(kernel);
    again("i", &p.i, count);
    refused("node 'loop' loop merge 'i/merge': expected s32[1], got f32[1]");

    /* Inside of another graph: the text says where. */
    p = make_parts();
    close_loop(&p);
    loop_cond("again", p.predicate);
    weir_graph *inner = graph;
    graph = make_graph("around");
    weir_value x = input("x"), y = 0;
    CHECK_OK(weir_graph_add_cond(graph, "cond", &(weir_cond_desc){.struct_size = sizeof(weir_cond_desc), .predicate = x,
        .then_graph = inner, .else_graph = inner, .inputs = &x, .num_inputs = 1}, &y, 1, NULL));
    weir_graph_destroy(inner);
    refused("in graph 'refused': frame 'loop': nodes 'goes on' and 'again'");
}

/* What is said of one node alone is refused at once. */
static void refusals_of_the_builder(void) {
    parts p = make_parts();
    weir_value value = 0, next = next_iteration("i/next", p.i.at.on_true);
    CHECK_CODE(weir_graph_set_back_edge(graph, p.enter, next), WEIR_INVALID_ARGUMENT,
               "node 'n' is an enter, expected a loop merge");
    CHECK_CODE(weir_graph_set_back_edge(graph, p.i.merge, p.x), WEIR_INVALID_ARGUMENT,
               "node 'i/merge' back edge: node 'x' is an input, expected a next iteration");
    CHECK_OK(weir_graph_set_back_edge(graph, p.i.merge, next));
    CHECK_CODE(weir_graph_set_back_edge(graph, p.i.merge, next), WEIR_ALREADY_EXISTS,
               "node 'i/merge' has a back edge already");
    CHECK_CODE(weir_graph_add_enter(graph, "e", p.x, "", 0, 1, &value, NULL), WEIR_INVALID_ARGUMENT,
               "node 'e': frame_name is empty");
    CHECK_CODE(weir_graph_add_enter(graph, "e", p.x, "loop", 2, 1, &value, NULL), WEIR_INVALID_ARGUMENT,
               "is_constant is 2");
    weir_graph_destroy(graph);
}

/* A pure kernel is computed before and behind the loop cond. */
static void a_pure_kernel_is_computed_twice(void) {
    kernel_flags = WEIR_KERNEL_PURE;
    parts p = make_parts();
    kernel_flags = 0;
    CHECK_OK(weir_graph_set_back_edge(
        graph, p.i.merge,
        next_iteration("i/next",
                       apply("count", SUM, p.i.at.on_true, split("less/switch", p.predicate, p.goes_on).on_true))));
    output("i", leave("i/exit", p.i.at.on_false));
    expect((int32_t[]){7}, 1, (int32_t[]){7}, 1);
}

/* Who takes a value may say as well that it waits for it: no kernel must be pure for that. */
static void waiting_for_what_one_takes_changes_nothing(void) {
    for (int with_edges = 0; with_edges < 2; with_edges++) {
        parts p = make_parts();
        weir_value more = apply("more", PLUS_ONE, p.i.value, 0);
        weir_node maker = node;
        weir_value next = apply("count", SUM, p.i.at.on_true, more);
        if (with_edges) CHECK_OK(weir_graph_add_control_edge(graph, maker, node));
        again("i", &p.i, next);
        if (with_edges) CHECK_OK(weir_graph_add_control_edge(graph, maker, node));
        output("i", leave("i/exit", p.i.at.on_false));
        expect((int32_t[]){20}, 1, (int32_t[]){31}, 1);
    }
}

int main(void) {
    weir_runtime_info before = runtime_info();
    test_pool *hosts[3] = {NULL};
    engine = make_engine(NULL);
    hosts[1] = test_pool_create(POOL_FIFO, 2, &pools[1]);
    hosts[2] = test_pool_create(POOL_LIFO, 4, &pools[2]);
    for (int32_t parallel = 1; parallel <= 4; parallel++) the_while_of_the_paper(parallel);
    loops_in_loops();
    a_loop_in_a_cond(7, 50);
    a_loop_in_a_cond(8, 4);
    a_cond_in_a_loop();
    a_merge_that_may_be_absent_is_no_cond();
    one_loop_behind_another();
    names_are_kept();
    a_pure_kernel_is_computed_twice();
    waiting_for_what_one_takes_changes_nothing();
    refusals();
    refusals_of_the_builder();
    for (int i = 1; i < 3; i++) {
        weir_threadpool_release(pools[i]);
        test_pool_destroy(hosts[i]);
    }
    weir_engine_release(engine);
    check_released(&before);
    return 0;
}
