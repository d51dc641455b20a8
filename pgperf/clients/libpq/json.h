/* JSON: a reader that pulls values out of one text, and a writer of strings.
 *
 * Purpose: messages are flat objects of scalars and lists of scalars. The caller reads them member by member,
 * without a tree. The reader checks and skips deeper values, up to a fixed depth.
 *
 * Ownership: the caller owns the text. The reader decodes strings in place (they never grow) and ends them with
 * a NUL byte. Returned pointers point into the text and are valid as long as the text is.
 *
 * Failure: functions return false. The reader keeps the first fault, and every later call fails.
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
    const char *fault; /* static text; NULL without a fault */
    bool fresh;        /* directly after a '[' or '{' */
};

enum json_kind { JSON_NULL, JSON_BOOL, JSON_INTEGER, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_kind kind;
    char *text;      /* strings: decoded, NUL-terminated; numbers: as written, not terminated */
    size_t length;   /* bytes of `text`; a string may contain NUL bytes */
    int64_t integer; /* integers */
    bool in_range;   /* integers: does `integer` hold the value? */
    bool truth;      /* booleans */
};

/* Starts reading. text[length] must be a NUL byte. False if the text contains a NUL byte or is not UTF-8. */
bool json_open(struct json *json, char *text, size_t length);

/* Enters the next value, which must be an object or a list. False if it is not. */
bool json_enter_object(struct json *json);
bool json_enter_array(struct json *json);

/* Moves to the next member or item. False at the end of the container, which it leaves, and on a fault. */
bool json_next_member(struct json *json, char **name, size_t *length);
bool json_next_item(struct json *json);

/* Reads the next value. An array or object is checked and skipped; only its kind is set. */
bool json_read(struct json *json, struct json_value *value);

/* The kind of the next value; JSON_NULL on a fault. */
enum json_kind json_peek(struct json *json);

/* True if only white space is left. */
bool json_end(struct json *json);

/* Writes `text` as a quoted JSON string. Bytes that are not UTF-8 become U+FFFD. */
void json_write_string(FILE *out, const char *text, size_t length);

#endif
