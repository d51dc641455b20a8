/* UTF-8: what a valid sequence is. */
#ifndef PGPERF_UTF8_H
#define PGPERF_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the valid sequence that begins at `at`; 0 if none does, or if it would pass `end`. */
size_t utf8_sequence(const char *at, const char *end);

/* Is the whole text valid? Overlong forms, surrogates and values past U+10FFFF are not. */
bool utf8_valid(const char *text, size_t length);

/* Writes one code point (at most U+10FFFF) as 1 to 4 bytes; returns how many. */
size_t utf8_write(char *to, uint32_t code);

#endif
