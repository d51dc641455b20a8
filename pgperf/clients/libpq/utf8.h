/* Validates and writes UTF-8. */
#ifndef PGPERF_UTF8_H
#define PGPERF_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length in bytes of the valid sequence at `at`; 0 if there is none, or if it would extend beyond `end`. */
size_t utf8_sequence(const char *at, const char *end);

/* Is the whole text valid? Overlong forms, surrogates and values above U+10FFFF are invalid. */
bool utf8_valid(const char *text, size_t length);

/* Writes one code point (at most U+10FFFF) as 1 to 4 bytes. Returns the number of bytes. */
size_t utf8_write(char *to, uint32_t code);

#endif
