/* Address, login and the statements of one operation: the fields of the Spec message that this client uses. */
#ifndef PGPERF_SPEC_H
#define PGPERF_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "statement.h"

/* An operation that inserts rows at once, all with the values of the spec's one statement. */
struct bulk {
    const char *kind; /* "copy", "batch"; "" for none */
    int64_t rows;
};

struct spec {
    int64_t protocol;
    const char *layer;
    const char *mode;
    const char *connection_mode;
    int64_t workers;
    const char *host;
    int64_t port;
    const char *dbname;
    const char *user;
    const char *password;
    const char *sslmode;
    const char *sslrootcert; /* "": libpq's default */
    const char *certificate_name; /* of the server, where host is the address of a relay to it; "": host */
    const char *require_auth; /* for libpq 16 and newer; "": no demand */
    int64_t connect_timeout_s;
    const char *application_name;
    const char *options; /* settings of the session: "-c name=value" */
    struct statements statements; /* of one operation */
    struct statements other;      /* the second query of the cold phases; may be empty */
    struct bulk bulk;             /* instead of running the statement once */
    int64_t spawned_ns;     /* CLOCK_MONOTONIC; 0 if unknown */
    int64_t runner_pid;     /* 0 if unknown */
    bool cold;              /* measure the cold phases */
    int64_t memory_bytes;   /* that the client may take beyond what it has once connected; 0: no limit */
};

#endif
