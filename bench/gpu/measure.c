/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench.h"

#include <stdarg.h>
#include <time.h>

enum { MOST_ROUNDS = 256 };

int quick = 0, wrong = 0;

double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *values, int count, double part) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    int at = (int)(part * count);
    return values[at < count ? at : count - 1];
}

double median(double *values, int count) {
    return quantile(values, count, 0.5);
}

void table(const char *title) {
    printf("\n## %s\n\n", title);
    printf("| what | raw driver, ns | weir, ns | weir - raw, ns | weir / raw |\n|---|---|---|---|---|\n");
}

void compare(const char *what, timed_fn raw_side, timed_fn weir_side, void *with, int rounds) {
    double raw_ns[MOST_ROUNDS], weir_ns[MOST_ROUNDS], ratios[MOST_ROUNDS];
    if (quick && rounds > 3) rounds = 3;
    if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    raw_side(with);
    weir_side(with);
    for (int round = 0; round < rounds; round++) {
        /* Who goes first changes from round to round. */
        if (round % 2 == 0) raw_ns[round] = raw_side(with);
        weir_ns[round] = weir_side(with);
        if (round % 2 != 0) raw_ns[round] = raw_side(with);
        ratios[round] = weir_ns[round] / raw_ns[round];
    }
    const double raw_median = median(raw_ns, rounds), weir_median = median(weir_ns, rounds);
    printf("| %s | %.0f | %.0f | %.0f | %.3f |\n", what, raw_median, weir_median, weir_median - raw_median,
           median(ratios, rounds));
    fflush(stdout);
}

double alone(timed_fn side, void *with, int rounds) {
    double took[MOST_ROUNDS];
    if (quick && rounds > 3) rounds = 3;
    if (rounds > MOST_ROUNDS) rounds = MOST_ROUNDS;
    side(with);
    for (int round = 0; round < rounds; round++) took[round] = side(with);
    return median(took, rounds);
}

void answer(int question, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("<!-- answer %d: ", question);
    vprintf(format, arguments);
    printf(" -->\n");
    va_end(arguments);
    fflush(stdout);
}
