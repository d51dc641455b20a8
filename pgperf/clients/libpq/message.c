#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "version.h"

#define NANOSECONDS_MAX (INT64_MAX / 4) /* so that start, lead-in and window can be added */

#define MOST_BULK_ROWS 1000000
#define LEAST_RATE 0.001 /* operations/s */
#define MOST_RATE 1000000

enum field_kind { TEXT, INTEGER, COUNT, NANOSECONDS, RATE, SCHEDULE, BOOLEAN, STATEMENTS, BULK, UNUSED };

struct field {
    const char *name;
    enum field_kind kind;
    unsigned messages; /* the kinds of message with this field */
    size_t offset;     /* in struct message */
};

#define SPEC(name, kind, member) {name, kind, MESSAGE_SPEC, offsetof(struct message, spec.member)}
#define SLICE(name, kind) {#name, kind, MESSAGE_SLICE, offsetof(struct message, slice.name)}
#define OTHER_LAYERS(name, messages) {name, UNUSED, messages, 0}

static const struct field fields[] = {
    SPEC("protocol", INTEGER, protocol),
    SPEC("layer", TEXT, layer),
    SPEC("mode", TEXT, mode),
    SPEC("connection_mode", TEXT, connection_mode),
    SPEC("workers", COUNT, workers),
    SPEC("host", TEXT, host),
    SPEC("port", INTEGER, port),
    SPEC("dbname", TEXT, dbname),
    SPEC("user", TEXT, user),
    SPEC("password", TEXT, password),
    SPEC("sslmode", TEXT, sslmode),
    SPEC("sslrootcert", TEXT, sslrootcert),
    SPEC("certificate_name", TEXT, certificate_name),
    SPEC("require_auth", TEXT, require_auth),
    SPEC("connect_timeout_s", INTEGER, connect_timeout_s),
    SPEC("application_name", TEXT, application_name),
    SPEC("options", TEXT, options),
    SPEC("statements", STATEMENTS, statements),
    SPEC("other_statements", STATEMENTS, other),
    SPEC("bulk", BULK, bulk),
    SPEC("spawned_ns", NANOSECONDS, spawned_ns),
    SPEC("runner_pid", INTEGER, runner_pid),
    SPEC("cold", BOOLEAN, cold),
    SPEC("memory_bytes", COUNT, memory_bytes),
    {"sql", TEXT, MESSAGE_QUERY, offsetof(struct message, sql)},
    OTHER_LAYERS("url", MESSAGE_SPEC),
    OTHER_LAYERS("row_type", MESSAGE_SPEC),
    OTHER_LAYERS("transaction", MESSAGE_SPEC),
    OTHER_LAYERS("page", MESSAGE_SPEC),
    OTHER_LAYERS("orm", MESSAGE_SPEC),
    OTHER_LAYERS("orm_args", MESSAGE_SPEC),
    OTHER_LAYERS("query", MESSAGE_SPEC),
    OTHER_LAYERS("site", MESSAGE_SPEC),
    OTHER_LAYERS("other_orm", MESSAGE_SPEC),
    OTHER_LAYERS("other_orm_args", MESSAGE_SPEC),
    OTHER_LAYERS("nominal_us", MESSAGE_SPEC),
    SLICE(seq, COUNT),
    SLICE(start_ns, NANOSECONDS),
    SLICE(lead_in_ops, COUNT),
    SLICE(lead_in_ns, NANOSECONDS),
    SLICE(window_ns, NANOSECONDS),
    SLICE(count, COUNT),
    SLICE(statement, COUNT),
    SLICE(rate, RATE),
    {"schedule", SCHEDULE, MESSAGE_SLICE, offsetof(struct message, slice.exponential)},
    SLICE(seed, COUNT),
    SLICE(offset_ns, NANOSECONDS),
    SLICE(latency_limit_ns, NANOSECONDS),
};

#define FIELD_COUNT (sizeof fields / sizeof *fields)

static bool refuse(struct message *message, const char *subject, const char *why)
{
    snprintf(message->fault, sizeof message->fault, "%.40s: %s", subject, why);
    return false;
}

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static enum message_kind find_kind(const char *name)
{
    static const char *const names[] = {"spec", "slice", "query", "bye"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (enum message_kind)(1u << i);
    return (enum message_kind)0;
}

/* A C string cannot contain a NUL byte, and PostgreSQL accepts none in a text. */
static bool is_text(const struct json_value *value)
{
    return value->kind == JSON_STRING && strlen(value->text) == value->length;
}

static bool is_integer(const struct json_value *value, int64_t least, int64_t most)
{
    return value->kind == JSON_INTEGER && value->in_range && value->integer >= least && value->integer <= most;
}

/* The text of a number ends with the member. */
static bool store_rate(const struct json_value *value, double *member)
{
    if (value->kind != JSON_INTEGER && value->kind != JSON_REAL)
        return false;
    *member = strtod(value->text, NULL);
    return *member == 0 || (*member >= LEAST_RATE && *member <= MOST_RATE);
}

static bool store_schedule(const struct json_value *value, bool *exponential)
{
    if (!is_text(value))
        return false;
    *exponential = strcmp(value->text, "exponential") == 0;
    return *exponential || strcmp(value->text, "constant") == 0;
}

static bool store(const struct field *field, const struct json_value *value, void *member)
{
    switch (field->kind) {
    case TEXT:
        *(const char **)member = value->text;
        return is_text(value);
    case INTEGER:
        *(int64_t *)member = value->integer;
        return is_integer(value, INT64_MIN, INT64_MAX);
    case COUNT:
        *(int64_t *)member = value->integer;
        return is_integer(value, 0, INT64_MAX);
    case NANOSECONDS:
        *(int64_t *)member = value->integer;
        return is_integer(value, 0, NANOSECONDS_MAX);
    case RATE:
        return store_rate(value, member);
    case SCHEDULE:
        return store_schedule(value, member);
    case BOOLEAN:
        *(bool *)member = value->truth;
        return value->kind == JSON_BOOL;
    default:
        return true;
    }
}

static bool read_statements(struct json *json, const struct field *field, struct message *message)
{
    struct statements *list = (struct statements *)((char *)message + field->offset);
    const char *member = field->name;
    const char *fault = statements_read(list, json, list == &message->spec.other ? "other_" : "pgperf_", &member);
    return !fault || refuse(message, member, fault);
}

/* The statement has what libpq needs of the other members. */
static bool read_bulk_member(struct json *json, const char *name, struct bulk *bulk)
{
    struct json_value value;
    bool worked = json_read(json, &value);
    if (strcmp(name, "kind") == 0) {
        bulk->kind = value.text;
        return worked && is_text(&value);
    }
    if (strcmp(name, "rows") == 0) {
        bulk->rows = value.integer;
        return worked && is_integer(&value, 0, MOST_BULK_ROWS);
    }
    return worked && (strcmp(name, "table") == 0 || strcmp(name, "columns") == 0 || strcmp(name, "types") == 0 ||
                      strcmp(name, "api") == 0);
}

static bool read_bulk(struct json *json, const struct field *field, struct message *message)
{
    char *name;
    size_t length;
    bool worked = json_enter_object(json);
    while (worked && json_next_member(json, &name, &length))
        worked = read_bulk_member(json, name, &message->spec.bulk);
    return (worked && !json->fault) ||
           refuse(message, field->name, json->fault ? json->fault : "must be an object of a bulk operation");
}

static bool read_field(struct json *json, const struct field *field, struct message *message)
{
    static const char *const wanted[] = {"must be a string without NUL",
                                         "must be an integer",
                                         "must be an integer of 0 or more",
                                         "must be nanoseconds of 0 or more",
                                         "must be 0, or 0.001 to 1000000 operations/s",
                                         "must be constant or exponential",
                                         "must be true or false",
                                         "must be a list of statements",
                                         "must be an object of a bulk operation",
                                         "must be a value"};
    struct json_value value;
    if (field->kind == STATEMENTS)
        return read_statements(json, field, message);
    if (field->kind == BULK)
        return read_bulk(json, field, message);
    bool worked = json_read(json, &value) && store(field, &value, (char *)message + field->offset);
    return worked || refuse(message, field->name, json->fault ? json->fault : wanted[field->kind]);
}

static bool read_kind(struct json *json, struct message *message)
{
    struct json_value value;
    if (!json_read(json, &value) || !is_text(&value))
        return refuse(message, "type", "must be a string");
    message->kind = find_kind(value.text);
    return message->kind || refuse(message, "type", "unknown type of message");
}

/* `type` may come last, so the fields are checked against it at the end. */
static bool read_members(struct json *json, struct message *message, bool seen[FIELD_COUNT])
{
    char *name;
    size_t length;
    while (json_next_member(json, &name, &length)) {
        const struct field *field = find_field(name);
        if (strcmp(name, "type") == 0 ? !read_kind(json, message) : !field)
            return *message->fault ? false : refuse(message, "a field", "unknown");
        if (!field)
            continue;
        seen[field - fields] = true;
        if (!read_field(json, field, message))
            return false;
    }
    return json_end(json) || refuse(message, "the line", json->fault);
}

static bool check_fields(struct message *message, const bool seen[FIELD_COUNT])
{
    if (!message->kind)
        return refuse(message, "type", "missing");
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (seen[i] && !(fields[i].messages & message->kind))
            return refuse(message, fields[i].name, "does not belong to this type of message");
    if (message->kind == MESSAGE_SLICE && !seen[find_field("seq") - fields])
        return refuse(message, "seq", "missing");
    if (message->kind == MESSAGE_QUERY && !seen[find_field("sql") - fields])
        return refuse(message, "sql", "missing");
    return true;
}

static const struct spec default_spec = {
    .protocol = WIRE_PROTOCOL,
    .layer = "",
    .mode = "simple",
    .connection_mode = "persistent",
    .workers = 1,
    .host = "",
    .port = 5432,
    .dbname = "",
    .user = "",
    .password = "",
    .sslmode = "disable",
    .sslrootcert = "",
    .certificate_name = "",
    .require_auth = "!password",
    .connect_timeout_s = 10,
    .application_name = "pgperf",
    .options = "",
    .bulk = {.kind = ""},
    .cold = true,
};

bool message_decode(struct message *message, char *line, size_t length)
{
    struct json json;
    bool seen[FIELD_COUNT] = {false};
    *message = (struct message){
        .spec = default_spec, .slice = {.lead_in_ops = 10, .lead_in_ns = 50000000}, .line = line};
    if (!json_open(&json, line, length) || !json_enter_object(&json))
        return refuse(message, "the line", json.fault);
    return read_members(&json, message, seen) && check_fields(message, seen);
}

void message_clear(struct message *message)
{
    statements_clear(&message->spec.statements);
    statements_clear(&message->spec.other);
    free(message->line);
    *message = (struct message){0};
}
