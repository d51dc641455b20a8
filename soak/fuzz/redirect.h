/* Included before the client's sources: it redirects system calls to the harness. */
#ifndef PGPERF_REDIRECT_H
#define PGPERF_REDIRECT_H

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

ssize_t harness_read(int fd, void *data, size_t bytes);
ssize_t harness_write(int fd, const void *data, size_t bytes);
int harness_clock_gettime(struct timespec *now);
int harness_clock_nanosleep(const struct timespec *until);
int harness_getrusage(struct rusage *usage);
void *harness_mmap(size_t bytes);
int harness_munmap(void *data, size_t bytes);
int client_main(int argc, char **argv);

#ifndef PGPERF_HARNESS
#define main client_main
#define read(fd, data, bytes) harness_read(fd, data, bytes)
#define write(fd, data, bytes) harness_write(fd, data, bytes)
#define clock_gettime(clock, now) harness_clock_gettime(now)
#define clock_nanosleep(clock, flags, until, remaining) harness_clock_nanosleep(until)
#define getrusage(whose, usage) harness_getrusage(usage)
#define mmap(at, bytes, protection, flags, fd, offset) harness_mmap(bytes)
#define munmap(data, bytes) harness_munmap(data, bytes)
#endif

#endif
