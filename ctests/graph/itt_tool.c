/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A tool for ITT, as a library that INTEL_LIBITTNOTIFY64 names. It keeps what it is told. The types are those that
 * ITT 3 gives to tools.
 */

#include <stdint.h>
#include <stdlib.h>

#include "marker_log.h"

MARKER_LOG;

typedef void (*function)(void);

typedef struct info {
    const char *name;
    function *place;
    void *init, *null;
    int group;
} info;

typedef struct global {
    unsigned char magic[8];
    unsigned long version[3];
    long api_initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **path;
    info *functions;
    struct global *next;
    void *threads, *domains, *strings;
    int state;
    void *counters;
    unsigned collects;
    void *histograms;
} global;

typedef struct id {
    unsigned long long d1, d2, d3;
} id;

typedef struct domain {
    volatile int flags;
    const char *name;
} domain;

typedef struct string {
    char text[64];
    struct string *next;
} string;

static domain only;
static global *given;

/* The test switches it. */
__attribute__((visibility("default"))) void collect_markers(int does);

void collect_markers(int does) {
    only.flags = does;
}

static domain *create_domain(const char *name) {
    only.name = name;
    only.flags = 1;
    expect_marker(&told_markers, strcmp(name, "weir") == 0, "the domain is not weir");
    return &only;
}

/* Under the lock that it was given, twice: as Intel's own does. */
static string *create_string(const char *text) {
    pthread_mutex_lock(&given->mutex);
    pthread_mutex_lock(&given->mutex);
    string *found = given->strings;
    while (found != NULL && strcmp(found->text, text) != 0) found = found->next;
    if (found == NULL) {
        found = calloc(1, sizeof *found);
        (void)snprintf(found->text, sizeof found->text, "%s", text);
        found->next = given->strings;
        given->strings = found;
    }
    pthread_mutex_unlock(&given->mutex);
    pthread_mutex_unlock(&given->mutex);
    return found;
}

static void task_begin(const domain *of, id task, id parent, string *name) {
    expect_marker(&told_markers, of == &only, "a task of another domain");
    expect_marker(&told_markers, task.d1 == 0 && task.d3 == 0 && parent.d2 == 0, "a task with a number");
    put_marker(&told_markers, name->text);
}

static void task_end(const domain *of) {
    expect_marker(&told_markers, of == &only, "an end of another domain");
    put_marker(&told_markers, "");
}

__attribute__((visibility("default"))) void __itt_api_init(global *of, int groups);

void __itt_api_init(global *of, int groups) {
    static const unsigned char magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
    static const struct {
        const char *name;
        function call;
    } ours[] = {{"__itt_domain_create", (function)create_domain},
                {"__itt_string_handle_create", (function)create_string},
                {"__itt_task_begin", (function)task_begin},
                {"__itt_task_end", (function)task_end}};
    expect_marker(&told_markers, given == NULL, "initialised twice");
    expect_marker(&told_markers, memcmp(of->magic, magic, sizeof magic) == 0 && of->version[0] == 3, "its version");
    expect_marker(&told_markers, of->mutex_initialized == 1 && of->library != NULL && groups != 0, "its state");
    given = of;
    for (const info *f = of->functions; f->name != NULL; f++) {
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
            if (strcmp(f->name, ours[i].name) == 0) *f->place = ours[i].call;
        }
    }
}
