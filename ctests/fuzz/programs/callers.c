/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What callers do with a program.
 */

#include "callers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Acts -------------------------------------------------------------------------------------- */

static void make_options(pending *p) {
    const act *a = p->act;
    weir_run_options *o = &p->options;
    *o = (weir_run_options){.struct_size = sizeof *o, .deadline_ns = a->deadline_ns};
    if (a->run_pool) o->threadpool = p->caller->w->pools[FOR_RUN];
    if (a->deterministic) o->flags |= WEIR_RUN_DETERMINISTIC;
    if (a->finish_independent) o->flags |= WEIR_RUN_FINISH_INDEPENDENT;
    if (a->no_wait) o->flags |= WEIR_RUN_NO_WAIT;
    if (a->outputs != 0) {
        for (int k = 0; k < p->num_out; k++) p->indices[k] = (size_t)output_index(p, k);
        o->outputs = p->indices, o->num_outputs = (size_t)p->num_out;
    }
    if (a->follows && a->kind != ACT_MANY) {
        o->progress = told_how_far, o->progress_ctx = p;
        o->progress_interval_ns = 1;
    }
    if (a->flags && a->kind != ACT_MANY) o->absent = p->flags, o->num_absent = (size_t)p->num_out;
}

static void make_run(pending *p, int copies) {
    world *w = p->caller->w;
    const act *a = p->act;
    p->is_run = p->issued = true;
    p->copies = copies;
    for (int i = 0; i < w->plan->graph->num_outputs; i++) p->num_out += a->outputs == 0 || (a->outputs >> i & 1) != 0;
    for (int c = 0; c < copies; c++) {
        for (int k = 0; k < p->num_out; k++) {
            int d = w->plan->output_device[output_index(p, k)];
            p->outs[c * p->num_out + k] = vec_tensor(d < 0 ? w->cpu : w->devices[d]);
        }
    }
    make_options(p);
}

static weir_status run_now(pending *p, weir_stream *stream) {
    world *w = p->caller->w;
    return weir_program_run(w->program, stream, w->inputs[p->act->set], (size_t)w->plan->graph->num_inputs, p->outs, (size_t)p->num_out,
                            &p->options);
}

static bool is_asynchronous(const caller *c, int k) {
    return c->plan->streams[k].asynchronous || c->plan->streams[k].device >= 0;
}

/* A failure on the stream from here on is no finding. */
static void taint(caller *c, int k) {
    c->tainted[k] = true;
    atomic_store(&c->w->late_errors, true);
    atomic_store(&c->w->calm, false);
}

/* Work was given to a stream: an asynchronous one says only whether it takes it. */
static void note_queued(pending *p, weir_status status) {
    caller *c = p->caller;
    if (!is_asynchronous(c, p->stream) || status != WEIR_OK) judge(p, status);
}

static void act_run_stream(caller *c, pending *p) {
    p->stream = p->act->stream;
    make_run(p, 1);
    bool asks = p->act->tell == BY_OPTIONS && is_asynchronous(c, p->stream);
    weir_notice asked = notice_of(p, false);
    if (asks) p->options.notice = &asked;
    if (may_fail(c->w, p->act)) taint(c, p->stream);
    weir_status status = run_now(p, c->streams[p->stream]);
    p->will_tell = asks && status == WEIR_OK;
    note_queued(p, status);
}

/* A synchronous stream starts no runs. */
static void act_start(caller *c, pending *p) {
    world *w = c->w;
    const act *a = p->act;
    int k = a->stream;
    for (int i = 0; i < c->plan->num_streams && !is_asynchronous(c, k); i++) k = i;
    if (!is_asynchronous(c, k)) {
        act_run_stream(c, p);
        return;
    }
    p->stream = k;
    make_run(p, 1);
    p->tainted = c->tainted[k];
    weir_notice asked = notice_of(p, true);
    if (a->tell == BY_OPTIONS) p->options.notice = &asked;
    weir_status status = weir_program_start(w->program, c->streams[k], w->inputs[a->set], (size_t)w->plan->graph->num_inputs, p->outs,
                                            (size_t)p->num_out, &p->options, &p->run);
    if (status != WEIR_OK) {
        judge(p, status);
        return;
    }
    if (a->tell == BY_CALL) {
        weir_notice notice = notice_of(p, true);
        MUST(weir_run_notify(p->run, &notice));
    }
    p->will_tell = a->tell != NOT_TOLD;
    if (a->then == CANCEL_SOON) doze_us(20 * a->count);
    if (a->then == CANCEL_NOW || a->then == CANCEL_SOON) MUST(weir_run_cancel(p->run));
    if (a->then == LET_GO) {
        weir_run_release(p->run);
        p->run = NULL;
    } else if (a->then != WAIT_LATER) {
        status = weir_run_synchronize(p->run, a->count == 1 ? 100000 : WEIR_TIMEOUT_INFINITE);
        bool later = (status == WEIR_DEADLINE_EXCEEDED && a->count == 1) || (status == WEIR_FAILED_PRECONDITION && c->inside);
        if (status == WEIR_FAILED_PRECONDITION && c->inside) count_refusal();
        if (!later) judge(p, status);
    }
}

static void act_many(caller *c, pending *p) {
    world *w = c->w;
    weir_tensor *inputs[4 * MAX_PROGRAM_INS];
    int num_in = w->plan->graph->num_inputs;
    make_run(p, p->act->count);
    for (int i = 0; i < p->copies; i++) {
        for (int k = 0; k < num_in; k++) inputs[i * num_in + k] = w->inputs[p->act->set][k];
    }
    judge(p, weir_program_run_many(w->program, (size_t)p->copies, inputs, (size_t)num_in, p->outs, (size_t)p->num_out,
                                   &p->options));
}

static int32_t empty_task(void *arg) {
    (void)arg;
    watch_progress();
    atomic_fetch_add(&told->bodies, 1);
    return WEIR_OK;
}

static void act_task(caller *c, int stream) {
    weir_status status = weir_enqueue_task(c->streams[stream], empty_task, NULL, NULL);
    bool fine = status == WEIR_OK || (c->tainted[stream] && (status == WEIR_FAILED_PRECONDITION || is_late_failure(status)));
    if (!fine) finding("status", "weir_enqueue_task says %s", what_said(status));
}

static void act_kernel(caller *c, pending *p) {
    world *w = c->w;
    int k = p->act->stream;
    if (c->plan->streams[k].device >= 0) {
        act_task(c, k);
        return;
    }
    p->stream = k;
    p->issued = true;
    p->copies = p->num_out = 1;
    p->in = vec_tensor(w->cpu);
    p->outs[0] = vec_tensor(w->cpu);
    p->kernel_in = w->values[p->act->set][0];
    vec_write(p->in, &p->kernel_in);
    note_queued(p, weir_enqueue(c->streams[k], w->mixes[p->act->manner], &p->in, 1, p->outs, 1));
}

static int32_t run_in_task(void *arg) {
    pending *p = arg;
    caller inside = {.w = p->caller->w, .plan = p->caller->plan, .inside = true};
    watch_progress();
    weir_status status = run_now(p, NULL);
    pending mine;
    memcpy(&mine, p, sizeof mine);
    mine.caller = &inside;
    mine.stream = -1;
    judge(&mine, status);
    p->good = mine.good;
    p->settled = true;
    watch_progress();
    return WEIR_OK;
}

static int32_t wait_in_task(void *arg) {
    pending *p = arg;
    watch_progress();
    weir_status status = weir_event_synchronize(p->event, WEIR_TIMEOUT_INFINITE);
    if (status == WEIR_FAILED_PRECONDITION) count_refusal();
    else if (status != WEIR_OK && !atomic_load(&p->caller->w->late_errors)) finding("status", "a wait in a task: %s", what_said(status));
    watch_progress();
    return WEIR_OK;
}

static void act_task_calls(caller *c, pending *p) {
    int k = p->act->stream, other = p->act->other;
    weir_status status = WEIR_OK;
    if (p->act->kind == ACT_TASK_RUNS) {
        make_run(p, 1);
        if (is_asynchronous(c, k)) atomic_store(&c->w->calm, false); /* nobody counts what it does */
        status = weir_enqueue_task(c->streams[k], run_in_task, p, NULL);
    } else {
        weir_engine *engine = NULL;
        MUST(weir_stream_get_engine(c->streams[other], &engine));
        MUST(weir_event_create(engine, 0, &p->event));
        status = weir_event_record(p->event, c->streams[other]);
        if (status != WEIR_OK && !c->tainted[other]) finding("status", "weir_event_record says %s", what_said(status));
        if (status == WEIR_OK) status = weir_enqueue_task(c->streams[k], wait_in_task, p, NULL);
        if (c->tainted[other]) taint(c, k);
    }
    bool fine = status == WEIR_OK || c->tainted[k];
    if (!fine) finding("status", "weir_enqueue_task says %s", what_said(status));
    if (status != WEIR_OK) p->settled = true;
}

static void act_event(caller *c, pending *p) {
    const act *a = p->act;
    weir_engine *engine = NULL;
    weir_event *event = NULL;
    MUST(weir_stream_get_engine(c->streams[a->stream], &engine));
    MUST(weir_event_create(engine, 0, &event));
    if (c->tainted[a->stream]) taint(c, a->other);
    weir_status status = weir_event_record(event, c->streams[a->stream]);
    if (status != WEIR_OK && !c->tainted[a->stream]) finding("status", "weir_event_record says %s", what_said(status));
    if (status == WEIR_OK && a->tell != NOT_TOLD) {
        weir_notice notice = notice_of(p, false);
        p->will_tell = true;
        MUST(weir_event_notify(event, &notice));
    }
    if (a->other != a->stream) {
        status = weir_stream_wait_event(c->streams[a->other], event);
        if (status != WEIR_OK && !c->tainted[a->other] && !c->inside) finding("status", "weir_stream_wait_event says %s", what_said(status));
        if (status == WEIR_FAILED_PRECONDITION) count_refusal();
    }
    if (a->count % 2 == 0) {
        status = weir_event_synchronize(event, WEIR_TIMEOUT_INFINITE);
        bool fine = status == WEIR_OK || c->tainted[a->stream] || (status == WEIR_FAILED_PRECONDITION && c->inside);
        if (!fine) finding("status", "weir_event_synchronize says %s", what_said(status));
        if (status == WEIR_FAILED_PRECONDITION) count_refusal();
    }
    weir_event_release(event);
}

/* Whether a stream's work is over; then what was queued there is judged. */
static bool sync_stream(caller *c, int k) {
    weir_status status = weir_stream_synchronize(c->streams[k], WEIR_TIMEOUT_INFINITE);
    watch_progress();
    if (status == WEIR_FAILED_PRECONDITION && c->inside) {
        count_refusal();
        return false;
    }
    bool failed = status != WEIR_OK;
    if (failed && !(c->tainted[k] && (is_late_failure(status) || status == WEIR_FAILED_PRECONDITION))) {
        finding("status", "weir_stream_synchronize of stream %d of c%d says %s", k, c->plan->id, what_said(status));
    }
    for (int i = 0; i < c->plan->num_acts; i++) {
        pending *p = &c->pendings[i];
        bool queued = p->issued && !p->settled && p->stream == k && p->run == NULL;
        if (!queued) continue;
        bool loose = p->act->kind == ACT_START && (p->act->then == CANCEL_NOW || p->act->then == CANCEL_SOON || may_fail(c->w, p->act));
        if (!failed && !loose) judge_good(p);
        else atomic_store(&c->w->calm, false);
        p->settled = true;
    }
    if (failed) {
        atomic_fetch_add(&told->failures, 1);
        MUST(weir_stream_clear_error(c->streams[k]));
        c->tainted[k] = false;
    }
    return true;
}

static void check_wait_for_all(const caller *c, const char *call, weir_status status) {
    if (status == WEIR_OK) return;
    if (status == WEIR_FAILED_PRECONDITION && c->inside) {
        count_refusal();
        return;
    }
    if (is_late_failure(status) && atomic_load(&c->w->late_errors)) return;
    finding("status", "%s says %s", call, what_said(status));
}

static void perform(caller *c, int i) {
    const act *a = &c->plan->acts[i];
    pending *p = &c->pendings[i];
    world *w = c->w;
    if (a->dropped) return;
    watch_progress();
    atomic_fetch_add(&told->acts, 1);
    p->caller = c;
    p->act = a;
    p->stream = -1;
    switch (a->kind) {
    case ACT_RUN:
        make_run(p, 1);
        judge(p, run_now(p, NULL));
        break;
    case ACT_RUN_STREAM: act_run_stream(c, p); break;
    case ACT_START: act_start(c, p); break;
    case ACT_MANY: act_many(c, p); break;
    case ACT_KERNEL: act_kernel(c, p); break;
    case ACT_TASK: act_task(c, a->stream); break;
    case ACT_TASK_RUNS:
    case ACT_TASK_WAITS: act_task_calls(c, p); break;
    case ACT_EVENT: act_event(c, p); break;
    case ACT_SYNC_STREAM: (void)sync_stream(c, a->stream); break;
    case ACT_SYNC_ENGINE: {
        int d = c->plan->streams[a->stream].device;
        weir_engine *e = d >= 0 ? w->devices[d] : w->cpu;
        check_wait_for_all(c, "weir_engine_synchronize", weir_engine_synchronize(e, WEIR_TIMEOUT_INFINITE));
        break;
    }
    case ACT_SYNC_ALL: check_wait_for_all(c, "weir_sync_devices", weir_sync_devices(WEIR_TIMEOUT_INFINITE, NULL, 0, NULL)); break;
    default: break;
    }
    watch_progress();
}

/* ---- Callers ----------------------------------------------------------------------------------- */

static void play(caller *c) {
    for (int i = 0; i < c->plan->num_acts; i++) perform(c, i);
    atomic_store(&c->over, true);
}

static void *play_outside(void *arg) {
    play(arg);
    return NULL;
}

static void play_job(void *arg) {
    play(arg);
}

static int32_t play_task(void *arg) {
    play(arg);
    return WEIR_OK;
}

static weir_stream *make_stream(world *w, const stream_plan *s) {
    weir_engine *engine = s->device >= 0 ? w->devices[s->device] : w->cpu;
    weir_stream_attr *attr = NULL;
    weir_stream *stream = NULL;
    MUST(weir_stream_attr_create(s->device >= 0 ? WEIR_ENGINE_EMULATED : WEIR_ENGINE_CPU, &attr));
    if (s->pool) MUST(weir_stream_attr_set_threadpool(attr, w->pools[FOR_STREAM]));
    MUST(weir_stream_attr_set_priority(attr, s->priority));
    MUST(weir_stream_create(engine, s->device < 0 && s->asynchronous ? WEIR_STREAM_ASYNCHRONOUS : 0, attr, &stream));
    weir_stream_attr_destroy(attr);
    return stream;
}

static void start_caller(caller *c) {
    for (int k = 0; k < c->plan->num_streams; k++) c->streams[k] = make_stream(c->w, &c->plan->streams[k]);
    c->inside = c->plan->where != OUTSIDE;
    if (c->plan->where == STREAM_TASK) {
        stream_plan s = c->plan->streams[0];
        s.asynchronous = true;
        c->carrier = make_stream(c->w, &s);
    }
}

static void let_play(caller *c) {
    switch (c->plan->where) {
    case OUTSIDE:
        if (pthread_create(&c->thread, NULL, play_outside, c) != 0) abort();
        break;
    case POOL_JOB: own_pool_post(c->w->own[c->plan->pool], play_job, c); break;
    case STREAM_TASK: MUST(weir_enqueue_task(c->carrier, play_task, c, NULL)); break;
    }
}

static void await(caller *c) {
    if (c->plan->where == OUTSIDE) pthread_join(c->thread, NULL);
    if (c->plan->where == STREAM_TASK) MUST(weir_stream_synchronize(c->carrier, WEIR_TIMEOUT_INFINITE));
    for (int us = 20; !atomic_load(&c->over);) doze_longer(&us);
    c->inside = false;
}

/* What the caller has left behind. */
static void finish_caller(caller *c) {
    for (int i = 0; i < c->plan->num_acts; i++) {
        pending *p = &c->pendings[i];
        if (p->run == NULL) continue;
        if (!p->settled) judge(p, weir_run_synchronize(p->run, WEIR_TIMEOUT_INFINITE));
        weir_run_release(p->run);
        p->run = NULL;
    }
    for (int k = 0; k < c->plan->num_streams; k++) {
        if (!sync_stream(c, k)) finding("status", "a wait from outside was refused: %s", weir_last_error_message());
    }
    for (int i = 0; i < c->plan->num_acts; i++) compare_device(&c->pendings[i]);
}

static void end_caller(caller *c) {
    for (int i = 0; i < c->plan->num_acts; i++) {
        pending *p = &c->pendings[i];
        for (int k = 0; k < p->copies * p->num_out; k++) weir_tensor_release(p->outs[k]);
        weir_tensor_release(p->in);
        weir_event_release(p->event);
    }
    if (is_planted("leak")) MUST(weir_stream_retain(c->streams[0]));
    for (int k = 0; k < c->plan->num_streams; k++) weir_stream_release(c->streams[k]);
    weir_stream_release(c->carrier);
}

void callers_run(world *w) {
    caller *callers = calloc(MAX_CALLERS, sizeof *callers);
    int n = 0;
    if (callers == NULL) abort();
    watch_phase("callers begin");
    for (int i = 0; i < w->plan->num_callers; i++) {
        const caller_plan *c = &w->plan->callers[i];
        if (c->dropped) continue;
        callers[n].w = w;
        callers[n].plan = c;
        start_caller(&callers[n++]);
        atomic_fetch_add(&told->callers[c->where], 1);
    }
    for (int i = 0; i < n; i++) let_play(&callers[i]);
    watch_phase("callers at work");
    for (int i = 0; i < n; i++) await(&callers[i]);
    watch_phase("what callers left is waited for");
    for (int i = 0; i < n; i++) finish_caller(&callers[i]);
    for (int i = 0; i < n; i++) end_caller(&callers[i]);
    watch_phase("notices come");
    for (int i = 0; i < n; i++) check_notices(&callers[i]);
    free(callers);
}
