/* Why something did not work, in words for the user. */
#ifndef PGPERF_FAILURE_H
#define PGPERF_FAILURE_H

#include <stddef.h>

#define EXIT_FAILED 3 /* after an error message, or where there is no memory for one */

struct failure {
    char sqlstate[6]; /* five characters, or "" where the server did not say */
    char *message;    /* owned; NULL until set */
};

/* Keeps copies. White space at the message's end is dropped; a failure that is already set is replaced. */
void failure_set(struct failure *failure, const char *sqlstate, const char *message);
void failure_clear(struct failure *failure);

/* Cuts the message to at most so many bytes, between two characters. */
void failure_limit(struct failure *failure, size_t bytes);

/* Without memory there are no words to keep: says so on stderr and ends the process with EXIT_FAILED. */
_Noreturn void failure_no_memory(void);

/* The message with every occurrence of `secret` replaced by <name>; an empty secret is skipped. */
void failure_scrub(struct failure *failure, const char *name, const char *secret);

#endif
