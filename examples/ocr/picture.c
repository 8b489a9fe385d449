/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "picture.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void write_text(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '&': fputs("&amp;", file); break;
        default: fputc(*text, file);
        }
    }
}

/* The text lies along the box's first side, as long as that is; upside down where it was. */
static void write_line(FILE *file, const struct line *line) {
    const struct point *c = line->box.corners, begin = c[line->turned ? 1 : 3], end = c[line->turned ? 0 : 2];
    const float length = box_length(&line->box), thickness = box_thickness(&line->box);
    const double x = (double)((end.x - begin.x) / length), y = (double)((end.y - begin.y) / length);
    fprintf(file, "<polygon points=\"");
    for (int i = 0; i < 4; i++) {
        fprintf(file, "%.1f,%.1f ", (double)c[i].x, (double)c[i].y);
    }
    fprintf(file, "\"><title>%.3f</title></polygon>\n", (double)line->confidence);
    fprintf(file, "<text transform=\"matrix(%.4f %.4f %.4f %.4f %.1f %.1f)\" ", x, y, -y, x, (double)begin.x,
            (double)begin.y);
    fprintf(file, "x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\">",
            (double)(0.15F * thickness), (double)(-0.28F * thickness), (double)(0.68F * thickness),
            (double)(length - 0.3F * thickness));
    write_text(file, line->text);
    fprintf(file, "</text>\n");
}

int picture_write_svg(const struct page *page, const struct image *image, const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "%s: cannot be written\n", path);
        return 1;
    }
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
            "<style>polygon{fill:#dcefe1;stroke:#0b6e4f}text{fill:#222}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
            (int)image->width, (int)image->height, (int)image->width, (int)image->height);
    for (size_t i = 0; i < page->num_lines; i++) {
        write_line(file, &page->lines[i]);
    }
    fprintf(file, "</svg>\n");
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        fprintf(stderr, "%s: cannot be written\n", path);
        return 1;
    }
    return 0;
}
