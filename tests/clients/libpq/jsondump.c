/* Reads one JSON text per line and answers with one line: the same value written anew, or "refused".
 * Integers that fit 64 bits go through int64_t, other numbers come back as they were written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "line.h"

static void dump(struct json *json, FILE *out);

static void dump_object(struct json *json, FILE *out)
{
    const char *separator = "";
    char *name;
    size_t length;
    fputc('{', out);
    json_enter_object(json);
    while (json_next_member(json, &name, &length)) {
        fputs(separator, out);
        json_write_string(out, name, length);
        fputc(':', out);
        dump(json, out);
        separator = ",";
    }
    fputc('}', out);
}

static void dump_array(struct json *json, FILE *out)
{
    const char *separator = "";
    fputc('[', out);
    json_enter_array(json);
    while (json_next_item(json)) {
        fputs(separator, out);
        dump(json, out);
        separator = ",";
    }
    fputc(']', out);
}

static void dump_scalar(struct json *json, FILE *out)
{
    struct json_value value;
    if (!json_read(json, &value))
        return;
    if (value.kind == JSON_STRING)
        json_write_string(out, value.text, value.length);
    else if (value.kind == JSON_BOOL)
        fputs(value.truth ? "true" : "false", out);
    else if (value.kind == JSON_NULL)
        fputs("null", out);
    else if (value.kind == JSON_INTEGER && value.in_range)
        fprintf(out, "%" PRId64, value.integer);
    else
        fwrite(value.text, 1, value.length, out);
}

static void dump(struct json *json, FILE *out)
{
    enum json_kind kind = json_peek(json);
    if (kind == JSON_OBJECT)
        dump_object(json, out);
    else if (kind == JSON_ARRAY)
        dump_array(json, out);
    else
        dump_scalar(json, out);
}

static void answer(char *line, size_t length)
{
    struct json json;
    char *dumped = NULL;
    size_t size;
    FILE *out = open_memstream(&dumped, &size);
    json_open(&json, line, length);
    dump(&json, out);
    fclose(out);
    puts(json_end(&json) ? dumped : "refused");
    fflush(stdout);
    free(dumped);
}

int main(void)
{
    struct line_reader reader;
    char *line;
    size_t length;
    line_open(&reader, STDIN_FILENO);
    while (line_read(&reader, &line, &length) == LINE_OK) {
        answer(line, length);
        free(line);
    }
    line_close(&reader);
    return 0;
}
