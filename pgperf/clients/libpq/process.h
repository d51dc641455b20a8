/* This process and its surroundings: a client that goes with its runner and takes nothing from its environment. */
#ifndef PGPERF_PROCESS_H
#define PGPERF_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* SIGKILL when the thread that started this process ends; no core file (it would hold the password); a closed
 * reply pipe is an error of write, not a signal; sleeps end on time. */
void process_guard(void);

/* Removes every PG* variable, so that libpq connects as it is told and in no other way; sets PGTZ, so that every
 * layer's session has the same time zone. */
void process_clean_environment(void);

/* Keeps stdout for replies under a new descriptor and points stdout at stderr, so that a stray print cannot
 * corrupt a reply. Returns the new descriptor, -1 on failure. */
int process_keep_stdout(void);

/* Is `runner_pid` still the parent? True for 0: no parent was announced. */
bool process_has_parent(int64_t runner_pid);

#endif
