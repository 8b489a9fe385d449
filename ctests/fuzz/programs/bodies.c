/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The bodies of kernels and tasks, and the threads that complete kernels later.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/detached.h"
#include "world.h"

/* ---- Tensors ----------------------------------------------------------------------------------- */

static const weir_tensor_desc descs[] = {
    [VEC] = {.dtype = WEIR_F32, .rank = 1, .dims = {WIDTH}},
    [PRED] = {.dtype = WEIR_S32, .rank = 1, .dims = {1}},
    [OPEN] = {.dtype = WEIR_F32, .rank = 1, .dims = {WEIR_DIM_DYNAMIC}},
};

weir_tensor *vec_tensor(weir_engine *engine) {
    weir_tensor *t = NULL;
    MUST(weir_tensor_create(engine, &descs[VEC], NULL, &t));
    return t;
}

void vec_write(weir_tensor *t, const val *v) {
    void *data = NULL;
    MUST(weir_tensor_get_data(t, &data));
    memcpy(data, v->v, WIDTH * sizeof(float));
}

static void read_view(const weir_tensor_view *view, val *v) {
    memset(v, 0, sizeof *v);
    v->n = (int)(view->bytes / 4);
    if (v->n > MAX_OPEN) finding("shape", "a view of %zu bytes", view->bytes);
    for (int i = 0; i < v->n; i++) {
        v->v[i] = view->desc.dtype == WEIR_S32 ? (float)((const int32_t *)view->data)[i] : ((const float *)view->data)[i];
    }
}

static void write_view(const weir_tensor_view *view, const val *v) {
    if (view->bytes != (size_t)v->n * 4) finding("shape", "an output of %zu bytes for %d elements", view->bytes, v->n);
    for (int i = 0; i < v->n; i++) {
        if (view->desc.dtype == WEIR_S32) ((int32_t *)view->data)[i] = (int32_t)v->v[i];
        else ((float *)view->data)[i] = v->v[i];
    }
}

/* ---- Bodies ------------------------------------------------------------------------------------ */

static void begin_body(body *b) {
    watch_progress();
    atomic_fetch_add(&told->bodies, 1);
    unsigned begun = atomic_fetch_add(&b->begun, 1) + 1;
    for (int i = 0; i < 2; i++) {
        const body *after = b->after[i];
        if (after != NULL && atomic_load(&((body *)after)->ended) < begun) {
            finding("order", "n%d began for the %uth time before n%d had ended as often", b->node->id, begun, after->node->id);
        }
    }
    if (b->node->work_us > 0) {
        uint64_t end = clock_ns() + (uint64_t)b->node->work_us * 1000;
        while (clock_ns() < end) {}
    }
}

static void end_body(body *b) {
    atomic_fetch_add(&b->ended, 1);
}

int32_t body_task(void *arg) {
    body *b = arg;
    begin_body(b);
    int32_t status = node_fails(b->node, NULL) ? WEIR_DATA_LOSS : WEIR_OK;
    end_body(b);
    return status;
}

/* Inside of anything of weir's the waits for everything are refused, always. */
static void try_sync_inside(void) {
    weir_status status = weir_sync_devices(1000, NULL, 0, NULL);
    if (status != WEIR_FAILED_PRECONDITION) finding("sync-inside", "weir_sync_devices in a kernel says %s", weir_status_name(status));
}

/* The program of an OP_CALL, in one of several ways. A refusal is legal in a worker. */
static weir_status call_program(body *b, weir_kernel_context *context, const val *ins, val *outs) {
    const node *n = b->node;
    int count = n->way == 0 ? n->count : 1;
    weir_tensor *inputs[3 * MAX_INS], *outputs[3 * MAX_OUTS];
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < n->num_in; i++) vec_write(inputs[r * n->num_in + i] = vec_tensor(b->world->cpu), &ins[i]);
        for (int i = 0; i < n->num_out; i++) outputs[r * n->num_out + i] = vec_tensor(b->world->cpu);
    }
    weir_status status = WEIR_OK;
    size_t num_in = (size_t)n->num_in, num_out = (size_t)n->num_out;
    if (n->way == 3) try_sync_inside();
    if (n->way == 0 || n->way == 3) {
        status = weir_kernel_context_run_program(context, b->program, (size_t)count, inputs, num_in, outputs, num_out);
    } else if (n->way == 1) {
        status = weir_program_run(b->program, NULL, inputs, num_in, outputs, num_out, NULL);
    } else {
        weir_stream *stream = NULL;
        weir_run *run = NULL;
        MUST(weir_stream_create(b->world->cpu, WEIR_STREAM_ASYNCHRONOUS, NULL, &stream));
        MUST(weir_program_start(b->program, stream, inputs, num_in, outputs, num_out, NULL, &run));
        status = weir_run_synchronize(run, WEIR_TIMEOUT_INFINITE);
        weir_run_release(run);
        weir_stream_release(stream);
    }
    for (int r = 0; r < count && status == WEIR_OK; r++) {
        for (int i = 0; i < n->num_out; i++) {
            void *data = NULL;
            MUST(weir_tensor_get_data(outputs[r * n->num_out + i], &data));
            memset(&outs[i], 0, sizeof outs[i]);
            outs[i].n = WIDTH;
            memcpy(outs[i].v, data, WIDTH * sizeof(float));
        }
    }
    if (status == WEIR_FAILED_PRECONDITION) {
        outcome o;
        count_refusal();
        atomic_store(&b->world->calm, false);
        reference_run(n->graphs[0], ins, &o);
        memcpy(outs, o.outputs, sizeof *outs * num_out);
        status = WEIR_OK;
    }
    for (int i = 0; i < count * n->num_in; i++) weir_tensor_release(inputs[i]);
    for (int i = 0; i < count * n->num_out; i++) weir_tensor_release(outputs[i]);
    return status;
}

static weir_status compute_into(body *b, weir_kernel_context *context) {
    const weir_tensor_view *in = NULL, *out = NULL;
    size_t num_in = 0, num_out = 0;
    val ins[MAX_INS], outs[MAX_OUTS];
    const node *n = b->node;
    MUST(weir_kernel_context_get_inputs(context, &in, &num_in));
    MUST(weir_kernel_context_get_outputs(context, &out, &num_out));
    for (size_t i = 0; i < num_in; i++) read_view(&in[i], &ins[i]);
    if (node_fails(n, ins)) {
        char text[64];
        snprintf(text, sizeof text, "failed as n%d;", n->id);
        MUST(weir_kernel_context_fail(context, WEIR_DATA_LOSS, text));
        return WEIR_DATA_LOSS;
    }
    if (n->op == OP_CALL) {
        weir_status status = call_program(b, context, ins, outs);
        if (status != WEIR_OK) return status;
    } else {
        node_apply(n, ins, outs);
    }
    if (n->op == OP_MAKE || n->op == OP_MAP) {
        int64_t dims[1] = {outs[0].n};
        void *data = NULL;
        weir_status status = weir_kernel_context_allocate_output(context, 0, dims, 1, &data);
        if (status != WEIR_OK) return status;
        if (outs[0].n > 0) memcpy(data, outs[0].v, (size_t)outs[0].n * sizeof(float));
        return WEIR_OK;
    }
    if (is_planted("result") && num_out > 0 && n->op == OP_MIX) outs[0].v[WIDTH - 1] += 1;
    for (size_t i = 0; i < num_out; i++) write_view(&out[i], &outs[i]);
    return WEIR_OK;
}

static int32_t compute(void *user, weir_kernel_context *context) {
    body *b = user;
    begin_body(b);
    if (b->node->manner == MAY_BLOCK) doze_us(20 + b->node->work_us);
    weir_status status = compute_into(b, context);
    end_body(b);
    return status;
}

/* ---- Later ------------------------------------------------------------------------------------- */

typedef struct job {
    body *body;
    weir_kernel_context *context;
    weir_completion *done;
    uint64_t when;
    struct job *next;
} job;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    job *first;
    int idle, threads, queued;
    bool ending;
} later = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void finish(job *j) {
    body *b = j->body;
    world *w = b->world;
    weir_status status = compute_into(b, j->context);
    end_body(b);
    watch_progress();
    weir_status said = weir_completion_done(j->done, status, status == WEIR_OK ? NULL : "failed later");
    if (said != WEIR_OK) finding("completion", "weir_completion_done says %s: %s", weir_status_name(said), weir_last_error_message());
    watch_progress();
    atomic_fetch_sub(&w->left, 1);
    free(j);
}

/* weir_completion_done may go on with the run, so whoever calls it counts as busy: there is always one more thread. */
static void *finisher(void *arg) {
    (void)arg;
    pthread_mutex_lock(&later.mutex);
    for (;;) {
        job **due = NULL;
        uint64_t now = clock_ns();
        for (job **j = &later.first; *j != NULL; j = &(*j)->next) {
            if ((*j)->when <= now) due = j; /* the newest that is due */
            if (due == j && (now & 3) != 0) break;
        }
        if (due != NULL) {
            job *j = *due;
            *due = j->next;
            later.queued--;
            pthread_mutex_unlock(&later.mutex);
            finish(j);
            pthread_mutex_lock(&later.mutex);
        } else if (later.first != NULL) {
            pthread_mutex_unlock(&later.mutex);
            doze_us(20);
            pthread_mutex_lock(&later.mutex);
        } else if (later.ending) {
            break;
        } else {
            later.idle++;
            pthread_cond_wait(&later.changed, &later.mutex);
            later.idle--;
        }
    }
    later.threads--;
    pthread_cond_broadcast(&later.changed);
    pthread_mutex_unlock(&later.mutex);
    return NULL;
}

static void add_finisher(void) {
    later.threads++;
    if (start_detached(finisher, NULL) != 0) abort();
}

void later_start(void) {
    pthread_mutex_lock(&later.mutex);
    for (int i = 0; i < 2; i++) add_finisher();
    pthread_mutex_unlock(&later.mutex);
}

void later_stop(void) {
    pthread_mutex_lock(&later.mutex);
    later.ending = true;
    pthread_cond_broadcast(&later.changed);
    while (later.threads > 0) pthread_cond_wait(&later.changed, &later.mutex);
    later.ending = false;
    pthread_mutex_unlock(&later.mutex);
}

static int32_t compute_async(void *user, weir_kernel_context *context, weir_completion *done) {
    body *b = user;
    begin_body(b);
    if (b->node->fail_early) {
        const weir_tensor_view *in = NULL;
        size_t num_in = 0;
        val ins[MAX_INS];
        MUST(weir_kernel_context_get_inputs(context, &in, &num_in));
        for (size_t i = 0; i < num_in; i++) read_view(&in[i], &ins[i]);
        if (node_fails(b->node, ins)) return (int32_t)compute_into(b, context);
    }
    job *j = calloc(1, sizeof *j);
    if (j == NULL) abort();
    *j = (job){.body = b, .context = context, .done = done};
    atomic_fetch_add(&b->world->left, 1);
    if (b->node->manner == LATER_INSIDE) {
        finish(j);
        return WEIR_OK;
    }
    j->when = b->node->manner == LATER_SOON ? 0 : clock_ns() + 30000 + (uint64_t)b->node->factor[0] * 10000;
    if (is_planted("hang") && b->node->manner == LATER_LATE) return WEIR_OK; /* and is never completed */
    pthread_mutex_lock(&later.mutex);
    j->next = later.first;
    later.first = j;
    if (++later.queued > later.idle && later.threads < 256) add_finisher();
    pthread_cond_signal(&later.changed);
    pthread_mutex_unlock(&later.mutex);
    return WEIR_OK;
}

/* ---- Kernels ----------------------------------------------------------------------------------- */

weir_kernel *body_kernel(body *b, weir_engine *engine) {
    const node *n = b->node;
    weir_tensor_desc ins[MAX_INS], outs[MAX_OUTS];
    weir_kernel *kernel = NULL;
    char name[32];
    bool from_open = n->op == OP_MAP || n->op == OP_FOLD;
    type result = n->op == OP_PICK ? PRED : n->op == OP_MAKE || n->op == OP_MAP ? OPEN : VEC;
    for (int i = 0; i < n->num_in; i++) ins[i] = descs[from_open ? OPEN : VEC];
    for (int i = 0; i < n->num_out; i++) outs[i] = descs[result];
    snprintf(name, sizeof name, "k%d", n->id);
    weir_host_kernel_desc desc = {.struct_size = sizeof desc, .name = name, .user = b, .num_inputs = (size_t)n->num_in, .inputs = ins};
    desc.num_outputs = (size_t)n->num_out;
    desc.outputs = outs;
    desc.cost_ns = n->cost_ns;
    if (n->in_place) desc.flags |= WEIR_KERNEL_IN_PLACE;
    if (n->manner == MAY_BLOCK) desc.flags |= WEIR_KERNEL_MAY_BLOCK;
    if (from_open || result == OPEN) desc.flags |= WEIR_KERNEL_DYNAMIC;
    if (n->manner >= LATER_INSIDE && n->manner <= LATER_LATE) desc.compute_async = compute_async;
    else desc.compute = compute;
    MUST(weir_kernel_create_host(engine, &desc, &kernel));
    return kernel;
}
