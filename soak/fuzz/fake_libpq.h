/* A libpq without a server behind it: it connects, prepares and executes as `fake_server` says. */
#ifndef PGPERF_FAKE_LIBPQ_H
#define PGPERF_FAKE_LIBPQ_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

struct fake_server {
    bool refuses;          /* to connect */
    int64_t answers;       /* so many statements, prepared or run, before it goes away */
    int rows;              /* of each result */
    int columns;           /* likewise */
    ExecStatusType status; /* of each result */
    const char *complaint; /* added to its error messages, after the password; any bytes */
    char password[16384];  /* the one it was last connected with */
};

extern struct fake_server fake_server;

#endif
