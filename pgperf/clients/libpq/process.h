/* The client process: it ends with its runner and ignores the environment. */
#ifndef PGPERF_PROCESS_H
#define PGPERF_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets up the process: it gets SIGKILL when the thread that started it ends; it writes no core file, which would
 * contain the password; a closed reply pipe is an error of write, not a signal; sleeps end on time. */
void process_guard(void);

/* Removes every PG* variable, so that only the spec decides how libpq connects. Sets PGTZ, so that the sessions
 * of all layers have the same time zone. */
void process_clean_environment(void);

/* Duplicates stdout for replies and redirects stdout to stderr, so that a stray print cannot corrupt a reply.
 * Returns the new descriptor, -1 on failure. */
int process_keep_stdout(void);

/* Lets the process take so many bytes of data beyond what it has now. Returns the limit in bytes that the kernel
 * enforces, 0 if there is none. */
int64_t process_limit_memory(int64_t more_bytes);

/* Is `runner_pid` still the parent? True for 0, which means that the spec names no parent. */
bool process_has_parent(int64_t runner_pid);

#endif
