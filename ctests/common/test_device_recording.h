/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The recordings, prepared launches and scratch memory of the test device. A part of test_device.c, behind
 * test_device_work.h. A replay does the steps in an order that is drawn from those that the edges allow, so that an edge
 * too few shows; and it reads the predicate of a loop as early as it may.
 */

#ifndef WEIR_CTESTS_TEST_DEVICE_RECORDING_H
#define WEIR_CTESTS_TEST_DEVICE_RECORDING_H

#include <stdbool.h>
#include <weir/device.h>

#include "test_device_work.h"

typedef struct steps {
    struct step *all;
    size_t count;
} steps;

struct step {
    uint32_t kind;
    command work; /* of a launch, copy or fill */
    size_t *after, num_after;
    steps *inside; /* of a branch or loop */
    size_t num_inside;
    uint32_t relation, dtype;
    const char *reads[2];
    bool is_cond;
    size_t *behind, num_behind;
};

typedef struct executable {
    steps list;
} executable;

/* A call as the device keeps it. */
static int32_t read_launch(test_device *c, test_kernel *kernel, const weir_device_launch *call, command *out) {
    *out = (command){.verb = LAUNCH, .kernel = kernel, .num_inputs = call->num_inputs, .num_outputs = call->num_outputs};
    if (call->num_inputs + call->num_outputs > 8) return fail(WEIR_OUT_OF_RANGE, "more than 8 tensors");
    for (size_t i = 0; i < call->num_inputs; i++) out->views[i] = call->inputs[i];
    for (size_t i = 0; i < call->num_outputs; i++) out->views[call->num_inputs + i] = call->outputs[i];
    bool knows = call->struct_size >= offsetof(weir_device_launch, scratch_bytes) + sizeof call->scratch_bytes;
    if ((c->capabilities & WEIR_DEVICE_SCRATCH) != 0) {
        out->scratch_bytes = test_kernel_scratch(call->inputs, call->num_inputs);
        uint64_t got = knows ? call->scratch_bytes : 0;
        if ((got != out->scratch_bytes && c->fault != UNSTEADY_SCRATCH) || (got > 0) != (call->scratch != 0)) return fail(WEIR_INTERNAL, "not the scratch memory that was asked for");
        if (call->scratch % TEST_ALIGNMENT != 0) return fail(WEIR_INTERNAL, "scratch memory is not aligned");
        out->scratch = pointer(call->scratch);
    } else if (knows && (call->scratch != 0 || call->scratch_bytes != 0)) {
        return fail(WEIR_INTERNAL, "scratch memory that nobody asked for");
    }
    return WEIR_OK;
}

static char *place(const void *device, uint64_t address) {
    return device == NULL ? (char *)(uintptr_t)address : pointer(address);
}

static int32_t read_work(test_device *c, const weir_device_work *work, command *out) {
    if (work->kind == WEIR_DEVICE_WORK_LAUNCH) return read_launch(c, work->kernel, work->launch, out);
    if (work->kind == WEIR_DEVICE_WORK_COPY) {
        const weir_device_copy *copy = work->copy;
        *out = (command){.verb = COPY, .to = place(copy->to_device, copy->to), .from = place(copy->from_device, copy->from), .bytes = copy->bytes};
        return WEIR_OK;
    }
    if (work->kind != WEIR_DEVICE_WORK_FILL) return fail(WEIR_UNIMPLEMENTED, "no such step");
    *out = (command){.verb = FILL, .to = pointer(work->fill->to), .value = work->fill->value, .bytes = work->fill->bytes};
    return WEIR_OK;
}

static void free_steps(steps *list) {
    for (size_t i = 0; i < list->count; i++) {
        struct step *step = &list->all[i];
        for (size_t j = 0; j < step->num_inside; j++) free_steps(&step->inside[j]);
        free(step->inside);
        free(step->after);
        free(step->behind);
    }
    free(list->all);
    *list = (steps){NULL, 0};
}

static size_t *numbers(const size_t *from, size_t count) {
    size_t *to = malloc((count + 1) * sizeof *to);
    if (to != NULL && count > 0) memcpy(to, from, count * sizeof *to);
    return to;
}

/* A copy of a list; what is there of it is freed by the caller if this fails. */
static int32_t read_steps(test_device *c, const weir_device_step_list *from, steps *to) {
    to->all = calloc(from->num_steps + 1, sizeof *to->all);
    if (to->all == NULL) return fail(WEIR_RESOURCE_EXHAUSTED, "no memory for steps");
    to->count = from->num_steps;
    for (size_t i = 0; i < from->num_steps; i++) {
        const weir_device_step *given = &from->steps[i];
        const weir_device_work *work = given->work;
        struct step *step = &to->all[i];
        const weir_device_step_list *lists = NULL;
        step->kind = work->kind;
        step->num_after = given->num_after;
        step->after = numbers(given->after, given->num_after);
        if (step->after == NULL) return fail(WEIR_RESOURCE_EXHAUSTED, "no memory for edges");
        if (work->kind == WEIR_DEVICE_WORK_BRANCH) {
            lists = work->branch->branches;
            step->num_inside = work->branch->num_branches;
            step->reads[0] = pointer(work->branch->choice);
            step->dtype = work->branch->dtype;
            step->is_cond = work->branch->is_cond == 1;
        } else if (work->kind == WEIR_DEVICE_WORK_LOOP) {
            lists = work->again->body;
            step->num_inside = 1;
            step->relation = work->again->relation;
            step->dtype = work->again->dtype;
            for (int j = 0; j < 2; j++) step->reads[j] = pointer(work->again->addresses[j]);
            step->num_behind = work->again->num_behind;
            if (work->again->behind != NULL) {
                step->behind = numbers(work->again->behind, step->num_behind);
                if (step->behind == NULL) return fail(WEIR_RESOURCE_EXHAUSTED, "no memory for edges");
            }
        } else {
            int32_t status = read_work(c, work, &step->work);
            if (status != WEIR_OK) return status;
            continue;
        }
        if ((c->capabilities & WEIR_DEVICE_CONTROL_FLOW) == 0) return fail(WEIR_INTERNAL, "a branch for a device that has none");
        size_t count = step->num_inside;
        step->num_inside = 0;
        step->inside = calloc(count, sizeof *step->inside);
        if (step->inside == NULL) return fail(WEIR_RESOURCE_EXHAUSTED, "no memory for lists");
        for (size_t j = 0; j < count; j++) {
            step->num_inside++;
            int32_t status = read_steps(c, &lists[j], &step->inside[j]);
            if (status != WEIR_OK) return status;
        }
    }
    return WEIR_OK;
}

static int64_t integer_at(const char *at, uint32_t dtype) {
    int32_t wide;
    if (dtype == WEIR_S8) return *(const int8_t *)at;
    if (dtype != WEIR_S32) return *(const uint8_t *)at;
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static bool holds(const struct step *loop) {
    if (loop->relation == WEIR_DEVICE_NOT_ZERO) return integer_at(loop->reads[0], loop->dtype) != 0;
    double a, b;
    float f[2];
    int32_t n[2];
    for (int i = 0; i < 2; i++) memcpy(&f[i], loop->reads[i], 4), memcpy(&n[i], loop->reads[i], 4);
    a = loop->dtype == WEIR_F32 ? (double)f[0] : n[0];
    b = loop->dtype == WEIR_F32 ? (double)f[1] : n[1];
    switch (loop->relation) {
    case WEIR_DEVICE_EQ: return a == b;
    case WEIR_DEVICE_NE: return a != b;
    case WEIR_DEVICE_LT: return a < b;
    case WEIR_DEVICE_LE: return a <= b;
    case WEIR_DEVICE_GT: return a > b;
    default: return a >= b;
    }
}

static bool all_done(const bool *done, const size_t *of, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!done[of[i]]) return false;
    }
    return true;
}

static int32_t do_steps(test_device *c, const steps *list, uint64_t *seed, const struct step *loop, bool *again);

static int32_t do_step(test_device *c, const struct step *step, uint64_t *seed) {
    if (step->kind == WEIR_DEVICE_WORK_BRANCH) {
        int64_t choice = integer_at(step->reads[0], step->dtype);
        size_t last = step->num_inside - 1, chosen = choice < 0 || (uint64_t)choice > last ? last : (size_t)choice;
        if (step->is_cond) chosen = choice != 0;
        if (c->fault == WRONG_BRANCH) chosen = last - chosen;
        return do_steps(c, &step->inside[chosen], seed, NULL, NULL);
    }
    if (step->kind == WEIR_DEVICE_WORK_LOOP) {
        int32_t status = WEIR_OK;
        bool again = c->fault == ONCE_MORE || holds(step);
        while (again && status == WEIR_OK) status = do_steps(c, &step->inside[0], seed, step, &again);
        return status;
    }
    pthread_mutex_lock(&c->mutex);
    int32_t status = c->lost ? WEIR_DEVICE_LOST : planned(c, "work");
    pthread_mutex_unlock(&c->mutex);
    command work = step->work;
    return status == WEIR_OK ? do_work(c, &work) : status;
}

/* One time of a list. Of a loop's body it says whether there is another one. */
static int32_t do_steps(test_device *c, const steps *list, uint64_t *seed, const struct step *loop, bool *again) {
    bool *done = calloc(list->count + 1, sizeof *done), is_read = false;
    int32_t status = done == NULL ? fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a list") : WEIR_OK;
    for (size_t left = list->count; left > 0 && status == WEIR_OK; left--) {
        size_t chosen = list->count, ready = 0;
        for (size_t i = 0; i < list->count; i++) {
            bool may = c->fault == NO_EDGES || all_done(done, list->all[i].after, list->all[i].num_after);
            if (done[i] || !may) continue;
            *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            if ((*seed >> 33) % ++ready == 0) chosen = i;
        }
        if (chosen == list->count) status = fail(WEIR_INTERNAL, "steps wait for one another");
        else status = do_step(c, &list->all[chosen], seed);
        if (status == WEIR_OK) done[chosen] = true;
        if (loop != NULL && loop->behind != NULL && !is_read && all_done(done, loop->behind, loop->num_behind)) {
            *again = holds(loop);
            is_read = true;
        }
    }
    if (loop != NULL && !is_read) *again = holds(loop);
    free(done);
    return status;
}

/* A replay's own copy of what it was given. */
static int32_t do_replay(test_device *c, command *work) {
    return do_steps(c, work->replay, &work->bytes, NULL, NULL);
}

/* ---- The functions ---- */

static int32_t record(void *device, const weir_device_recording *recording, void **out_executable) {
    test_device *c = ((opened *)device)->context;
    int32_t status = enter(c, "record");
    executable *made = status == WEIR_OK ? calloc(1, sizeof *made) : NULL;
    if (status == WEIR_OK && made == NULL) status = fail(WEIR_RESOURCE_EXHAUSTED, "no memory for an executable");
    if (status == WEIR_OK) status = read_steps(c, &recording->list, &made->list);
    for (size_t i = 0; status == WEIR_OK && i < made->list.count; i++) {
        if (c->refuses_control && made->list.all[i].num_inside > 0) status = fail(WEIR_UNIMPLEMENTED, "too hard to decide");
    }
    if (status == WEIR_OK) {
        c->alive++;
        c->recordings++;
        c->emptied = false;
        *out_executable = made;
    } else if (made != NULL) {
        free_steps(&made->list);
        free(made);
    }
    return leave(c, status);
}

static int32_t executable_update(void *device, void *updated, size_t step, const weir_device_work *work) {
    test_device *c = ((opened *)device)->context;
    executable *e = updated;
    command changed;
    int32_t status = enter(c, "executable_update");
    if (status == WEIR_OK && (step >= e->list.count || e->list.all[step].kind != work->kind)) status = fail(WEIR_INVALID_ARGUMENT, "another step");
    if (status == WEIR_OK) status = read_work(c, work, &changed);
    if (status == WEIR_OK && c->fault != STALE_UPDATES) e->list.all[step].work = changed;
    if (status == WEIR_OK) c->updates++;
    return leave(c, status);
}

static void executable_destroy(void *device, void *ended) {
    test_device *c = ((opened *)device)->context;
    executable *e = ended;
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    c->emptied = c->fault == GREEDY_EXECUTABLES;
    if (c->lost) bury_steps(device, &e->list); /* what is queued has its lists still */
    else free_steps(&e->list);
    free(e);
    pthread_mutex_unlock(&c->mutex);
}

static int32_t replay(void *device, void *on, void *replayed) {
    test_device *c = ((opened *)device)->context;
    executable *e = replayed;
    int32_t status = enter(c, "replay");
    if (status != WEIR_OK) return leave(c, status);
    /* Later updates are not this replay's. Branches and loops stay as they are inside. */
    size_t bytes = e->list.count * sizeof *e->list.all;
    steps *list = malloc(sizeof *list + bytes);
    if (list == NULL) return leave(c, fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a replay"));
    list->count = c->emptied ? 0 : e->list.count;
    list->all = (struct step *)(list + 1);
    if (bytes > 0) memcpy(list->all, e->list.all, bytes);
    command work = {.verb = REPLAY, .replay = list, .staged = list, .bytes = ++c->replays};
    status = queue(on, &work);
    if (status != WEIR_OK) free(list);
    return leave(c, status);
}

static int32_t prepare(void *device, void *kernel, const weir_device_launch *call, void *before, void **out_prepared) {
    test_device *c = ((opened *)device)->context;
    command work;
    int32_t status = enter(c, "prepare");
    if (status == WEIR_OK) status = read_launch(c, kernel, call, &work);
    command *made = before;
    if (status == WEIR_OK && before == NULL) {
        made = malloc(sizeof *made);
        if (made == NULL) status = fail(WEIR_RESOURCE_EXHAUSTED, "no memory for a call");
        else c->alive++;
    }
    if (status == WEIR_OK) {
        work.prepared = ++c->num_prepared;
        if (c->fault != STALE_PREPARED || before == NULL) *made = work;
        c->prepared++;
        *out_prepared = made;
    }
    return leave(c, status);
}

static int32_t launch_prepared(void *device, void *on, void *prepared) {
    return issue(device, on, "launch_prepared", prepared);
}

static void prepared_destroy(void *device, void *prepared) {
    test_device *c = ((opened *)device)->context;
    pthread_mutex_lock(&c->mutex);
    c->alive--;
    c->last_destroyed = ((command *)prepared)->prepared;
    free(prepared);
    pthread_mutex_unlock(&c->mutex);
}

static int32_t kernel_scratch(void *device, void *kernel, const weir_device_launch *call, uint64_t *out_bytes) {
    test_device *c = ((opened *)device)->context;
    (void)kernel;
    int32_t status = enter(c, "kernel_scratch");
    if (status == WEIR_OK) *out_bytes = test_kernel_scratch(call->inputs, call->num_inputs);
    bool is_odd = call->num_inputs > 0 && ((uintptr_t)call->inputs[0].data / TEST_ALIGNMENT) % 2 != 0;
    if (status == WEIR_OK && c->fault == UNSTEADY_SCRATCH && is_odd) *out_bytes += TEST_ALIGNMENT;
    return leave(c, status);
}

static int32_t stream_query(void *device, void *asked, int32_t *out_idle) {
    test_device *c = ((opened *)device)->context;
    stream *s = asked;
    int32_t status = enter(c, "stream_query");
    if (status == WEIR_OK) {
        *out_idle = c->fault == EARLY_IDLE || (s->first == NULL && s->status == WEIR_OK);
        c->queries++;
    }
    return leave(c, status);
}

#endif /* WEIR_CTESTS_TEST_DEVICE_RECORDING_H */
