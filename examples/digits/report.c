/* Tables, drawings and numbers of the digits demo. Nothing of weir is used here.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "report.h"

#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <string.h>

#include "count_allocations.h"

enum { SHOWN = 4 }; /* misread scans side by side */

uint32_t reading_count_right(const struct reading *reading) {
    uint32_t right = 0;
    for (uint32_t i = 0; i < reading->data->count; i++) {
        right += reading->classes[i] == reading->data->labels[i];
    }
    return right;
}

static void report_confusion(const struct reading *reading) {
    unsigned table[DIGITS_CLASSES][DIGITS_CLASSES] = {{0}};
    for (uint32_t i = 0; i < reading->data->count; i++) {
        table[reading->data->labels[i]][reading->classes[i]]++;
    }
    printf("\n  %-16sread as\n  %-11s", "", "");
    for (int c = 0; c < DIGITS_CLASSES; c++) {
        printf("%5d", c);
    }
    for (int written = 0; written < DIGITS_CLASSES; written++) {
        printf("\n  %-9s%2d", written == 0 ? "written" : "", written);
        for (int c = 0; c < DIGITS_CLASSES; c++) {
            if (table[written][c] > 0) {
                printf("%5u", table[written][c]);
            } else {
                printf("%5s", ".");
            }
        }
    }
    printf("\n");
}

/* One row of pixels, two columns wide each. */
static void draw_row(const float *row) {
    static const char *const blocks[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    static const char *const letters[] = {"  ", "..", "::", "**", "##"};
    const char *const *shades = strcmp(nl_langinfo(CODESET), "UTF-8") == 0 ? blocks : letters;
    for (int x = 0; x < DIGITS_SIDE; x++) {
        printf("%s", shades[(int)(row[x] * 4 / DIGITS_INK + 0.5F)]);
    }
}

static void report_misread(const struct reading *reading) {
    uint32_t shown[SHOWN];
    int count = 0;
    for (uint32_t i = 0; i < reading->data->count && count < SHOWN; i++) {
        if (reading->classes[i] != reading->data->labels[i]) {
            shown[count++] = i;
        }
    }
    printf("\n  %s\n", count > 0 ? "some that were misread, and how sure the network was" : "none was misread");
    for (int y = 0; y < DIGITS_SIDE && count > 0; y++) {
        printf("\n");
        for (int s = 0; s < count; s++) {
            printf("  ");
            draw_row(reading->data->pixels + (size_t)shown[s] * DIGITS_PIXELS + y * DIGITS_SIDE);
        }
    }
    printf("\n");
    for (int s = 0; s < count; s++) {
        const int32_t class = reading->classes[shown[s]];
        const float probability = reading->probabilities[(size_t)shown[s] * DIGITS_CLASSES + class];
        printf("  %d read as %d, %2.0f%%", reading->data->labels[shown[s]], (int)class, 100 * (double)probability);
    }
    printf("\n");
}

void report_reading(const struct reading *reading) {
    report_confusion(reading);
    report_misread(reading);
}

/* One line of the summary; a number of a thousand or more has its digits in groups of three. */
static void line(const char *label, double number) {
    char plain[32], grouped[48];
    int length = snprintf(plain, sizeof plain, number < 1000 ? "%g" : "%.0f", number), at = 0;
    for (int i = 0; i < length; i++) {
        if (number >= 1000 && i > 0 && (length - i) % 3 == 0) {
            grouped[at++] = ' ';
        }
        grouped[at++] = plain[i];
    }
    grouped[at] = '\0';
    printf("  %-52s%12s\n", label, grouped);
}

void report_numbers(const struct reading *reading, const struct timing *timing) {
    const double images = (double)timing->images, runs = (double)timing->runs;
    const uint32_t count = reading->data->count;

    printf("\n");
    printf("  %-52s%10.1f %%\n", "read right", 100.0 * reading_count_right(reading) / count);
    printf("\n");
    line("images per second, with weir_sync_devices", images / timing->done_s);
    line("images per second, without it", images / timing->queued_s);
    printf("    (without it the clock stops when the work is queued, not when it is done)\n\n");
    line("tasks run by this program's pool", (double)timing->pool_calls);
    line("threads started by weir", (double)timing->threads_started);
    line("allocations per run after the first, weir", (double)timing->weir_allocations / runs);
    if (allocations_are_counted()) {
        line("allocations per run after the first, in all", (double)timing->process_allocations / runs);
    } else {
        printf("  %-52s%12s\n", "allocations per run after the first, in all", "not counted");
    }
    printf("\n");
}
