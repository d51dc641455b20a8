/* line.c and failure.c: pieces of any size, bounds, ends; secrets that go. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "failure.h"
#include "line.h"

/* A pipe that gives `length` bytes of `text`, `piece` at a time, and then ends. */
static int feed(const char *text, size_t length, size_t piece)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    if (fork() == 0) {
        while (length > 0) {
            ssize_t written = write(ends[1], text, length < piece ? length : piece);
            if (written < 0)
                break;
            text += written;
            length -= (size_t)written;
        }
        _exit(0);
    }
    close(ends[1]);
    return ends[0];
}

static enum line_status next(struct line_reader *reader, const char *expected)
{
    char *line;
    size_t length;
    enum line_status status = line_read(reader, &line, &length);
    if (status == LINE_OK) {
        CHECK(expected && length == strlen(expected) && strcmp(line, expected) == 0);
        free(line);
    }
    return status;
}

static void pieces(size_t piece)
{
    struct line_reader reader;
    line_open(&reader, feed("first\n\nthird\ncut", 16, piece));
    CHECK(next(&reader, "first") == LINE_OK && next(&reader, "") == LINE_OK && next(&reader, "third") == LINE_OK);
    CHECK(next(&reader, NULL) == LINE_CUT);
    close(reader.fd);
    line_close(&reader);
}

static enum line_status long_line(size_t length)
{
    struct line_reader reader;
    char *line, *text = malloc(length);
    memset(text, 'x', length);
    text[length - 1] = '\n';
    line_open(&reader, feed(text, length, length));
    enum line_status status = line_read(&reader, &line, &length);
    if (status == LINE_OK)
        free(line);
    close(reader.fd);
    line_close(&reader);
    free(text);
    return status;
}

static void ends(void)
{
    struct line_reader reader;
    line_open(&reader, feed("", 0, 1));
    CHECK(next(&reader, NULL) == LINE_END);
    close(reader.fd);
    CHECK(next(&reader, NULL) == LINE_END);
    line_close(&reader);
}

static int scrubs_to(const char *message, const char *secret, const char *expected)
{
    struct failure failure = {0};
    failure_set(&failure, "42601", message);
    failure_scrub(&failure, "password", secret);
    int same = strcmp(failure.message, expected) == 0 && strcmp(failure.sqlstate, "42601") == 0;
    failure_clear(&failure);
    return same;
}

static int cut_to(const char *message, size_t bytes, const char *expected)
{
    struct failure failure = {0};
    failure_set(&failure, "", message);
    failure_limit(&failure, bytes);
    int same = strcmp(failure.message, expected) == 0;
    failure_clear(&failure);
    return same;
}

static void failures(void)
{
    CHECK(cut_to("abc", 3, "abc") && cut_to("abc", 2, "ab") && cut_to("a\xC3\xA4", 2, "a") && cut_to("abc", 0, ""));
    CHECK(scrubs_to("no \n\n", "", "no") && scrubs_to("no", NULL, "no") && scrubs_to("", "x", ""));
    CHECK(scrubs_to("pw and pw", "pw", "<password> and <password>"));
    CHECK(scrubs_to("aaa", "aa", "<password>a"));
}

int main(void)
{
    pieces(1);
    pieces(3);
    pieces(100);
    ends();
    CHECK(long_line(LINE_MAX_BYTES) == LINE_OK && long_line(LINE_MAX_BYTES + 1) == LINE_TOO_LONG);
    failures();
    while (wait(NULL) > 0)
        continue;
    return CHECK_RESULT;
}
