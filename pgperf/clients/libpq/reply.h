/* What this client says to the runner: wire.Ready, Armed, SliceReply, Rows and Error.
 * Every function returns false when the runner no longer listens. */
#ifndef PGPERF_REPLY_H
#define PGPERF_REPLY_H

#include "cold.h"
#include "failure.h"
#include "session.h"
#include "timed.h"

bool reply_ready(int fd, const struct session *session, int64_t rows_per_op, const struct cold *cold);
bool reply_armed(int fd, int64_t seq);

/* Header and durations. The samples are left in the byte order of the wire, that is: of no further use. */
bool reply_slice(int fd, int64_t seq, const struct timing *timing, uint64_t *samples);

/* Every value as text. */
bool reply_rows(int fd, const PGresult *result);

/* `stage` is spec, connect, ready, query or slice. The failure must be scrubbed already. */
bool reply_error(int fd, const char *stage, const struct failure *failure);

/* libpq's version as it was loaded, e.g. "18.6"; `text` must hold 32 bytes. */
void reply_libpq_version(char *text);

#endif
