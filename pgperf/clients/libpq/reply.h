/* Messages to the runner: Ready, Armed, SliceReply, Rows and Error of pgperf/core/protocol.py.
 * Every function returns false if the reply cannot be written. */
#ifndef PGPERF_REPLY_H
#define PGPERF_REPLY_H

#include "cold.h"
#include "failure.h"
#include "session.h"
#include "timed.h"

bool reply_ready(int fd, const struct session *session, int64_t rows_per_op, int64_t memory_bytes,
                 const struct cold *cold);
bool reply_armed(int fd, int64_t seq);

/* Sends the message, the durations, and their phases. The samples have the byte order of the protocol afterwards. */
bool reply_slice(int fd, int64_t seq, const struct timing *timing, uint64_t *samples);

/* Sends every value as text. */
bool reply_rows(int fd, const PGresult *result);

/* `stage` is spec, connect, ready, query, slice or reconnect. The failure must be scrubbed already. */
bool reply_error(int fd, const char *stage, const struct failure *failure);

/* Writes the version of the loaded libpq, e.g. "18.6"; `text` must have 32 bytes. */
void reply_libpq_version(char *text);

#endif
