/* The smallest unit test: CHECK a condition, count what failed, return CHECK_RESULT from main. */
#ifndef PGPERF_CHECK_H
#define PGPERF_CHECK_H

#include <stdio.h>

static int checks_failed;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            checks_failed++;                                                                                           \
        }                                                                                                              \
    } while (0)

#define CHECK_RESULT (checks_failed ? 1 : 0)

#endif
