#include "reply.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "version.h"

static bool write_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t written = write(fd, at, bytes);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            at += written;
            bytes -= (size_t)written;
        }
    }
    return true;
}

struct line {
    FILE *out;
    char *text;
    size_t bytes;
};

static FILE *begin(struct line *line, const char *type)
{
    line->out = open_memstream(&line->text, &line->bytes);
    if (!line->out)
        failure_no_memory();
    fprintf(line->out, "{\"type\":\"%s\"", type);
    return line->out;
}

static bool finish(struct line *line, int fd)
{
    fputs("}\n", line->out);
    if (fclose(line->out) != 0)
        failure_no_memory();
    bool worked = write_all(fd, line->text, line->bytes);
    free(line->text);
    return worked;
}

static void put_text(FILE *out, const char *name, const char *value)
{
    value = value ? value : "";
    fprintf(out, ",\"%s\":", name);
    json_write_string(out, value, strlen(value));
}

static void put_integer(FILE *out, const char *name, int64_t value)
{
    fprintf(out, ",\"%s\":%" PRId64, name, value);
}

static void put_us(FILE *out, const char *name, double value_us)
{
    if (isnan(value_us))
        fprintf(out, ",\"%s\":null", name);
    else
        fprintf(out, ",\"%s\":%.3f", name, value_us);
}

static void put_cold(FILE *out, const struct cold *cold)
{
    put_us(out, "startup_us", cold->startup_us);
    put_us(out, "connect_us", cold->connect_us);
    put_us(out, "first_us", cold->first_us);
    put_us(out, "second_us", cold->second_us);
    put_us(out, "next_ten_us", cold->next_ten_us);
    put_us(out, "other_first_us", cold->other_first_us);
    put_us(out, "other_second_us", cold->other_second_us);
}

void reply_libpq_version(char *text)
{
    int version = PQlibVersion();
    snprintf(text, 32, "%d.%d", version / 10000, version % 10000);
}

bool reply_ready(int fd, const struct session *session, int64_t rows_per_op, int64_t memory_bytes,
                 const struct cold *cold)
{
    struct line line;
    char libpq[32];
    FILE *out = begin(&line, "ready");
    reply_libpq_version(libpq);
    put_integer(out, "pid", getpid());
    put_integer(out, "backend_pid", PQbackendPID(session->connection));
    fprintf(out, ",\"versions\":{\"libpq\":\"%s\",\"client\":\"%s\"}", libpq, CLIENT_VERSION);
    put_text(out, "server_version", PQparameterStatus(session->connection, "server_version"));
    put_integer(out, "rows_per_op", rows_per_op);
    put_integer(out, "memory_bytes", memory_bytes);
    put_cold(out, cold);
    return finish(&line, fd);
}

bool reply_armed(int fd, int64_t seq)
{
    struct line line;
    put_integer(begin(&line, "armed"), "seq", seq);
    return finish(&line, fd);
}

static bool write_samples(int fd, uint64_t *samples, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        samples[i] = htole64(samples[i]);
    return write_all(fd, samples, (size_t)count * sizeof *samples);
}

static const char *names_of_phases(int phases)
{
    static const char *const names[] = {"", "\"lag\"", "\"connect\",\"close\"", "\"lag\",\"connect\",\"close\""};
    return names[phases];
}

bool reply_slice(int fd, int64_t seq, const struct timing *timing, uint64_t *samples)
{
    struct line line;
    int64_t recorded = timing->ops + timing->skipped;
    FILE *out = begin(&line, "slice_reply");
    put_integer(out, "seq", seq);
    put_integer(out, "ops", timing->ops);
    put_integer(out, "rows", timing->rows);
    put_integer(out, "lead_in_ops", timing->lead_in_ops);
    put_integer(out, "first_ns", (int64_t)timing->first_ns);
    put_integer(out, "user_ns", timing->user_ns);
    put_integer(out, "sys_ns", timing->sys_ns);
    fprintf(out, ",\"capped\":%s", timing->capped ? "true" : "false");
    put_integer(out, "nbytes", recorded * (int64_t)sizeof *samples * (1 + timing->phases));
    put_integer(out, "skipped", timing->skipped);
    put_integer(out, "backlog", timing->backlog);
    fprintf(out, ",\"phases\":[%s]", names_of_phases(timing->phases));
    bool worked = finish(&line, fd) && write_samples(fd, samples, recorded);
    for (int phase = 0; worked && phase < timing->phases; phase++)
        worked = write_samples(fd, timed_phase(samples, phase), recorded);
    return worked;
}

static void put_value(FILE *out, const PGresult *result, int row, int column)
{
    fputs(column ? "," : "", out);
    if (PQgetisnull(result, row, column))
        fputs("null", out);
    else
        json_write_string(out, PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

static void put_columns(FILE *out, const PGresult *result)
{
    for (int column = 0; column < PQnfields(result); column++) {
        const char *name = PQfname(result, column);
        fputs(column ? "," : "", out);
        json_write_string(out, name, strlen(name));
    }
}

bool reply_rows(int fd, const PGresult *result)
{
    struct line line;
    FILE *out = begin(&line, "rows");
    fputs(",\"rows\":[", out);
    for (int row = 0; row < PQntuples(result); row++) {
        fputs(row ? ",[" : "[", out);
        for (int column = 0; column < PQnfields(result); column++)
            put_value(out, result, row, column);
        fputc(']', out);
    }
    fputs("],\"columns\":[", out);
    put_columns(out, result);
    fputc(']', out);
    return finish(&line, fd);
}

bool reply_error(int fd, const char *stage, const struct failure *failure)
{
    struct line line;
    FILE *out = begin(&line, "error");
    put_text(out, "stage", stage);
    put_text(out, "sqlstate", failure->sqlstate);
    put_text(out, "message", failure->message);
    return finish(&line, fd);
}
