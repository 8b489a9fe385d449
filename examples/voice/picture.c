/* Two drawings of the same: blocks of text, and SVG.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "picture.h"

#include <langinfo.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 72, ROWS = 4, STEPS = 8, WIDTH = 960, HEIGHT = 220, LEFT = 44, TOP = 30, RIGHT = 940, BOTTOM = 185 };

static double seconds(const struct hearing *hearing) {
    return (double)hearing->audio->count / hearing->audio->rate;
}

/* ---- Text ---- */

/* The most probable frame of a column. Several frames share one, or one frame has several. */
static float column_height(const struct hearing *hearing, int column) {
    size_t frame = (size_t)column * hearing->frames / COLUMNS;
    const size_t next = (size_t)(column + 1) * hearing->frames / COLUMNS;
    float height = hearing->probabilities[frame];
    for (frame++; frame < next; frame++) {
        height = hearing->probabilities[frame] > height ? hearing->probabilities[frame] : height;
    }
    return height;
}

static bool is_speech(const struct hearing *hearing, double sample) {
    for (size_t i = 0; i < hearing->num_segments; i++) {
        if (sample >= (double)hearing->segments[i].begin && sample < (double)hearing->segments[i].end) {
            return true;
        }
    }
    return false;
}

static void print_axis(const struct hearing *hearing) {
    char axis[COLUMNS + 24];
    const double length = seconds(hearing);
    const int step = length > 60 ? 10 : length > 20 ? 5 : 1;
    memset(axis, ' ', sizeof axis);
    int end = 0;
    for (int s = 0; s <= length; s += step) {
        const int at = (int)(s / length * COLUMNS);
        if (at < end || at >= COLUMNS) {
            continue;
        }
        char label[16];
        const int size = snprintf(label, sizeof label, "%d s ", s);
        memcpy(axis + at, label, (size_t)size);
        end = at + size;
    }
    printf("       %.*s\n", end > 0 ? end - 1 : 0, axis);
}

void picture_print(const struct hearing *hearing) {
    static const char *const blocks[STEPS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[STEPS + 1] = {" ", ".", ".", ".", ":", ":", ":", "|", "|"};
    const bool utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    const char *const *marks = utf8 ? blocks : letters;
    const double samples = (double)hearing->audio->count;
    for (int row = ROWS - 1; row >= 0; row--) {
        printf("%5s  ", row == ROWS - 1 ? "1" : row == 0 ? "0" : "");
        for (int column = 0; column < COLUMNS; column++) {
            const int height = (int)(column_height(hearing, column) * ROWS * STEPS + 0.5F) - row * STEPS;
            printf("%s", marks[height < 0 ? 0 : height > STEPS ? STEPS : height]);
        }
        printf("\n");
    }
    printf("%5s  ", "");
    for (int column = 0; column < COLUMNS; column++) {
        const bool speech = is_speech(hearing, (column + 0.5) / COLUMNS * samples);
        printf("%s", speech ? (utf8 ? "━" : "=") : (utf8 ? "·" : "."));
    }
    printf("\n");
    print_axis(hearing);
}

/* ---- SVG ---- */

static double x_of(const struct hearing *hearing, double sample) {
    return LEFT + (RIGHT - LEFT) * sample / (double)hearing->audio->count;
}

static double y_of(double probability) {
    return BOTTOM - (BOTTOM - TOP) * probability;
}

/* The name with what XML reads in another way left out. */
static void write_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        fputc(strchr("<>&", *text) == NULL ? *text : '_', file);
    }
}

/* An outline of the loudness: least and greatest sample of every pixel. */
static void write_sound(FILE *file, const struct hearing *hearing) {
    const size_t count = hearing->audio->count;
    fprintf(file, "<path class=\"sound\" d=\"");
    for (int pixel = 0; pixel < RIGHT - LEFT; pixel++) {
        const size_t begin = count * (size_t)pixel / (RIGHT - LEFT), end = count * (size_t)(pixel + 1) / (RIGHT - LEFT);
        float low = 0, high = 0;
        for (size_t i = begin; i < end; i++) {
            const float sample = hearing->audio->samples[i];
            low = sample < low ? sample : low;
            high = sample > high ? sample : high;
        }
        fprintf(file, "M%d %.1fV%.1f", LEFT + pixel, y_of(0.5 + (double)high / 2), y_of(0.5 + (double)low / 2) + 0.5);
    }
    fprintf(file, "\"/>\n");
}

static void write_axes(FILE *file, const struct hearing *hearing) {
    const double length = seconds(hearing);
    const int step = length > 60 ? 10 : length > 20 ? 5 : 1;
    for (int i = 0; i <= 2; i++) {
        fprintf(file, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y_of(i / 2.0), RIGHT, LEFT - 8, y_of(i / 2.0) + 4, i / 2.0);
    }
    for (int s = 0; s <= length; s += step) {
        fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d s</text>\n",
                LEFT + (RIGHT - LEFT) * s / length, BOTTOM + 22, s);
    }
}

static void write_line(FILE *file, const struct hearing *hearing) {
    const double frame = hearing->audio->rate * 0.032;
    fprintf(file, "<polyline class=\"line\" points=\"");
    for (size_t i = 0; i < hearing->frames; i++) {
        const double middle = ((double)i + 0.5) * frame, last = (double)hearing->audio->count;
        fprintf(file, "%.1f,%.1f ", x_of(hearing, middle < last ? middle : last), y_of((double)hearing->probabilities[i]));
    }
    fprintf(file, "\"/>\n");
}

int picture_write_svg(const struct hearing *hearing, const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "%s: cannot be written\n", path);
        return 1;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>text{fill:#555}.sound{stroke:#b9c4cf}.grid{stroke:#ddd}.speech{fill:#dcefe1}"
            ".line{fill:none;stroke:#0b6e4f;stroke-width:2}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"18\">Probability of speech: ",
            WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    write_text(file, hearing->name);
    fprintf(file, "</text>\n");
    for (size_t i = 0; i < hearing->num_segments; i++) {
        const double begin = x_of(hearing, (double)hearing->segments[i].begin);
        fprintf(file, "<rect class=\"speech\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n", begin, TOP,
                x_of(hearing, (double)hearing->segments[i].end) - begin, BOTTOM - TOP);
    }
    write_axes(file, hearing);
    write_sound(file, hearing);
    write_line(file, hearing);
    fprintf(file, "</svg>\n");
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        fprintf(stderr, "%s: cannot be written\n", path);
        return 1;
    }
    return 0;
}
