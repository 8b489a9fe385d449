/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The environment says who launches for engines that work on their own, and how many threads do; what the host sets
 * counts before it.
 */

#include <sys/wait.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"
#include "weir/testing.h"

enum { LEN = 64, MAX_LISTED = 64 };

static int threads_of(uint32_t origin) {
    weir_thread_info threads[MAX_LISTED];
    size_t count = 0;
    int found = 0;
    memset(threads, 0, sizeof threads);
    threads[0].struct_size = sizeof *threads;
    CHECK_OK(weir_runtime_get_threads(threads, MAX_LISTED, &count));
    for (size_t i = 0; i < count; i++) found += threads[i].origin == origin;
    return found;
}

static weir_engine *device(uint32_t index, weir_thread_mode mode, weir_thread_mode expected) {
    weir_engine_attr *attr = NULL;
    weir_engine *engine = NULL;
    const weir_engine_attr *settled = NULL;
    weir_thread_mode found = 0;
    CHECK_OK(weir_engine_attr_create(WEIR_ENGINE_EMULATED, &attr));
    if (mode != 0) CHECK_OK(weir_engine_attr_set_thread_mode(attr, mode));
    CHECK_OK(weir_engine_create(WEIR_ENGINE_EMULATED, index, attr, &engine));
    weir_engine_attr_destroy(attr);
    CHECK_OK(weir_engine_get_attr(engine, &settled));
    CHECK_OK(weir_engine_attr_get_thread_mode(settled, &found));
    CHECK_EQ(found, expected);
    return engine;
}

/* Chains side by side on the device, and a node of the host's behind each. */
static weir_program *program_on(weir_engine *cpu, weir_engine *engine) {
    weir_engine *engines[2] = {cpu, engine};
    weir_graph *graph = make_graph("launched");
    weir_kernel *there = NULL, *here = NULL;
    weir_program *program = NULL;
    weir_value input = 0;
    const weir_tensor_desc vector = vector_desc(LEN);
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &there));
    CHECK_OK(weir_kernel_create_eltwise(cpu, ELTWISE(RELU), NULL, &here));
    CHECK_OK(weir_graph_add_input(graph, "x", &vector, &input));
    for (int chain = 0; chain < 3; chain++) {
        char name[16];
        weir_value value = input;
        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "%d, %d", chain, i);
            CHECK_OK(weir_graph_add_kernel(graph, name, i == 2 ? here : there, &value, 1, &value, 1, NULL));
        }
        snprintf(name, sizeof name, "y%d", chain);
        CHECK_OK(weir_graph_add_output(graph, name, value));
    }
    CHECK_OK(weir_graph_compile(graph, engines, 2, NULL, &program));
    weir_graph_destroy(graph);
    weir_kernel_release(there);
    weir_kernel_release(here);
    return program;
}

static void run(weir_engine *cpu, weir_program *program) {
    weir_tensor *in = make_tensor(cpu, vector_desc(LEN)), *out[3];
    for (int i = 0; i < 3; i++) out[i] = make_tensor(cpu, vector_desc(LEN));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < LEN; i++) floats(in)[i] = (float)(i - 3 * round);
        CHECK_OK(weir_program_run(program, NULL, &in, 1, out, 3, NULL));
        for (int i = 0; i < LEN; i++) {
            for (int k = 0; k < 3; k++) CHECK(floats(out[k])[i] == (i > 3 * round ? (float)(i - 3 * round) : 0));
        }
    }
    for (int i = 0; i < 3; i++) weir_tensor_release(out[i]);
    weir_tensor_release(in);
}

/* Engines without a mode of their own, and one with; each launches as it should. */
static void launches(weir_thread_mode mode, uint32_t origin, int of_one, int of_two) {
    weir_engine *cpu = make_engine(NULL);
    weir_engine *first = device(0, 0, mode), *second = device(1, 0, mode);
    weir_program *program = program_on(cpu, first);
    run(cpu, program);
    if (origin != 0) EVENTUALLY(threads_of(origin) == of_one);
    weir_program *other = program_on(cpu, second);
    run(cpu, other);
    if (origin != 0) EVENTUALLY(threads_of(origin) == of_two);
    if (origin == 0) CHECK(threads_of(WEIR_THREAD_ORIGIN_ENGINE_POOL) == 0 && threads_of(WEIR_THREAD_ORIGIN_KIND_POOL) == 0);
    weir_program_release(program);
    weir_program_release(other);
    weir_engine_release(first);
    weir_engine_release(second);
    first = device(0, WEIR_THREAD_MODE_CALLER, WEIR_THREAD_MODE_CALLER);
    program = program_on(cpu, first);
    run(cpu, program);
    EVENTUALLY(threads_of(WEIR_THREAD_ORIGIN_ENGINE_POOL) == 0 && threads_of(WEIR_THREAD_ORIGIN_KIND_POOL) == 0);
    weir_program_release(program);
    weir_engine_release(first);
    weir_engine_release(cpu);
}

static void private_one(void) {
    launches(WEIR_THREAD_MODE_PRIVATE, WEIR_THREAD_ORIGIN_ENGINE_POOL, 1, 2);
}

static void private_three(void) {
    launches(WEIR_THREAD_MODE_PRIVATE, WEIR_THREAD_ORIGIN_ENGINE_POOL, 3, 6);
}

static void kind_two(void) {
    launches(WEIR_THREAD_MODE_KIND, WEIR_THREAD_ORIGIN_KIND_POOL, 2, 2);
}

static void nothing(void) {
    launches(WEIR_THREAD_MODE_GLOBAL, 0, 0, 0);
}

static void bad_mode(void) {
    weir_engine *engine = NULL;
    CHECK_CODE(weir_engine_create(WEIR_ENGINE_EMULATED, 0, NULL, &engine), WEIR_INVALID_ARGUMENT,
               "the environment variable WEIR_DEVICE_THREAD_MODE is 'many', expected global, private, kind or caller");
    weir_engine_release(make_engine(NULL)); /* it says nothing of others */
    weir_engine_release(device(0, WEIR_THREAD_MODE_CALLER, WEIR_THREAD_MODE_CALLER));
}

static void bad_count(void) {
    weir_engine *cpu = make_engine(NULL), *engine = device(0, 0, WEIR_THREAD_MODE_PRIVATE), *engines[2] = {cpu, engine};
    weir_graph *graph = make_graph("refused");
    weir_kernel *relu = NULL;
    weir_program *program = NULL;
    weir_value value = 0;
    const weir_tensor_desc vector = vector_desc(LEN);
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "x", &vector, &value));
    CHECK_OK(weir_graph_add_kernel(graph, "relu", relu, &value, 1, &value, 1, NULL));
    CHECK_OK(weir_graph_add_output(graph, "y", value));
    CHECK_CODE(weir_graph_compile(graph, engines, 2, NULL, &program), WEIR_INVALID_ARGUMENT,
               "the environment variable WEIR_DEVICE_THREAD_COUNT is '0', expected 1 to 256");
    weir_graph_destroy(graph);
    weir_kernel_release(relu);
    weir_engine_release(engine);
    weir_engine_release(cpu);
}

/* A process with this environment, in which `body` does not fail. */
static void with_environment(const char *mode, const char *count, void (*body)(void)) {
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (mode != NULL) setenv("WEIR_DEVICE_THREAD_MODE", mode, 1);
        if (count != NULL) setenv("WEIR_DEVICE_THREAD_COUNT", count, 1);
        CHECK_OK(weir_emulated_register());
        body();
        EVENTUALLY(runtime_info().threads_alive == 0);
        _Exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

int main(void) {
    unsetenv("WEIR_DEVICE_THREAD_MODE");
    unsetenv("WEIR_DEVICE_THREAD_COUNT");
    with_environment("private", NULL, private_one);
    with_environment("Private", "3", private_three);
    with_environment("kind", "2", kind_two);
    with_environment(NULL, "2", nothing);
    with_environment("global", NULL, nothing);
    with_environment("many", NULL, bad_mode);
    with_environment("private", "0", bad_count);
    return 0;
}
