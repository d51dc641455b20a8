/* The statements of one operation: Statement of pgperf/core/protocol.py, in the forms that libpq can send. */
#ifndef PGPERF_STATEMENT_H
#define PGPERF_STATEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"

/* The message owns the texts, the statement owns the lists. */
struct statement {
    char name[32];        /* of the prepared statement */
    const char *literal;  /* with its arguments as literals */
    const char *numbered; /* with $1, $2, .. */
    const char **values;  /* in text format, NULL for NULL */
    int value_count;
    unsigned *oids; /* the types of the values; 0: the server infers it; as many as values, or none */
    int oid_count;
    int64_t prepared_on; /* the number of the connection; 0: on none */
};

/* Run in order. */
struct statements {
    struct statement *items; /* owned */
    int count;
};

/* Reads a JSON list of statements, named `name`1, `name`2, .., which replaces the current ones.
 * Returns NULL on success; else the expected type, and sets `*field` to the member that has another type. */
const char *statements_read(struct statements *statements, struct json *json, const char *name, const char **field);

void statements_clear(struct statements *statements);

#endif
