/* The cold phases: the time of start-up, of connecting and of the first queries. */
#ifndef PGPERF_COLD_H
#define PGPERF_COLD_H

#include "session.h"

/* Microseconds; NAN if not measured. In prepared mode, the first run of a statement prepares it. */
struct cold {
    double startup_us; /* from the spawn until the client is ready to connect */
    double connect_us;
    double first_us;
    double second_us;
    double next_ten_us; /* total of ten operations; not measured after a slow second one */
    double other_first_us;
    double other_second_us;
};

/* Nothing measured. */
struct cold cold_none(void);

/* Connects like session_connect, and sets startup_us and connect_us. */
bool cold_connect(struct cold *cold, struct session *session, const struct spec *spec, struct failure *failure);

/* Runs the spec's statements twelve times, or twice where they are slow, and the statements of the other query, if
   any, twice. */
bool cold_run(struct cold *cold, struct session *session, struct spec *spec, struct failure *failure);

#endif
