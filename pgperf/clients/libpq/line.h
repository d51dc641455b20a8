/* Lines from the runner: bounded, however small the pieces they arrive in. */
#ifndef PGPERF_LINE_H
#define PGPERF_LINE_H

#include <stddef.h>

#define LINE_MAX_BYTES (4u * 1024 * 1024) /* the newline counts */

struct line_reader {
    int fd;
    char *data; /* owned */
    size_t used;
    size_t capacity;
    size_t scanned; /* this many bytes are known to hold no newline */
};

enum line_status {
    LINE_OK,
    LINE_END,      /* the stream ended between two lines, or could not be read: the runner is gone */
    LINE_CUT,      /* it ended inside a line */
    LINE_TOO_LONG, /* more than LINE_MAX_BYTES */
    LINE_NO_MEMORY
};

void line_open(struct line_reader *reader, int fd);
void line_close(struct line_reader *reader);

/* The next line without its newline, with a NUL byte behind it. On LINE_OK the caller owns and frees `*line`. */
enum line_status line_read(struct line_reader *reader, char **line, size_t *length);

#endif
