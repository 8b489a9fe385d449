/* One program on several ranks: it trains a network together, and hears clips in a pipeline.
 *
 *     mpirun -n 4 ranks [--epochs N] [--kill RANK] [--trace NAME]
 *
 * Training (training.c, step.c): each rank has a part of every batch, and a step is one weir graph, in which the sums
 * of gradients over all ranks overlap with the products. Then rank 0 trains alone, on the same batches, to compare.
 * Pipeline (pipeline.c): three ranks have a part of the voice example's network each, and pass eight clips on. Both
 * networks are small: on one machine messages take longer than what they save, but all is done as for large ones.
 *
 * Ends with status 1 if the ranks' weights are not the same bits, if their network reads fewer or more scans right than
 * the other one by over a per cent of all, or if the pipeline hears other bits than one rank. With --kill that rank
 * dies in the middle of training: the others go on without it if MPI can (Open MPI 5: mpirun --with-ft ulfm). Only
 * training goes on; whoever loses a rank elsewhere ends. With --trace rank 0 records an epoch more, in NAME.html and
 * NAME.perfetto.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/adapters/mpi.h>

#include "dataset.h"
#include "pipeline.h"
#include "tracing.h"
#include "training.h"
#include "weir_check.h"

#ifndef DIGITS_DATA_DIR
#define DIGITS_DATA_DIR "../digits"
#endif

static const double MOST_DIFFERENCE = 1.0; /* per cent */

struct options {
    int epochs;
    int kill; /* a rank, or -1 */
    const char *trace;
};

/* How a training went. */
struct outcome {
    double seconds;
    int64_t steps;
    double accuracy; /* per cent */
};

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static weir_comm_info comm_info(const weir_comm *comm) {
    weir_comm_info info = {.struct_size = sizeof info};
    CHECK(weir_comm_get_info(comm, &info));
    return info;
}

/* The pixels from 0 to 1. */
static void scale(struct dataset *data) {
    for (size_t i = 0; i < (size_t)data->count * DIGITS_PIXELS; i++) {
        data->pixels[i] /= DIGITS_INK;
    }
}

static int train(struct training *training, const struct options *options, bool dies, const struct dataset *held_out,
                 struct outcome *outcome) {
    const double began = now_s();
    if (training_run(training, options->epochs, dies) != 0) {
        return -1;
    }
    outcome->seconds = now_s() - began;
    outcome->steps = training->step;
    outcome->accuracy = 100.0 * training_count_right(training, held_out) / held_out->count;
    return 0;
}

/* The same training by this rank alone: its communicator is one of a single rank, and needs no MPI. */
static int train_alone(weir_engine *engine, const struct options *options, const struct dataset *data,
                       const struct dataset *held_out, struct outcome *outcome) {
    struct training training;
    weir_comm *alone;
    CHECK(weir_comm_create_local(1, NULL, &alone));
    training_begin(&training, engine, alone, data);
    const int status = train(&training, options, false, held_out, outcome);
    training_end(&training);
    weir_comm_release(alone);
    return status;
}

static void line(const char *label, const char *format, double together, double alone) {
    char columns[2][24];
    snprintf(columns[0], sizeof columns[0], format, together);
    snprintf(columns[1], sizeof columns[1], format, alone);
    printf("  %-44s%16s%16s\n", label, columns[0], columns[1]);
}

static void print_training(const struct outcome *together, const struct outcome *alone, int ranks, bool same) {
    char column[32];
    snprintf(column, sizeof column, "%d ranks", ranks);
    printf("\n  %-44s%16s%16s\n", "", column, "1 rank alone");
    line("read right of the scans held out, per cent", "%.1f", together->accuracy, alone->accuracy);
    line("training, s", "%.2f", together->seconds, alone->seconds);
    line("a step, us", "%.0f", together->seconds / (double)together->steps * 1e6,
         alone->seconds / (double)alone->steps * 1e6);
    printf("  weights of all ranks: %s\n", same ? "the same bits" : "DIFFERENT BITS");
}

static int training_verdict(const struct outcome *together, const struct outcome *alone, bool same) {
    const double difference = together->accuracy - alone->accuracy;
    int status = 0;
    fflush(stdout);
    if (!same) {
        fprintf(stderr, "FAILED: the ranks have different weights\n");
        status = 1;
    }
    if (difference > MOST_DIFFERENCE || difference < -MOST_DIFFERENCE) {
        fprintf(stderr, "FAILED: training on several ranks differs by %.1f per cent\n", difference);
        status = 1;
    }
    return status;
}

/* An epoch more on all ranks, which rank 0 records. */
static int trace_epoch(struct training *training, const struct options *options) {
    weir_trace *trace = training->rank == 0 ? tracing_start() : NULL;
    if (training_run(training, options->epochs + 1, false) != 0) {
        weir_trace_release(trace);
        return -1;
    }
    return trace != NULL ? tracing_save(trace, options->trace) : 0;
}

/* Trains on all ranks, and on rank 0 alone. 0 or 1 is the verdict, with which the ranks go on; below 0 they cannot. */
static int train_and_compare(struct training *training, const struct options *options, bool dies,
                             const struct dataset *held_out) {
    struct outcome together, alone;
    if (train(training, options, dies, held_out, &together) != 0 ||
        (training->rank == 0 && train_alone(training->engine, options, training->data, held_out, &alone) != 0)) {
        return -1;
    }
    const bool same = training_is_same(training); /* where the others wait for rank 0 */
    if (training->rank != 0) {
        return 0;
    }
    print_training(&together, &alone, training->size, same);
    return training_verdict(&together, &alone, same);
}

/* Three of the ranks hear clips. Returns as above. */
static int hear_in_pipeline(weir_engine *engine, weir_comm *comm) {
    const weir_comm_info info = comm_info(comm);
    struct pipeline_result result;
    weir_comm *three;
    CHECK(weir_comm_split(comm, info.size >= PIPELINE_RANKS && info.rank < PIPELINE_RANKS ? 0 : -1, 0, NULL, &three));
    int status = three != NULL ? pipeline_run(engine, three, &result) : 0;
    weir_comm_release(three);
    if (status != 0 || info.rank != 0) {
        return status;
    }
    if (three == NULL) {
        printf("\n  a pipeline needs %d ranks\n\n", PIPELINE_RANKS);
        return 0;
    }
    printf("\n  pipeline: speech in %d clips of 2 s, the network in three parts on three ranks\n\n", PIPELINE_CLIPS);
    line("a frame of a clip, us", "%.1f", result.seconds / (PIPELINE_FRAMES * PIPELINE_CLIPS) * 1e6,
         result.alone_seconds / (PIPELINE_FRAMES * PIPELINE_CLIPS) * 1e6);
    printf("  probabilities: %s\n\n", result.same ? "the bits of one rank" : "OTHER BITS than of one rank");
    fflush(stdout);
    if (!result.same) {
        fprintf(stderr, "FAILED: the pipeline has heard something else than one rank\n");
    }
    return !result.same;
}

static int parse_number(const char *text, long least, int *out) {
    char *end;
    const long number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < least || number > 1000000) {
        return -1;
    }
    *out = (int)number;
    return 0;
}

static int parse(struct options *options, int argc, char **argv) {
    int status = argc % 2 == 1 ? 0 : -1;
    for (int i = 1; i + 1 < argc && status == 0; i += 2) {
        if (strcmp(argv[i], "--epochs") == 0) {
            status = parse_number(argv[i + 1], 1, &options->epochs);
        } else if (strcmp(argv[i], "--kill") == 0) {
            status = parse_number(argv[i + 1], 0, &options->kill);
        } else if (strcmp(argv[i], "--trace") == 0) {
            options->trace = argv[i + 1];
        } else {
            status = -1;
        }
    }
    return status;
}

/* What cannot be done is said by rank 0, and done by none. */
static int refuse(const struct options *options, const weir_comm_info *info, int parsed) {
    const bool says = info->rank == 0;
    if (parsed != 0 || options->kill >= info->size) {
        if (says) fprintf(stderr, "usage: mpirun -n RANKS ranks [--epochs N] [--kill RANK] [--trace NAME]\n");
        return 2;
    }
    if (info->size > STEP_BATCH) {
        if (says) fprintf(stderr, "a batch of %d scans cannot be divided among %d ranks\n", STEP_BATCH, info->size);
        return 2;
    }
    if (options->kill >= 0 && !info->recoverable) {
        if (says) {
            fprintf(stderr, "--kill: %s cannot go on when a rank dies, and would end them all. Open MPI 5 can: mpirun "
                            "--with-ft ulfm\n", info->transport);
        }
        return 1;
    }
    return 0;
}

/* Until all ranks are here. Those that are through may leave before the others know, who take it for a death: nothing
 * depends on that any more. */
static void wait_for_all(weir_engine *engine, weir_comm *comm) {
    const weir_communication barrier = {.struct_size = sizeof barrier, .op = WEIR_COMM_BARRIER};
    weir_kernel *kernel;
    weir_stream *stream;
    CHECK(weir_kernel_create_communication(engine, comm, &barrier, NULL, &kernel));
    CHECK(weir_stream_create(engine, WEIR_STREAM_DEFAULT, NULL, &stream));
    weir_status status = weir_enqueue(stream, kernel, NULL, 0, NULL, 0);
    if (status == WEIR_OK) {
        status = weir_stream_synchronize(stream, WEIR_TIMEOUT_INFINITE);
    }
    (void)status;
    weir_stream_release(stream);
    weir_kernel_release(kernel);
}

/* All that is done, whatever the verdict on what was done before: every rank must take part in every step. */
static int run(weir_comm *comm, const struct options *options, const struct dataset *data,
               const struct dataset *held_out, bool *out_died) {
    const weir_comm_info info = comm_info(comm);
    struct training training;
    weir_engine *engine; /* without a pool: a rank is one thread, and computes while its messages are under way */
    if (info.rank == 0) {
        printf("\n  weir %s over %s: %d ranks train a network of %d layers, %d times, with batches of %d scans\n",
               weir_version_string(), info.transport, info.size, STEP_LAYERS, options->epochs, STEP_BATCH);
        fflush(stdout);
    }
    CHECK(weir_engine_create(WEIR_ENGINE_CPU, 0, NULL, &engine));
    training_begin(&training, engine, comm, data);
    int status = train_and_compare(&training, options, info.rank == options->kill, held_out);
    if (status >= 0 && options->trace != NULL) {
        status |= trace_epoch(&training, options);
    }
    if (status >= 0) {
        status |= hear_in_pipeline(engine, training.comm);
    }
    *out_died = training.size < info.size;
    if (status >= 0 && *out_died) {
        wait_for_all(engine, training.comm);
    }
    training_end(&training);
    weir_engine_release(engine);
    return status;
}

static int load_and_run(weir_comm *comm, const struct options *options, bool *out_died) {
    struct dataset data, held_out;
    if (dataset_load_training(&data, DIGITS_DATA_DIR) != 0) {
        return -1;
    }
    if (dataset_load(&held_out, DIGITS_DATA_DIR) != 0) {
        dataset_free(&data);
        return -1;
    }
    scale(&data);
    scale(&held_out);
    const int status = run(comm, options, &data, &held_out, out_died);
    dataset_free(&held_out);
    dataset_free(&data);
    return status;
}

int main(int argc, char **argv) {
    const weir_comm_options comm_options = {
        .struct_size = sizeof comm_options, .name = "ranks", .limit_ns = RANKS_LIMIT_NS};
    struct options options = {.epochs = 30, .kill = -1};
    bool died = false; /* a rank, not all of them */
    weir_comm *comm;
    int threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* weir makes do with less: weir/adapters/mpi.h */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* a failure is weir's to tell */
    CHECK(weir_mpi_comm_create(MPI_COMM_WORLD, &comm_options, &comm));
    const weir_comm_info info = comm_info(comm);
    int status = refuse(&options, &info, parse(&options, argc, argv));
    if (status == 0) {
        status = load_and_run(comm, &options, &died);
    }
    weir_comm_release(comm);
    /* MPI_Finalize may wait for ranks that are dead, and for operations that were given up. */
    if (status < 0) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (died) {
        fflush(NULL);
        _Exit(status);
    }
    MPI_Finalize();
    return status;
}
