/* Decompression of zlib's format (RFC 1950 and 1951).
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef OCR_INFLATE_H
#define OCR_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills `out` exactly. False if the stream is broken, or has more or less. The checksum is not looked at. */
bool inflate_zlib(const uint8_t *in, size_t in_count, uint8_t *out, size_t out_count);

#endif
