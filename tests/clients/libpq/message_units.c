/* message.c: fields and their defaults, and everything a message may not be. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "message.h"

static struct message message;

static bool decode(const char *line)
{
    message_clear(&message);
    return message_decode(&message, strdup(line), strlen(line));
}

static bool refused(const char *line, const char *why)
{
    bool worked = decode(line);
    if (!worked && strcmp(message.fault, why) != 0)
        fprintf(stderr, "%s\n    was refused with: %s\n", line, message.fault);
    return !worked && strcmp(message.fault, why) == 0;
}

static void a_spec(void)
{
    CHECK(decode("{\"host\":\"h\\u00e4\",\"port\":6432,\"cold\":false,\"statements\":[{\"args_text\":[\"1\",null,\"\xC3\xA4\"],"
                 "\"args\":[1,null,\"x\",true,1e9,99999999999999999999],\"numbered\":\"select $1\",\"sql\":\"\","
                 "\"arg_oids\":[23,0,4294967295]},{\"literal\":\"select 2\",\"args\":null}],\"nominal_us\":1.5,"
                 "\"orm\":\"\",\"other_statements\":[],\"runner_pid\":7,\"type\":\"spec\"}"));
    CHECK(message.kind == MESSAGE_SPEC && strcmp(message.spec.host, "h\xC3\xA4") == 0 && message.spec.port == 6432);
    CHECK(!message.spec.cold && message.spec.runner_pid == 7 && message.spec.other.count == 0);
    CHECK(message.spec.statements.count == 2);
    const struct statement *statement = &message.spec.statements.items[0];
    CHECK(statement->value_count == 3 && strcmp(statement->values[0], "1") == 0 && !statement->values[1]);
    CHECK(strcmp(statement->values[2], "\xC3\xA4") == 0 && strcmp(statement->numbered, "select $1") == 0);
    CHECK(statement->oid_count == 3 && statement->oids[0] == 23 && statement->oids[2] == 4294967295u);
    CHECK(strcmp(statement->name, "pgperf_1") == 0 && strcmp(statement->literal, "") == 0);
    CHECK(strcmp(statement[1].name, "pgperf_2") == 0 && strcmp(statement[1].literal, "select 2") == 0);
    CHECK(statement[1].value_count == 0 && statement[1].oid_count == 0);
}

static void defaults(void)
{
    CHECK(decode("{\"type\":\"spec\"}") && message.spec.cold && message.spec.port == 5432);
    CHECK(strcmp(message.spec.mode, "simple") == 0 && strcmp(message.spec.sslmode, "disable") == 0);
    CHECK(decode("{\"type\":\"slice\",\"seq\":3,\"count\":5}") && message.slice.seq == 3 && message.slice.count == 5);
    CHECK(message.slice.lead_in_ops == 10 && message.slice.lead_in_ns == 50000000 && message.slice.start_ns == 0);
}

static void a_rate(void)
{
    const char *why = "rate: must be 0, or 0.001 to 1000000 operations/s";
    CHECK(decode("{\"type\":\"slice\",\"seq\":3}") && message.slice.rate == 0 && !message.slice.exponential);
    CHECK(decode("{\"type\":\"slice\",\"rate\":1.25e2,\"schedule\":\"exponential\",\"seed\":9223372036854775807,"
                 "\"offset_ns\":4,\"latency_limit_ns\":5,\"seq\":3}"));
    CHECK(message.slice.rate == 125 && message.slice.exponential && message.slice.seed == INT64_MAX);
    CHECK(message.slice.offset_ns == 4 && message.slice.latency_limit_ns == 5);
    CHECK(decode("{\"type\":\"slice\",\"seq\":3,\"rate\":1000000}") && message.slice.rate == 1000000);
    CHECK(refused("{\"type\":\"slice\",\"seq\":3,\"rate\":1000000.5}", why));
    CHECK(refused("{\"type\":\"slice\",\"seq\":3,\"rate\":1e-9}", why));
    CHECK(refused("{\"type\":\"slice\",\"seq\":3,\"rate\":1e999}", why));
    CHECK(refused("{\"type\":\"slice\",\"seq\":3,\"rate\":null}", why));
    CHECK(refused("{\"type\":\"slice\",\"seq\":3,\"schedule\":\"\"}", "schedule: must be constant or exponential"));
    CHECK(refused("{\"type\":\"spec\",\"rate\":1}", "rate: does not belong to this type of message"));
}

static void the_last_of_two_counts(void)
{
    CHECK(decode("{\"type\":\"spec\",\"statements\":[{},{\"args_text\":[\"x\"],\"arg_oids\":[1]}],\"port\":1,\"port\":2,"
                 "\"statements\":[{\"args_text\":[\"a\",\"b\",\"c\"],\"args_text\":[\"d\"]}]}"));
    CHECK(message.spec.statements.count == 1 && message.spec.statements.items[0].value_count == 1);
    CHECK(strcmp(message.spec.statements.items[0].values[0], "d") == 0);
    CHECK(message.spec.port == 2);
}

static void small_messages(void)
{
    CHECK(decode("{\"type\":\"bye\"}") && message.kind == MESSAGE_BYE);
    CHECK(decode("{\"sql\":\"select 1\",\"type\":\"query\"}") && message.kind == MESSAGE_QUERY);
    CHECK(strcmp(message.sql, "select 1") == 0);
    CHECK(refused("{\"type\":\"query\",\"sql\":\"a\\u0000b\"}", "sql: must be a string without NUL"));
}

static void wrong_shapes(void)
{
    CHECK(refused("[]", "the line: not an object") && refused("", "the line: not an object"));
    CHECK(refused("{}", "type: missing") && refused("{\"type\":1}", "type: must be a string"));
    CHECK(refused("{\"type\":\"ready\"}", "type: unknown type of message"));
    CHECK(refused("{\"type\":\"bye\"}{}", "the line: text after the value"));
    CHECK(refused("{\"type\":\"bye\",\"x\":1}", "a field: unknown"));
    CHECK(refused("{\"type\":\"bye\",\"seq\":1}", "seq: does not belong to this type of message"));
    CHECK(refused("{\"type\":\"bye\"", "the line: a comma is missing"));
}

static void wrong_values(void)
{
    CHECK(refused("{\"type\":\"spec\",\"port\":\"5432\"}", "port: must be an integer"));
    CHECK(refused("{\"type\":\"spec\",\"port\":99999999999999999999}", "port: must be an integer"));
    CHECK(refused("{\"type\":\"spec\",\"port\":1.0}", "port: must be an integer"));
    CHECK(refused("{\"type\":\"spec\",\"cold\":1}", "cold: must be true or false"));
    CHECK(refused("{\"type\":\"spec\",\"password\":null}", "password: must be a string without NUL"));
    CHECK(refused("{\"type\":\"spec\",\"password\":\"a\\u0000b\"}", "password: must be a string without NUL"));
    CHECK(refused("{\"type\":\"spec\",\"orm_args\":[1,}", "orm_args: not a value"));
}

static bool refused_statement(const char *statement, const char *why)
{
    char line[200];
    snprintf(line, sizeof line, "{\"type\":\"spec\",\"statements\":[{},%s]}", statement);
    return refused(line, why);
}

static void wrong_statements(void)
{
    CHECK(refused("{\"type\":\"spec\",\"statements\":{}}", "statements: not a list"));
    CHECK(refused("{\"type\":\"spec\",\"other_statements\":[{}", "other_statements: a comma is missing"));
    CHECK(refused_statement("[]", "statements: not an object"));
    CHECK(refused_statement("{\"literal\":1}", "literal: must be a string without NUL"));
    CHECK(refused_statement("{\"numbered\":\"a\\u0000b\"}", "numbered: must be a string without NUL"));
    CHECK(refused_statement("{\"args_text\":[1]}", "args_text: must be a list of strings and nulls"));
    CHECK(refused_statement("{\"args_text\":[[]]}", "args_text: must be a list of strings and nulls"));
    CHECK(refused_statement("{\"args_text\":null}", "args_text: not a list"));
    CHECK(refused_statement("{\"arg_oids\":[-1]}", "arg_oids: must be a list of type numbers"));
    CHECK(refused_statement("{\"arg_oids\":[4294967296]}", "arg_oids: must be a list of type numbers"));
    CHECK(refused_statement("{\"arg_oids\":[1]}", "statements: must have as many arg_oids as args_text, or none"));
    CHECK(refused_statement("{\"args\":[1,}", "args: not a value"));
    CHECK(refused_statement("{\"x\":1}", "statements: an unknown field"));
}

static void wrong_slices(void)
{
    CHECK(refused("{\"type\":\"slice\",\"count\":1}", "seq: missing"));
    CHECK(refused("{\"type\":\"query\"}", "sql: missing"));
    CHECK(refused("{\"type\":\"slice\",\"seq\":1,\"count\":-1}", "count: must be an integer of 0 or more"));
    CHECK(refused("{\"type\":\"slice\",\"seq\":1,\"window_ns\":9223372036854775807}",
                  "window_ns: must be nanoseconds of 0 or more"));
}

int main(void)
{
    a_spec();
    defaults();
    a_rate();
    the_last_of_two_counts();
    small_messages();
    wrong_shapes();
    wrong_values();
    wrong_statements();
    wrong_slices();
    message_clear(&message);
    return CHECK_RESULT;
}
