/* Reads lines from the runner, up to a maximum length. A line may arrive in several reads. */
#ifndef PGPERF_LINE_H
#define PGPERF_LINE_H

#include <stddef.h>

#define LINE_MAX_BYTES (4u * 1024 * 1024) /* including the newline */

struct line_reader {
    int fd;
    char *data; /* owned */
    size_t used;
    size_t capacity;
    size_t scanned; /* the first bytes that contain no newline */
};

enum line_status {
    LINE_OK,
    LINE_END,      /* the stream ended after a line, or cannot be read: the runner has ended */
    LINE_CUT,      /* the stream ended inside a line */
    LINE_TOO_LONG, /* more than LINE_MAX_BYTES */
    LINE_NO_MEMORY
};

void line_open(struct line_reader *reader, int fd);
void line_close(struct line_reader *reader);

/* Reads the next line, without its newline, ended by a NUL byte. On LINE_OK the caller owns and frees `*line`. */
enum line_status line_read(struct line_reader *reader, char **line, size_t *length);

#endif
