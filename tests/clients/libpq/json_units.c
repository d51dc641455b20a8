/* json.c and utf8.c: what is read, what is refused, what is written. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "json.h"
#include "utf8.h"

/* What strings point into until the next text; an allocation of its own, so that ASan sees a byte too far. */
static char *copy;

/* Reads `text` as one value; its kind is -1 if the reader refuses. */
static struct json_value read_text(const char *text, size_t length)
{
    struct json json;
    struct json_value value;
    free(copy);
    copy = malloc(length + 1);
    memcpy(copy, text, length + 1);
    if (!json_open(&json, copy, length) || !json_read(&json, &value) || !json_end(&json))
        value.kind = (enum json_kind)-1;
    if (value.kind == (enum json_kind)-1)
        CHECK(json.fault != NULL);
    return value;
}

static struct json_value value_of(const char *text)
{
    return read_text(text, strlen(text));
}

static int refused(const char *text)
{
    return value_of(text).kind == (enum json_kind)-1;
}

static int is_string(const char *text, const char *expected)
{
    struct json_value value = value_of(text);
    return value.kind == JSON_STRING && value.length == strlen(expected) && strcmp(value.text, expected) == 0;
}

static int is_integer(const char *text, int64_t expected)
{
    struct json_value value = value_of(text);
    return value.kind == JSON_INTEGER && value.in_range && value.integer == expected;
}

static void scalars(void)
{
    CHECK(value_of(" null ").kind == JSON_NULL);
    CHECK(value_of("true").truth && !value_of("false").truth);
    CHECK(is_integer("0", 0) && is_integer("-0", 0) && is_integer("42", 42));
    CHECK(is_integer("9223372036854775807", INT64_MAX) && is_integer("-9223372036854775808", INT64_MIN));
    CHECK(!value_of("9223372036854775808").in_range && !value_of("-99999999999999999999999").in_range);
    CHECK(value_of("1.5").kind == JSON_REAL && value_of("-1e9").kind == JSON_REAL);
    CHECK(value_of("0E+1").kind == JSON_REAL);
}

static void bad_scalars(void)
{
    static const char *const bad[] = {"",     " ",    "nul",  "tru",   "True", "+1",  "01",        "-",  ".5", "1.",
                                      "1e",   "1e+",  "0x1",  "NaN",   "-Infinity",   "Infinity", "1 2", "'a'", "a"};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(refused(bad[i]));
}

static void strings(void)
{
    CHECK(is_string("\"\"", "") && is_string("\"abc\"", "abc"));
    CHECK(is_string("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"));
    CHECK(is_string("\"\\u0041\\u00e4\\u20AC\\ud83d\\ude00\"", "A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"));
    CHECK(is_string("\"\xC3\xA4 \xF0\x9F\x98\x80\"", "\xC3\xA4 \xF0\x9F\x98\x80"));
    CHECK(value_of("\"a\\u0000b\"").length == 3);
}

static void bad_strings(void)
{
    static const char *const bad[] = {"\"",           "\"a",          "\"\\",       "\"\\x\"",    "\"\\u12\"",
                                      "\"\\u12g4\"",  "\"\\ud83d\"",  "\"\\ude00\"", "\"\\ud83dx\"", "\"\\ud83d\\u0041\"",
                                      "\"\\u\"",      "\"\\ud83d\\",  "\"\n\"",     "\"\x01\"",   "\"\xFF\"",
                                      "\"\xC3\"",     "\"\xC0\xAF\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\""};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(refused(bad[i]));
    CHECK(read_text("\"a\0b\"", 5).kind == (enum json_kind)-1);
}

static void containers(void)
{
    CHECK(value_of("[]").kind == JSON_ARRAY && value_of("[1,\"a\",null,[true],{\"b\":{}}]").kind == JSON_ARRAY);
    CHECK(value_of("{}").kind == JSON_OBJECT && value_of("{ \"a\" : 1 , \"b\" : [ ] }").kind == JSON_OBJECT);
    CHECK(refused("[") && refused("[1") && refused("[1,") && refused("[1,]") && refused("[,1]") && refused("[1 2]"));
    CHECK(refused("{") && refused("{\"a\"") && refused("{\"a\":") && refused("{\"a\":1,}") && refused("{a:1}"));
    CHECK(refused("{1:2}") && refused("[1}") && refused("{\"a\":1]") && refused("[]]") && refused("{\"a\" 1}"));
}

static void depth(void)
{
    char text[2 * JSON_MAX_DEPTH + 3] = "";
    memset(text, '[', JSON_MAX_DEPTH);
    memset(text + JSON_MAX_DEPTH, ']', JSON_MAX_DEPTH);
    CHECK(value_of(text).kind == JSON_ARRAY);
    memset(text, '[', JSON_MAX_DEPTH + 1);
    memset(text + JSON_MAX_DEPTH + 1, ']', JSON_MAX_DEPTH + 1);
    CHECK(refused(text));
    char *deep = malloc(1000001);
    memset(deep, '[', 1000000);
    deep[1000000] = '\0';
    CHECK(refused(deep));
    free(deep);
}

static void members(void)
{
    char text[] = "{\"a\":[1,null],\"b\":\"x\"}";
    struct json json;
    struct json_value value;
    char *name;
    size_t length;
    CHECK(json_open(&json, text, strlen(text)) && json_enter_object(&json));
    CHECK(json_next_member(&json, &name, &length) && strcmp(name, "a") == 0 && length == 1);
    CHECK(json_enter_array(&json));
    CHECK(json_next_item(&json) && json_read(&json, &value) && value.integer == 1);
    CHECK(json_next_item(&json) && json_read(&json, &value) && value.kind == JSON_NULL);
    CHECK(!json_next_item(&json) && !json.fault);
    CHECK(json_next_member(&json, &name, &length) && json_peek(&json) == JSON_STRING && json_read(&json, &value));
    CHECK(!json_next_member(&json, &name, &length) && json_end(&json));
}

static void a_fault_stays(void)
{
    char text[] = "1";
    struct json json;
    struct json_value value;
    CHECK(json_open(&json, text, 1) && !json_enter_object(&json) && strcmp(json.fault, "not an object") == 0);
    CHECK(!json_read(&json, &value) && !json_enter_array(&json) && !json_next_item(&json) && !json_end(&json));
    CHECK(strcmp(json.fault, "not an object") == 0);
}

static void writing(void)
{
    char *written = NULL;
    size_t size;
    FILE *out = open_memstream(&written, &size);
    json_write_string(out, "a\"\\\n\x7f\xC3\xA4\xFF", 8);
    fclose(out);
    CHECK(strcmp(written, "\"a\\\"\\\\\\u000a\\u007f\xC3\xA4\\ufffd\"") == 0);
    free(written);
}

int main(void)
{
    scalars();
    bad_scalars();
    strings();
    bad_strings();
    containers();
    depth();
    members();
    a_fault_stays();
    writing();
    free(copy);
    return CHECK_RESULT;
}
