/* SPDX-License-Identifier: MIT OR Apache-2.0 */

#include "callers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void count_refusal(void) {
    atomic_fetch_add(&told->refusals, 1);
}

/* ---- Judgement --------------------------------------------------------------------------------- */

bool may_fail(const world *w, const act *a) {
    return w->expected[a->set].some_fail || a->deadline_ns > 0 || (w->plan->uses[F_BLOCK] && w->lenient_blocking);
}

bool is_late_failure(weir_status s) {
    return s == WEIR_DATA_LOSS || s == WEIR_DEADLINE_EXCEEDED || s == WEIR_UNAVAILABLE || s == WEIR_ABORTED || s == WEIR_CANCELLED;
}

const char *what_said(weir_status status) {
    static _Thread_local char text[700];
    snprintf(text, sizeof text, "%s: %.600s", weir_status_name(status), weir_last_error_message());
    return text;
}

/* The text names a node that can be the first to fail. */
static void check_names(const world *w, int set, const char *text) {
    const outcome *o = &w->expected[set];
    for (const char *at = text; (at = strchr(at, 'n')) != NULL; at++) {
        int id = -1;
        bool named = at > text && (at[-1] == '\'' || at[-1] == ' ' || at[-1] == '/' || at[-1] == '.');
        if (named && sscanf(at, "n%d", &id) == 1 && id >= 0 && id < MAX_IDS && o->fails[id]) return;
    }
    finding("failure-text", "no node that fails is named: %s", text);
}

static weir_tensor *output_of(const pending *p, int copy, int k) {
    return p->outs[copy * p->num_out + k];
}

/* The program's output that is number k of this run. */
int output_index(const pending *p, int k) {
    if (p->act->outputs == 0) return k;
    for (int i = 0;; i++) {
        if ((p->act->outputs >> i & 1) != 0 && k-- == 0) return i;
    }
}

static void compare(const pending *p, const char *what, int k, const val *expected, const float *got) {
    for (int i = 0; i < WIDTH; i++) {
        if (memcmp(&got[i], &expected->v[i], sizeof(float)) == 0 || (got[i] == 0 && expected->v[i] == 0)) continue;
        finding("wrong-result", "%s of a%d: output %d: [%g %g %g %g], expected [%g %g %g %g]", what, p->act->id, k, (double)got[0],
                (double)got[1], (double)got[2], (double)got[3], (double)expected->v[0], (double)expected->v[1],
                (double)expected->v[2], (double)expected->v[3]);
    }
}

static void compare_host(const pending *p) {
    const world *w = p->caller->w;
    void *data = NULL;
    if (!p->is_run) {
        val out;
        node_apply(&w->mix_nodes[p->act->manner], &p->kernel_in, &out);
        MUST(weir_tensor_get_data(p->outs[0], &data));
        compare(p, "a kernel", 0, &out, data);
        return;
    }
    const outcome *o = &w->expected[p->act->set];
    for (int c = 0; c < p->copies; c++) {
        for (int k = 0; k < p->num_out; k++) {
            int index = output_index(p, k);
            if (o->outputs[index].poison) continue;
            bool absent = o->outputs[index].absent;
            if (p->act->flags && p->act->kind != ACT_MANY && (p->flags[k] != 0) != absent) {
                finding("absent", "a%d: output %d, flag %d, expected %d", p->act->id, index, p->flags[k], absent);
            }
            if (w->plan->output_device[index] >= 0 || absent) continue;
            MUST(weir_tensor_get_data(output_of(p, c, k), &data));
            compare(p, "a run", index, &o->outputs[index], data);
        }
    }
}

/* What lies on devices, by a copy: from a thread that is inside of nothing. */
void compare_device(const pending *p) {
    const world *w = p->caller->w;
    if (!p->is_run || !p->good) return;
    const outcome *o = &w->expected[p->act->set];
    for (int c = 0; c < p->copies; c++) {
        for (int k = 0; k < p->num_out; k++) {
            int index = output_index(p, k), d = w->plan->output_device[index];
            void *data = NULL;
            weir_stream *s = NULL;
            if (d < 0 || o->outputs[index].poison || o->outputs[index].absent) continue;
            weir_tensor *host = vec_tensor(w->cpu);
            MUST(weir_stream_create(w->devices[d], 0, NULL, &s));
            MUST(weir_enqueue_copy(s, output_of(p, c, k), host));
            MUST(weir_stream_synchronize(s, WEIR_TIMEOUT_INFINITE));
            weir_stream_release(s);
            MUST(weir_tensor_get_data(host, &data));
            compare(p, "a run on a device", index, &o->outputs[index], data);
            weir_tensor_release(host);
        }
    }
}

/* The run or kernel has succeeded. */
void judge_good(pending *p) {
    world *w = p->caller->w;
    p->settled = p->good = true;
    if (p->is_run) {
        const outcome *o = &w->expected[p->act->set];
        bool poison = false;
        for (int k = 0; k < p->num_out; k++) poison |= o->outputs[output_index(p, k)].poison;
        if ((poison && !o->unsure) || (o->must_fail && p->act->outputs == 0)) finding("missed-failure", "a%d succeeded", p->act->id);
        for (int i = 0; i < MAX_IDS && p->act->outputs == 0; i++) atomic_fetch_add(&w->effects[i], o->effects[i] * (unsigned)p->copies);
        atomic_fetch_add(&told->runs, (unsigned)p->copies);
    }
    compare_host(p);
}

/* How a run ended, or that its call was refused. */
void judge(pending *p, weir_status status) {
    caller *c = p->caller;
    world *w = c->w;
    const act *a = p->act;
    bool tainted = p->tainted || (p->stream >= 0 && c->tainted[p->stream]);
    p->settled = true;
    if (status == WEIR_OK) {
        judge_good(p);
        return;
    }
    atomic_store(&w->calm, false);
    switch (status) {
    case WEIR_DATA_LOSS:
        if (!w->expected[a->set].some_fail) break;
        check_names(w, a->set, weir_last_error_message());
        atomic_fetch_add(&told->failures, 1);
        return;
    case WEIR_CANCELLED:
        if (a->kind != ACT_START || (a->then != CANCEL_NOW && a->then != CANCEL_SOON)) break;
        return;
    case WEIR_DEADLINE_EXCEEDED:
        if (a->deadline_ns == 0) break;
        return;
    case WEIR_UNAVAILABLE:
        if (!w->plan->uses[F_BLOCK] || !w->lenient_blocking) break;
        return;
    case WEIR_ABORTED:
        if (!tainted) break;
        return;
    case WEIR_RESOURCE_EXHAUSTED:
        if (!a->no_wait || w->plan->max_runs == 0) break;
        count_refusal();
        return;
    case WEIR_FAILED_PRECONDITION: {
        bool options = (a->deterministic || a->finish_independent) && !w->plan->plain;
        if (!c->inside && !tainted && !options) break;
        count_refusal();
        return;
    }
    default: break;
    }
    finding("status", "a%d ends with %s", a->id, what_said(status));
}

/* ---- Progress ---------------------------------------------------------------------------------- */

void told_how_far(void *ctx, const weir_run_progress *progress) {
    pending *p = ctx;
    const int act = p->act->id;
    const unsigned long long done = progress->nodes_done, total = progress->nodes_total;
    int32_t is_done = 0;
    watch_progress();
    if (atomic_exchange(&p->following, true)) finding("progress", "a%d: told twice at once", act);
    if (p->settled || atomic_load(&p->tells) > 0) finding("progress", "a%d: told how far it is after its end", act);
    if (progress->run != NULL) MUST(weir_run_query(progress->run, &is_done));
    if (is_done != 0) finding("progress", "a%d: its run is over", act);
    if (done > total) finding("progress", "a%d: %llu of %llu nodes", act, done, total);
    if (done <= p->nodes_done) finding("progress", "a%d: %llu nodes after %llu", act, done, p->nodes_done);
    if (total < p->nodes_total) finding("progress", "a%d: of %llu nodes after %llu", act, total, p->nodes_total);
    p->nodes_done = done;
    p->nodes_total = total;
    atomic_store(&p->following, false);
}

/* ---- Notices ----------------------------------------------------------------------------------- */

static void told_of_end(void *ctx, weir_status status, weir_run *run) {
    pending *p = ctx;
    int32_t done = 0;
    watch_progress();
    if (atomic_fetch_add(&p->tells, 1) > 0) finding("notice", "a%d: told twice", p->act->id);
    if ((run != NULL) != p->of_run) finding("notice", "a%d: told of %s", p->act->id, run != NULL ? "a run" : "no run");
    if (run != NULL) MUST(weir_run_query(run, &done));
    if (run != NULL && done == 0) finding("notice", "a%d: told before the run is over", p->act->id);
    bool can_end = status == WEIR_OK || is_late_failure(status) || status == WEIR_FAILED_PRECONDITION;
    if (!can_end) finding("notice", "a%d: told of %s", p->act->id, weir_status_name(status));
    status = weir_sync_devices(1000, NULL, 0, NULL);
    /* In the call that asks, of what is over already, the caller may be a thread of the host's own. */
    bool legal = status == WEIR_FAILED_PRECONDITION;
    if (!legal) finding("sync-inside", "weir_sync_devices in a notice says %s", weir_status_name(status));
}

static void told_for_the_last_time(void *ctx) {
    pending *p = ctx;
    if (atomic_fetch_add(&p->releases, 1) > 0) finding("notice", "a%d: released twice", p->act->id);
}

weir_notice notice_of(pending *p, bool of_run) {
    p->asks = true;
    p->of_run = of_run;
    return (weir_notice){.struct_size = sizeof(weir_notice), .notify = told_of_end, .ctx = p, .release = told_for_the_last_time};
}

/* Behind the end of streams and runs. A notice that was taken is told and released once each; a call that fails takes
 * none. */
void check_notices(const caller *c) {
    uint64_t limit = clock_ns() + watch_limit_ns();
    for (int i = 0; i < c->plan->num_acts; i++) {
        pending *p = (pending *)&c->pendings[i];
        int pause_us = 20;
        while (p->asks && (atomic_load(&p->releases) < p->will_tell || atomic_load(&p->tells) < p->will_tell)) {
            if (clock_ns() > limit) {
                finding("notice", "a%d: told %d times, expected %d, released %d times", p->act->id, atomic_load(&p->tells), p->will_tell,
                        atomic_load(&p->releases));
            }
            doze_longer(&pause_us);
        }
        if (p->asks && atomic_load(&p->tells) != p->will_tell) finding("notice", "a%d: told of what was not begun", p->act->id);
        if (p->asks && atomic_load(&p->releases) != p->will_tell) {
            finding("notice", "a%d: released although the call has failed", p->act->id);
        }
    }
}
