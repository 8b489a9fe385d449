/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * One program from its plan to the point where nothing of it is left.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/inspect.h>
#include <weir/testing.h>

#include "world.h"

static weir_runtime_info info_now(void) {
    weir_runtime_info info = {.struct_size = sizeof info};
    MUST(weir_runtime_get_info(&info));
    return info;
}

/* The wait for everything is honest: no device has work that was issued before. */
static void check_synced(world *w) {
    uint64_t limit = watch_limit_ns();
    weir_status status = WEIR_OK;
    watch_phase("weir_sync_devices at the end");
    for (int i = 0; i < 3; i++) {
        status = weir_sync_devices(limit, NULL, 0, NULL);
        if (status == WEIR_OK) break;
        bool late = status == WEIR_DATA_LOSS || status == WEIR_DEADLINE_EXCEEDED || status == WEIR_UNAVAILABLE || status == WEIR_ABORTED;
        if (!late || !atomic_load(&w->late_errors)) break;
    }
    if (status != WEIR_OK) finding("sync", "weir_sync_devices at the end says %s: %s", weir_status_name(status), weir_last_error_message());
    for (int d = 0; d < MAX_DEVICES; d++) {
        if (w->devices[d] == NULL) continue;
        weir_emulated_counters c = {.struct_size = sizeof c};
        weir_emulated_race race = {.struct_size = sizeof race};
        size_t count = 0;
        MUST(weir_emulated_get_counters(w->devices[d], &c));
        if (weir_emulated_get_races(w->devices[d], &race, 1, &count) == WEIR_OK && count > 0) finding("race", "%s", race.text);
        if (c.races > 0) finding("race", "%llu races", (unsigned long long)c.races);
        if (c.completed != c.operations) {
            finding("unfinished", "d%d: %llu operations submitted, %llu done, after weir_sync_devices", d,
                    (unsigned long long)c.operations, (unsigned long long)c.completed);
        }
    }
}

static void check_effects(world *w) {
    if (!atomic_load(&w->calm)) return;
    for (const node *n = w->plan->all; n != NULL; n = n->all_next) {
        unsigned called = atomic_load(&w->bodies[n->id].begun), expected = atomic_load(&w->effects[n->id]);
        if ((n->op == OP_TASK || n->op == OP_SINK) && !n->dropped && !n->uncounted && called != expected) {
            finding("effects", "n%d was called %u times, expected %u", n->id, called, expected);
        }
    }
}

static void check_released(const weir_runtime_info *before) {
    uint64_t end = clock_ns() + watch_limit_ns();
    int pause_us = 20;
    for (;;) {
        weir_runtime_info now = info_now();
        const char *left = now.runs > before->runs           ? "runs"
                           : now.programs > before->programs ? "programs"
                           : now.graphs > before->graphs     ? "graphs"
                           : now.kernels > before->kernels   ? "kernels"
                           : now.tensors > before->tensors   ? "tensors"
                           : now.events > before->events     ? "events"
                           : now.streams > before->streams   ? "streams"
                           : now.engines > before->engines   ? "engines"
                           : now.attrs > before->attrs       ? "attributes"
                           : now.buffers > before->buffers   ? "buffers"
                           : now.threadpools > before->threadpools     ? "pools"
                           : now.threads_alive > before->threads_alive ? "threads"
                                                                       : NULL;
        if (left == NULL) return;
        if (clock_ns() > end) finding("leak", "%s are left", left);
        doze_longer(&pause_us);
    }
}

static void count(const plan *p) {
    for (int f = 0; f < FEATURES; f++) atomic_fetch_add(&told->features[f], p->uses[f]);
    for (int r = 0; r < ROLES; r++) {
        if (p->pools[r].source != POOL_SAME) atomic_fetch_add(&told->pools[pool_class(&p->pools[r])], 1);
    }
}

void try_program(const plan *p) {
    world *w = calloc(1, sizeof *w);
    if (w == NULL) abort();
    watch_begin(p);
    weir_runtime_info before = info_now();
    later_start();
    if (build_world(w, p)) {
        callers_run(w);
        check_synced(w);
        watch_phase("comparing effects");
        check_effects(w);
        count(p);
        atomic_fetch_add(&told->programs, 1);
    } else {
        atomic_fetch_add(&told->skipped, 1);
    }
    watch_phase("completions are waited for");
    for (int us = 20; atomic_load(&w->left) > 0;) doze_longer(&us);
    watch_phase("release");
    end_world(w);
    watch_phase("threads that complete later end");
    later_stop();
    watch_phase("objects are let go");
    check_released(&before);
    watch_end();
    free(w);
}
