/* A libpq without a server: it connects, prepares and executes as `fake_server` says. */
#ifndef PGPERF_FAKE_LIBPQ_H
#define PGPERF_FAKE_LIBPQ_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

struct fake_server {
    bool refuses;          /* refuses connections */
    int64_t answers;       /* statements, prepared or run, until it closes the connection */
    int rows;              /* of each result */
    int columns;           /* of each result */
    ExecStatusType status; /* of each result */
    const char *complaint; /* appended to error messages, after the password; any bytes */
    char password[16384];  /* of the last connection */
};

extern struct fake_server fake_server;

#endif
