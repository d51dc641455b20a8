#include "failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void failure_no_memory(void)
{
    static const char words[] = "pgperf-libpq: out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, words, sizeof words - 1);
    (void)ignored;
    _exit(EXIT_FAILED);
}

static char *must(char *text)
{
    if (!text)
        failure_no_memory();
    return text;
}

void failure_set(struct failure *failure, const char *sqlstate, const char *message)
{
    size_t length = strlen(message);
    while (length > 0 && strchr(" \t\r\n", message[length - 1]))
        length--;
    failure_clear(failure);
    snprintf(failure->sqlstate, sizeof failure->sqlstate, "%s", sqlstate ? sqlstate : "");
    failure->message = must(strndup(message, length));
}

void failure_clear(struct failure *failure)
{
    free(failure->message);
    *failure = (struct failure){0};
}

void failure_limit(struct failure *failure, size_t bytes)
{
    if (!failure->message || strlen(failure->message) <= bytes)
        return;
    while (bytes > 0 && (failure->message[bytes] & 0xC0) == 0x80)
        bytes--;
    failure->message[bytes] = '\0';
}

void failure_name_memory(struct failure *failure)
{
    if (!failure->message || *failure->sqlstate)
        return;
    if (strstr(failure->message, "out of memory") || strstr(failure->message, "cannot allocate memory"))
        failure_set(failure, "", "out of memory");
}

void failure_scrub(struct failure *failure, const char *name, const char *secret)
{
    char *scrubbed = NULL;
    size_t size;
    if (!failure->message || !secret || !*secret)
        return;
    FILE *out = open_memstream(&scrubbed, &size);
    if (!out)
        failure_no_memory();
    const char *rest = failure->message;
    const char *found;
    while ((found = strstr(rest, secret))) {
        fprintf(out, "%.*s<%s>", (int)(found - rest), rest, name);
        rest = found + strlen(secret);
    }
    fputs(rest, out);
    if (fclose(out) != 0)
        failure_no_memory();
    free(failure->message);
    failure->message = must(scrubbed);
}
