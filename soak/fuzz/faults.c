/* The C client, linked so that one call of its own fails: CLIENT_FAULT=malloc:3 fails the third malloc.
 * With CLIENT_CALLS=FILE it writes the number of invocations of each call to FILE. (The client removes
 * variables that begin with PG, so these names do not.) */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum call { MALLOC, CALLOC, REALLOC, STRNDUP, OPEN_MEMSTREAM, FCLOSE, MMAP, OPEN, FCNTL, DUP2, WRITE, READ, CALLS };

static const char *const names[CALLS] = {"malloc", "calloc", "realloc", "strndup", "open_memstream", "fclose",
                                         "mmap",   "open",   "fcntl",   "dup2",    "write",          "read"};
static int counts[CALLS], fails_at[CALLS], error_number;

/* CLIENT_FAULT=call:number[:EPIPE|EINTR], read before main. */
__attribute__((constructor)) static void read_fault(void)
{
    const char *fault = getenv("CLIENT_FAULT");
    char name[32] = "", error[32] = "";
    int number = 0;
    if (!fault || sscanf(fault, "%31[^:]:%d:%31s", name, &number, error) < 2)
        return;
    for (int i = 0; i < CALLS; i++)
        fails_at[i] = strcmp(names[i], name) == 0 ? number : 0;
    error_number = strcmp(error, "EPIPE") == 0 ? EPIPE : strcmp(error, "EINTR") == 0 ? EINTR : 0;
}

__attribute__((destructor)) static void leave_counts(void)
{
    const char *path = getenv("CLIENT_CALLS");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (int i = 0; file && i < CALLS; i++)
        fprintf(file, "%s %d\n", names[i], counts[i]);
    if (file)
        fclose(file);
}

static bool fails(enum call call, int otherwise)
{
    if (++counts[call] != fails_at[call])
        return false;
    errno = error_number ? error_number : otherwise;
    return true;
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    return fails(MALLOC, ENOMEM) ? NULL : __real_malloc(bytes);
}

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails(CALLOC, ENOMEM) ? NULL : __real_calloc(count, bytes);
}

void *__real_realloc(void *data, size_t bytes);
void *__wrap_realloc(void *data, size_t bytes);
void *__wrap_realloc(void *data, size_t bytes)
{
    return fails(REALLOC, ENOMEM) ? NULL : __real_realloc(data, bytes);
}

char *__real_strndup(const char *text, size_t bytes);
char *__wrap_strndup(const char *text, size_t bytes);
char *__wrap_strndup(const char *text, size_t bytes)
{
    return fails(STRNDUP, ENOMEM) ? NULL : __real_strndup(text, bytes);
}

FILE *__real_open_memstream(char **text, size_t *bytes);
FILE *__wrap_open_memstream(char **text, size_t *bytes);
FILE *__wrap_open_memstream(char **text, size_t *bytes)
{
    return fails(OPEN_MEMSTREAM, ENOMEM) ? NULL : __real_open_memstream(text, bytes);
}

int __real_fclose(FILE *file);
int __wrap_fclose(FILE *file);
int __wrap_fclose(FILE *file)
{
    bool failed = fails(FCLOSE, ENOMEM);
    int result = __real_fclose(file);
    return failed ? EOF : result;
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return fails(MMAP, ENOMEM) ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    return fails(OPEN, EMFILE) ? -1 : __real_open(path, flags);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    int argument = va_arg(rest, int);
    va_end(rest);
    return fails(FCNTL, EMFILE) ? -1 : __real_fcntl(fd, command, argument);
}

int __real_dup2(int from, int to);
int __wrap_dup2(int from, int to);
int __wrap_dup2(int from, int to)
{
    return fails(DUP2, EBUSY) ? -1 : __real_dup2(from, to);
}

ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    return fails(WRITE, EIO) ? -1 : __real_write(fd, data, bytes);
}

ssize_t __real_read(int fd, void *data, size_t bytes);
ssize_t __wrap_read(int fd, void *data, size_t bytes);
ssize_t __wrap_read(int fd, void *data, size_t bytes)
{
    return fails(READ, EIO) ? -1 : __real_read(fd, data, bytes);
}
