/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Dumps of graphs and programs: JSON that a parser takes, DOT with balanced braces, and every name in them, however
 * odd.
 */

#include <ctype.h>
#include <weir/ops.h>
#include <weir/inspect.h>

#include "make.h"

static void skip_space(const char **at) {
    while (isspace((unsigned char)**at)) ++*at;
}

static void parse_string(const char **at) {
    CHECK(*(*at)++ == '"');
    while (**at != '"') {
        CHECK((unsigned char)**at >= 0x20); /* also the end */
        if (*(*at)++ != '\\') continue;
        char escape = *(*at)++;
        CHECK(escape != '\0' && strchr("\"\\/bfnrtu", escape) != NULL);
        for (int i = 0; escape == 'u' && i < 4; i++) CHECK(isxdigit((unsigned char)*(*at)++));
    }
    ++*at;
}

static void parse_value(const char **at);

/* The members of an object, or the items of an array: up to `close`. */
static void parse_items(const char **at, char close) {
    ++*at;
    skip_space(at);
    if (**at == close) {
        ++*at;
        return;
    }
    for (;;) {
        if (close == '}') {
            skip_space(at);
            parse_string(at);
            skip_space(at);
            CHECK(*(*at)++ == ':');
        }
        parse_value(at);
        char next = *(*at)++;
        if (next == close) return;
        CHECK(next == ',');
    }
}

static void parse_value(const char **at) {
    skip_space(at);
    if (**at == '{') {
        parse_items(at, '}');
    } else if (**at == '[') {
        parse_items(at, ']');
    } else if (**at == '"') {
        parse_string(at);
    } else if (isdigit((unsigned char)**at) || **at == '-') {
        char *end = NULL;
        (void)strtod(*at, &end);
        CHECK(end > *at);
        *at = end;
    } else {
        static const char *const words[] = {"true", "false", "null"};
        const char *start = *at;
        for (int i = 0; i < 3 && *at == start; i++) {
            if (strncmp(start, words[i], strlen(words[i])) == 0) *at += strlen(words[i]);
        }
        CHECK(*at > start);
    }
    skip_space(at);
}

/* Braces balance and strings end; DOT's own escapes are those of C. */
static void check_dot(const char *text) {
    int depth = 0, in_string = 0;
    CHECK(strncmp(text, "digraph", 7) == 0);
    for (const char *c = text; *c != '\0'; c++) {
        if (in_string && *c == '\\') {
            CHECK(*++c != '\0');
        } else if (*c == '"') {
            in_string = !in_string;
        } else if (!in_string && (*c == '{' || *c == '}')) {
            depth += *c == '{' ? 1 : -1;
            CHECK(depth >= 0);
        }
    }
    CHECK(depth == 0 && !in_string);
}

typedef weir_status (*dump_fn)(const void *object, weir_dump_format format, char *buffer, size_t size, size_t *length);

static weir_status dump_graph(const void *graph, weir_dump_format format, char *buffer, size_t size, size_t *length) {
    return weir_graph_dump(graph, format, buffer, size, length);
}

static weir_status dump_program(const void *program, weir_dump_format format, char *buffer, size_t size,
                                size_t *length) {
    return weir_program_dump(program, format, buffer, size, length);
}

static weir_status report_program(const void *program, weir_report_format format, char *buffer, size_t size,
                                  size_t *length) {
    return weir_program_report(program, format, buffer, size, length);
}

/* Asks for the length, then for the text; the same call twice gives the same text. */
static char *dump(dump_fn fn, const void *object, weir_dump_format format) {
    size_t length = 0, again = 0;
    CHECK_OK(fn(object, format, NULL, 0, &length));
    char *text = malloc(length + 1);
    CHECK(text != NULL && length > 0);
    CHECK_CODE(fn(object, format, text, length, &again), WEIR_OUT_OF_RANGE, "capacity");
    CHECK_EQ(again, length);
    CHECK_OK(fn(object, format, text, length + 1, NULL));
    CHECK_EQ(strlen(text), length);
    return text;
}

static void check_dumps(dump_fn fn, const void *object, const char *const *names) {
    for (weir_dump_format format = WEIR_DUMP_DOT; format <= WEIR_DUMP_JSON; format++) {
        char *text = dump(fn, object, format);
        for (size_t i = 0; names[i] != NULL; i++) CHECK_TEXT(text, names[i]);
        if (format == WEIR_DUMP_DOT) {
            check_dot(text);
            CHECK_TEXT(text, "->");
        } else {
            const char *at = text;
            parse_value(&at);
            CHECK(*at == '\0');
            CHECK_TEXT(text, "f32[");
        }
        free(text);
    }
}

/* UTF-8 stays readable. */
static const char *const of_the_graph[] = {"pixels", "weights", "dense", "logits", "notify", "ключ", NULL};
static const char *const of_the_program[] = {"dense", "notify", "ключ", NULL}; /* what a run does, no more */

int main(void) {
    weir_runtime_info before = runtime_info();
    weir_engine *engine = make_engine(NULL);
    weir_graph *graph = make_graph("net");
    weir_tensor_desc pixels = matrix_desc(4, 64);
    weir_tensor *weights = make_tensor(engine, matrix_desc(64, 10));
    weir_kernel *matmul = NULL, *relu = NULL;
    weir_value in[2], dense, odd;
    weir_node dense_node, notify;
    atomic_int runs = 0;
    CHECK_OK(weir_kernel_create_matmul(engine, NULL, NULL, &matmul));
    CHECK_OK(weir_kernel_create_eltwise(engine, ELTWISE(RELU), NULL, &relu));
    CHECK_OK(weir_graph_add_input(graph, "pixels", &pixels, &in[0]));
    CHECK_OK(weir_graph_add_constant(graph, "weights", weights, &in[1]));
    CHECK_OK(weir_graph_add_kernel(graph, "dense", matmul, in, 2, &dense, 1, &dense_node));
    static const char odd_name[] = "odd \"name\" \\ {with} <all>\n\t\x01 of | it: ключ";
    CHECK_OK(weir_graph_add_kernel(graph, odd_name, relu, &dense, 1, &odd, 1, NULL));
    CHECK_OK(weir_graph_add_task(graph, "notify", count_run, &runs, NULL, 0, &notify));
    CHECK_OK(weir_graph_add_control_edge(graph, dense_node, notify));
    CHECK_OK(weir_graph_add_output(graph, "logits", odd));
    check_dumps(dump_graph, graph, of_the_graph);
    weir_program *program = compile(graph, engine);
    check_dumps(dump_program, program, of_the_program);
    char *report = dump(report_program, program, WEIR_REPORT_JSON);
    const char *at_report = report;
    parse_value(&at_report);
    CHECK(*at_report == '\0');
    free(report);
    report = dump(report_program, program, WEIR_REPORT_TEXT);
    CHECK_TEXT(report, "program 'net'");
    free(report);
    weir_program_release(program);
    weir_graph_destroy(graph);

    graph = make_graph(""); /* nothing in it is no reason to stumble */
    for (weir_dump_format format = WEIR_DUMP_DOT; format <= WEIR_DUMP_JSON; format++) {
        char *text = dump(dump_graph, graph, format);
        const char *at = text;
        if (format == WEIR_DUMP_DOT) check_dot(text);
        else parse_value(&at);
        free(text);
    }
    weir_graph_destroy(graph);
    weir_kernel_release(matmul);
    weir_kernel_release(relu);
    weir_tensor_release(weights);
    weir_engine_release(engine);
    check_released(&before);
    return 0;
}
