/* The open loop: runs one slice of an operation at a given rate, each timed from its intended start. */
#ifndef PGPERF_OPEN_LOOP_H
#define PGPERF_OPEN_LOOP_H

#include "timed.h"

/* Fills `samples` and its phases, the first of which is the lag, from `begin_ns` on, until the window closes.
 * False if an operation failed; `timing` is then undefined. */
bool open_loop_run(const struct slice *slice, struct operation operation, uint64_t begin_ns, uint64_t *samples,
                   struct timing *timing);

#endif
