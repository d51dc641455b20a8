#include "line.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_CAPACITY 65536

void line_open(struct line_reader *reader, int fd)
{
    *reader = (struct line_reader){.fd = fd};
}

void line_close(struct line_reader *reader)
{
    free(reader->data);
    reader->data = NULL;
}

static bool make_room(struct line_reader *reader)
{
    if (reader->used < reader->capacity)
        return true;
    size_t capacity = reader->capacity ? reader->capacity * 2 : FIRST_CAPACITY;
    char *data = realloc(reader->data, capacity);
    if (!data)
        return false;
    reader->data = data;
    reader->capacity = capacity;
    return true;
}

/* The number of bytes read; 0 at the end of the stream, or if it cannot be read. */
static size_t fill(struct line_reader *reader)
{
    ssize_t got;
    do
        got = read(reader->fd, reader->data + reader->used, reader->capacity - reader->used);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return 0;
    reader->used += (size_t)got;
    return (size_t)got;
}

/* The number of bytes including the newline; 0 if no newline has arrived. */
static size_t complete(struct line_reader *reader)
{
    if (reader->used == reader->scanned)
        return 0;
    char *found = memchr(reader->data + reader->scanned, '\n', reader->used - reader->scanned);
    reader->scanned = reader->used;
    return found ? (size_t)(found - reader->data) + 1 : 0;
}

static enum line_status take(struct line_reader *reader, size_t bytes, char **line, size_t *length)
{
    char *copy = malloc(bytes);
    if (!copy)
        return LINE_NO_MEMORY;
    memcpy(copy, reader->data, bytes);
    copy[bytes - 1] = '\0';
    reader->used -= bytes;
    reader->scanned = 0;
    memmove(reader->data, reader->data + bytes, reader->used);
    *line = copy;
    *length = bytes - 1;
    return LINE_OK;
}

enum line_status line_read(struct line_reader *reader, char **line, size_t *length)
{
    size_t bytes;
    while ((bytes = complete(reader)) == 0) {
        if (reader->used >= LINE_MAX_BYTES)
            return LINE_TOO_LONG;
        if (!make_room(reader))
            return LINE_NO_MEMORY;
        if (fill(reader) == 0)
            return reader->used ? LINE_CUT : LINE_END;
    }
    return bytes > LINE_MAX_BYTES ? LINE_TOO_LONG : take(reader, bytes, line, length);
}
