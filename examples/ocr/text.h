/* From the answer of the network that reads to a text.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_TEXT_H
#define OCR_TEXT_H

#include <stddef.h>

/* The characters of the classes from 1 on; class 0 is none. */
struct alphabet {
    const char **characters; /* UTF-8, not ended by anything */
    size_t *lengths;
    size_t count;
};

/* The lines of a text, one character each, which must live longer. Ends the program if memory is short. */
struct alphabet alphabet_of(const char *text, size_t bytes);
void alphabet_free(struct alphabet *alphabet);

/* Takes the most probable class of each step, leaves out repetitions and class 0, and puts the characters into `text`,
 * cut if there is no more room. The result is their mean probability, 0 without any. */
float text_decode(const struct alphabet *alphabet, const float *probabilities, size_t steps, size_t classes, char *text,
                  size_t capacity);

#endif
