/* What the runner may say, decoded: wire.Spec, Slice, Query and Bye. pgperf/core/protocol.py is the definition. */
#ifndef PGPERF_MESSAGE_H
#define PGPERF_MESSAGE_H

#include <stddef.h>

#include "spec.h"
#include "timed.h"

enum message_kind { MESSAGE_SPEC = 1, MESSAGE_SLICE = 2, MESSAGE_QUERY = 4, MESSAGE_BYE = 8 };

struct message {
    enum message_kind kind;
    struct spec spec;   /* its fields, or their defaults */
    struct slice slice; /* likewise */
    const char *sql;    /* a query's text, in `line` */
    char fault[160];    /* why decoding failed */
    char *line;         /* owned: the texts of `spec` lie in it */
};

/* Decodes one line (without newline, with a NUL byte behind it) and takes it over, whatever the outcome.
 * False if it is no message of this protocol that a client may get; `fault` then says why. */
bool message_decode(struct message *message, char *line, size_t length);

/* Frees what the message owns, its spec's texts included. */
void message_clear(struct message *message);

#endif
