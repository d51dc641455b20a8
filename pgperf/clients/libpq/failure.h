/* A failure: its SQLSTATE and an error message for the user. */
#ifndef PGPERF_FAILURE_H
#define PGPERF_FAILURE_H

#include <stddef.h>

#define EXIT_FAILED 3 /* after an error message, or without memory for one */

struct failure {
    char sqlstate[6]; /* five characters; "" if the server sent none */
    char *message;    /* owned; NULL until set */
};

/* Copies both texts, without white space at the end of the message. Replaces a failure that is already set. */
void failure_set(struct failure *failure, const char *sqlstate, const char *message);
void failure_clear(struct failure *failure);

/* Cuts the message to at most `bytes` bytes, at a character boundary. */
void failure_limit(struct failure *failure, size_t bytes);

/* Names a lack of memory in the protocol's words, if that is what libpq reports. */
void failure_name_memory(struct failure *failure);

/* Reports on stderr that there is no memory, and ends the process with EXIT_FAILED. */
_Noreturn void failure_no_memory(void);

/* Replaces every occurrence of `secret` in the message by <name>. Skips an empty secret. */
void failure_scrub(struct failure *failure, const char *name, const char *secret);

#endif
