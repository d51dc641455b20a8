/* JSON: a reader that pulls values out of one text, and a writer of strings.
 *
 * Purpose: messages are flat objects of scalars and lists of scalars, so the caller walks them member by member
 * and no tree is built. Anything nested deeper is checked and passed over, to a fixed depth.
 *
 * Ownership: the text stays the caller's. Strings are decoded in place (they never grow) and closed with a NUL
 * byte, so what is handed out points into the text and lives as long as it does.
 *
 * Failure: functions return false and the reader keeps the first fault; it stays failed from then on.
 */
#ifndef PGPERF_JSON_H
#define PGPERF_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_MAX_DEPTH 64

struct json {
    char *at;
    const char *fault; /* static text; NULL while all is well */
    bool fresh;        /* just behind a '[' or '{' */
};

enum json_kind { JSON_NULL, JSON_BOOL, JSON_INTEGER, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_kind kind;
    char *text;      /* strings: decoded, NUL-terminated; numbers: as written, not terminated */
    size_t length;   /* bytes of `text`; a string may hold NUL bytes of its own */
    int64_t integer; /* integers */
    bool in_range;   /* integers: does `integer` hold the value? */
    bool truth;      /* booleans */
};

/* Starts at a text that has a NUL byte at text[length]. False if it holds a NUL earlier, or is not UTF-8. */
bool json_open(struct json *json, char *text, size_t length);

/* Steps into the container that comes next. False if something else comes next. */
bool json_enter_object(struct json *json);
bool json_enter_array(struct json *json);

/* Moves to the next member or item. False at the end of the container, which is then left, and on a fault. */
bool json_next_member(struct json *json, char **name, size_t *length);
bool json_next_item(struct json *json);

/* Reads the value that comes next. An array or object is checked and passed over; only its kind is told. */
bool json_read(struct json *json, struct json_value *value);

/* What the next value will be; on a fault JSON_NULL. */
enum json_kind json_peek(struct json *json);

/* True if nothing but space is left. */
bool json_end(struct json *json);

/* Writes `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void json_write_string(FILE *out, const char *text, size_t length);

#endif
