#include "json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

static bool fail(struct json *json, const char *why)
{
    if (!json->fault)
        json->fault = why;
    return false;
}

/* The NUL byte after the text is part of no token, so reading `*at` never leaves the text. */
static char next(struct json *json)
{
    json->at += strspn(json->at, " \t\r\n");
    return *json->at;
}

bool json_open(struct json *json, char *text, size_t length)
{
    *json = (struct json){.at = text};
    if (strlen(text) != length)
        return fail(json, "a NUL byte");
    return utf8_valid(text, length) || fail(json, "not UTF-8");
}

static bool enter(struct json *json, char bracket)
{
    if (json->fault)
        return false;
    if (next(json) != bracket)
        return fail(json, bracket == '{' ? "not an object" : "not a list");
    json->at++;
    json->fresh = true;
    return true;
}

bool json_enter_object(struct json *json)
{
    return enter(json, '{');
}

bool json_enter_array(struct json *json)
{
    return enter(json, '[');
}

/* True if another entry follows; skips the comma before it. */
static bool more(struct json *json, char closing)
{
    bool fresh = json->fresh;
    json->fresh = false;
    if (json->fault)
        return false;
    char c = next(json);
    if (c == closing) {
        json->at++;
        return false;
    }
    if (fresh)
        return true;
    if (c != ',')
        return fail(json, "a comma is missing");
    json->at++;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The value of the \uXXXX escape at `at`, or -1. */
static int32_t unicode_escape(const char *at)
{
    int32_t code = 0;
    if (at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* Decodes one \u escape, or a pair of surrogates. Returns its end; NULL if it is invalid. */
static char *decode_unicode(char *from, char **to)
{
    int32_t code = unicode_escape(from);
    if (code < 0 || (code >= 0xDC00 && code <= 0xDFFF))
        return NULL;
    from += 6;
    if (code >= 0xD800 && code <= 0xDBFF) {
        int32_t low = unicode_escape(from);
        if (low < 0xDC00 || low > 0xDFFF)
            return NULL;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        from += 6;
    }
    *to += utf8_write(*to, (uint32_t)code);
    return from;
}

static char *decode_escape(char *from, char **to)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    if (from[1] == 'u')
        return decode_unicode(from, to);
    const char *found = from[1] ? strchr(names, from[1]) : NULL;
    if (!found)
        return NULL;
    *(*to)++ = values[found - names];
    return from + 2;
}

static bool read_string(struct json *json, char **text, size_t *length)
{
    if (next(json) != '"')
        return fail(json, "a string is missing");
    char *from = json->at + 1;
    char *to = from;
    *text = from;
    while (*from != '"') {
        if ((unsigned char)*from < 0x20)
            return fail(json, "an unterminated string or a control character in one");
        if (*from != '\\')
            *to++ = *from++;
        else if (!(from = decode_escape(from, &to)))
            return fail(json, "an invalid escape");
    }
    *to = '\0';
    *length = (size_t)(to - *text);
    json->at = from + 1;
    return true;
}

static char *past_digits(char *at)
{
    return at + strspn(at, "0123456789");
}

/* The end of the digits of a fraction or exponent at `at`; NULL if there are none. */
static char *past_part(char *at)
{
    char *end = past_digits(at);
    return end > at ? end : NULL;
}

static bool read_number(struct json *json, struct json_value *value)
{
    char *digits = json->at + (*json->at == '-');
    char *end = *digits == '0' ? digits + 1 : past_part(digits);
    value->kind = JSON_INTEGER;
    if (end && *end == '.') {
        value->kind = JSON_REAL;
        end = past_part(end + 1);
    }
    if (end && (*end == 'e' || *end == 'E')) {
        value->kind = JSON_REAL;
        end = past_part(end + 1 + (end[1] == '+' || end[1] == '-'));
    }
    if (!end)
        return fail(json, "not a value");
    value->text = json->at;
    value->length = (size_t)(end - json->at);
    errno = 0;
    value->integer = value->kind == JSON_INTEGER ? strtoll(json->at, NULL, 10) : 0;
    value->in_range = errno == 0;
    json->at = end;
    return true;
}

static bool read_word(struct json *json, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(json->at, word, length) != 0)
        return fail(json, "not a value");
    json->at += length;
    return true;
}

static bool read_value(struct json *json, struct json_value *value, int depth);

static bool skip_container(struct json *json, int depth)
{
    struct json_value ignored;
    char *name;
    size_t length;
    if (depth == JSON_MAX_DEPTH)
        return fail(json, "nested too deeply");
    if (*json->at == '{') {
        json_enter_object(json);
        while (json_next_member(json, &name, &length))
            read_value(json, &ignored, depth + 1);
    } else {
        json_enter_array(json);
        while (json_next_item(json))
            read_value(json, &ignored, depth + 1);
    }
    return !json->fault;
}

static bool read_value(struct json *json, struct json_value *value, int depth)
{
    *value = (struct json_value){.kind = json_peek(json)};
    if (json->fault)
        return false;
    switch (value->kind) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return skip_container(json, depth);
    case JSON_STRING:
        return read_string(json, &value->text, &value->length);
    case JSON_BOOL:
        value->truth = *json->at == 't';
        return read_word(json, value->truth ? "true" : "false");
    case JSON_NULL:
        return read_word(json, "null");
    case JSON_INTEGER:
    case JSON_REAL:
        return read_number(json, value);
    }
    return fail(json, "not a value");
}

bool json_read(struct json *json, struct json_value *value)
{
    return read_value(json, value, 0);
}

enum json_kind json_peek(struct json *json)
{
    if (json->fault)
        return JSON_NULL;
    switch (next(json)) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_INTEGER;
    }
}

bool json_next_member(struct json *json, char **name, size_t *length)
{
    if (!more(json, '}') || !read_string(json, name, length))
        return false;
    if (next(json) != ':')
        return fail(json, "a colon is missing");
    json->at++;
    return true;
}

bool json_next_item(struct json *json)
{
    return more(json, ']');
}

bool json_end(struct json *json)
{
    return !json->fault && (next(json) == '\0' || fail(json, "text after the value"));
}

void json_write_string(FILE *out, const char *text, size_t length)
{
    const char *end = text + length;
    fputc('"', out);
    while (text < end) {
        size_t step = utf8_sequence(text, end);
        unsigned char c = (unsigned char)*text;
        if (step == 0)
            fputs("\\ufffd", out);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else {
            if (c == '"' || c == '\\')
                fputc('\\', out);
            fwrite(text, 1, step, out);
        }
        text += step ? step : 1;
    }
    fputc('"', out);
}
