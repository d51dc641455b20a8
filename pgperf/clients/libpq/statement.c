#include "statement.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

enum field_kind { TEXT, TEXT_LIST, OID_LIST, UNUSED };

static const struct field {
    const char *name;
    enum field_kind kind;
    size_t offset; /* of a TEXT in struct statement */
} fields[] = {
    {"literal", TEXT, offsetof(struct statement, literal)},
    {"numbered", TEXT, offsetof(struct statement, numbered)},
    {"args_text", TEXT_LIST, 0},
    {"arg_oids", OID_LIST, 0},
    {"sql", UNUSED, 0}, /* forms for other layers */
    {"args", UNUSED, 0},
};

/* Makes room for one more item; doubles the capacity if needed. */
static void *with_room(void *items, int count, size_t size)
{
    size_t room = (size_t)count + 1;
    if (count == INT_MAX)
        failure_no_memory();
    if ((room & (room - 1)) != 0)
        return items;
    items = realloc(items, 2 * room * size);
    if (!items)
        failure_no_memory();
    return items;
}

/* A C string cannot contain a NUL byte, and PostgreSQL accepts none in a text. */
static bool is_text(const struct json_value *value)
{
    return value->kind == JSON_STRING && strlen(value->text) == value->length;
}

static bool add_value(struct statement *statement, const struct json_value *value)
{
    if (value->kind != JSON_NULL && !is_text(value))
        return false;
    statement->values = with_room(statement->values, statement->value_count, sizeof *statement->values);
    statement->values[statement->value_count++] = value->kind == JSON_NULL ? NULL : value->text;
    return true;
}

static bool add_oid(struct statement *statement, const struct json_value *value)
{
    if (value->kind != JSON_INTEGER || !value->in_range || value->integer < 0 || value->integer > UINT32_MAX)
        return false;
    statement->oids = with_room(statement->oids, statement->oid_count, sizeof *statement->oids);
    statement->oids[statement->oid_count++] = (unsigned)value->integer;
    return true;
}

static bool read_list(struct json *json, struct statement *statement,
                      bool (*add)(struct statement *, const struct json_value *))
{
    struct json_value value;
    if (!json_enter_array(json))
        return false;
    while (json_next_item(json))
        if (!json_read(json, &value) || !add(statement, &value))
            return false;
    return !json->fault;
}

static bool read_text(struct json *json, const char **text)
{
    struct json_value value;
    if (!json_read(json, &value) || !is_text(&value))
        return false;
    *text = value.text;
    return true;
}

static bool read_field(struct json *json, const struct field *field, struct statement *statement)
{
    struct json_value ignored;
    switch (field->kind) {
    case TEXT:
        return read_text(json, (const char **)((char *)statement + field->offset));
    case TEXT_LIST:
        statement->value_count = 0;
        return read_list(json, statement, add_value);
    case OID_LIST:
        statement->oid_count = 0;
        return read_list(json, statement, add_oid);
    default:
        return json_read(json, &ignored);
    }
}

static const struct field *find_field(const char *name)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static const char *read_statement(struct json *json, struct statement *statement, const char **at)
{
    static const char *const wanted[] = {"must be a string without NUL", "must be a list of strings and nulls",
                                         "must be a list of type numbers", "must be a value"};
    char *name;
    size_t length;
    if (!json_enter_object(json))
        return json->fault;
    while (json_next_member(json, &name, &length)) {
        const struct field *field = find_field(name);
        if (!field)
            return "an unknown field";
        if (!read_field(json, field, statement)) {
            *at = field->name;
            return json->fault ? json->fault : wanted[field->kind];
        }
    }
    if (!json->fault && statement->oid_count && statement->oid_count != statement->value_count)
        return "must have as many arg_oids as args_text, or none";
    return json->fault;
}

static struct statement *add_statement(struct statements *statements, const char *name)
{
    statements->items = with_room(statements->items, statements->count, sizeof *statements->items);
    struct statement *added = &statements->items[statements->count++];
    *added = (struct statement){.literal = "", .numbered = ""};
    snprintf(added->name, sizeof added->name, "%.16s%d", name, statements->count);
    return added;
}

const char *statements_read(struct statements *statements, struct json *json, const char *name, const char **field)
{
    statements_clear(statements);
    if (!json_enter_array(json))
        return json->fault;
    while (json_next_item(json)) {
        const char *fault = read_statement(json, add_statement(statements, name), field);
        if (fault)
            return fault;
    }
    return json->fault;
}

void statements_clear(struct statements *statements)
{
    for (int i = 0; i < statements->count; i++) {
        free(statements->items[i].values);
        free(statements->items[i].oids);
    }
    free(statements->items);
    *statements = (struct statements){0};
}
