/* Decodes messages of the runner: Spec, Slice, Query and Bye. pgperf/core/protocol.py defines them. */
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
    char *line;         /* owned; the texts of `spec` point into it */
};

/* Decodes one line (without newline, ended by a NUL byte). The message owns the line, even on failure.
 * False if the line is not a message of this protocol for a client; `fault` is then the reason. */
bool message_decode(struct message *message, char *line, size_t length);

/* Frees everything that the message owns, including the texts of its spec. */
void message_clear(struct message *message);

#endif
