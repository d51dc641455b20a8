/* What one operation runs: wire.Statement, in the forms that libpq can send. */
#ifndef PGPERF_STATEMENT_H
#define PGPERF_STATEMENT_H

#include <stdbool.h>

#include "json.h"

/* The texts belong to the message they came in, the lists to the statement. */
struct statement {
    char name[32];        /* of the prepared statement */
    const char *literal;  /* with its arguments written in */
    const char *numbered; /* with $1, $2, .. */
    const char **values;  /* in text format, NULL for NULL */
    int value_count;
    unsigned *oids; /* the types of the values, 0 for the server's choice; as many as values, or none */
    int oid_count;
    bool is_prepared; /* on this connection */
};

/* Run in order. */
struct statements {
    struct statement *items; /* owned */
    int count;
};

/* Reads a JSON list of statements, named `name`1, `name`2, .., in place of those that are there.
 * NULL if that worked; else what was wanted, and `*field` is the member in which it was not found. */
const char *statements_read(struct statements *statements, struct json *json, const char *name, const char **field);

void statements_clear(struct statements *statements);

#endif
