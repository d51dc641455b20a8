/* Many rows at once: COPY, or a pipeline of INSERTs. */
#ifndef PGPERF_BULK_H
#define PGPERF_BULK_H

#include "session.h"

/* NULL if the session can run the spec's bulk operation, else the reason. */
const char *bulk_refusal(const struct session *session, const struct spec *spec);

/* Runs the operation of the spec once: its bulk operation, or else its statements. */
bool bulk_or_statements(struct session *session, struct spec *spec, int64_t *rows, struct failure *failure);

/* Inserts the spec's rows and adds their number to `*rows`. Either all rows are inserted, or none. */
bool bulk_run(struct session *session, struct spec *spec, int64_t *rows, struct failure *failure);

#endif
