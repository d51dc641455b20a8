/* The libpq client: runs the statements of one operation on one connection, in the slices that the runner
 * requests. docs/protocol.md describes the messages. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bulk.h"
#include "cold.h"
#include "failure.h"
#include "line.h"
#include "message.h"
#include "process.h"
#include "reply.h"
#include "session.h"
#include "timed.h"
#include "version.h"

#define MESSAGE_BYTES 2000 /* of an error message */
#define AS_TEXT(word) #word
#define TEXT_OF(macro) AS_TEXT(macro)

/* The result of a step: an exit code, or the value to continue. */
enum outcome { OUTCOME_OK = 0, OUTCOME_FAILED = EXIT_FAILED, OUTCOME_PROTOCOL = 4, GO_ON = -1 };

struct client {
    int replies; /* descriptor for replies */
    struct line_reader lines;
    struct message spec;
    struct session session;
    bool reconnects; /* connects in each operation, and closes at its end */
    const char *stage; /* of a slice that fails */
    struct cold cold;
    struct failure failure;
    uint64_t *samples;
    int64_t single; /* the number of the statement that a slice runs alone */
};

static enum outcome open_client(struct client *client);
static enum outcome take_spec(struct client *client);
static enum outcome connect_server(struct client *client);
static enum outcome tell_ready(struct client *client);
static enum outcome serve_request(struct client *client);
static void close_client(struct client *client);
static int print_version(void);

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return print_version();
    struct client client = {0};
    enum outcome outcome = open_client(&client);
    if (outcome == GO_ON)
        outcome = take_spec(&client);
    if (outcome == GO_ON)
        outcome = connect_server(&client);
    if (outcome == GO_ON)
        outcome = tell_ready(&client);
    while (outcome == GO_ON)
        outcome = serve_request(&client); /* slices, then bye */
    close_client(&client);
    return outcome;
}

static int print_version(void)
{
    char libpq[32];
    reply_libpq_version(libpq);
    printf("pgperf-libpq %s (libpq %s)\n", CLIENT_VERSION, libpq);
    return OUTCOME_OK;
}

/* The outcome of a reply that could not be written. A runner that has ended is not a failure of the client. */
static enum outcome unheard(void)
{
    if (errno == EPIPE)
        return OUTCOME_OK;
    perror("pgperf-libpq: a reply");
    return OUTCOME_FAILED;
}

static enum outcome listening(bool replied)
{
    return replied ? GO_ON : unheard();
}

/* Reports `client->failure` to the runner and on stderr. */
static enum outcome report(struct client *client, const char *stage, enum outcome outcome)
{
    failure_name_memory(&client->failure);
    failure_scrub(&client->failure, "password", client->spec.spec.password);
    failure_limit(&client->failure, MESSAGE_BYTES);
    fprintf(stderr, "pgperf-libpq: %s: %s\n", stage, client->failure.message);
    return reply_error(client->replies, stage, &client->failure) ? outcome : unheard();
}

static enum outcome give_up(struct client *client, const char *stage, const char *why, enum outcome outcome)
{
    failure_set(&client->failure, "", why);
    return report(client, stage, outcome);
}

/* Reads the next message. The caller clears it, on failure too. */
static enum outcome next_message(struct client *client, struct message *message, const char *stage)
{
    char *line;
    size_t length;
    *message = (struct message){0};
    switch (line_read(&client->lines, &line, &length)) {
    case LINE_END:
        return OUTCOME_OK;
    case LINE_CUT:
        return give_up(client, stage, "an incomplete line", OUTCOME_PROTOCOL);
    case LINE_TOO_LONG:
        return give_up(client, stage, "a line too long", OUTCOME_PROTOCOL);
    case LINE_NO_MEMORY:
        return give_up(client, stage, "out of memory for a line", OUTCOME_FAILED);
    case LINE_OK:
        break;
    }
    if (!message_decode(message, line, length))
        return give_up(client, stage, message->fault, OUTCOME_PROTOCOL);
    return GO_ON;
}

static enum outcome open_client(struct client *client)
{
    process_guard();
    process_clean_environment();
    client->cold = cold_none();
    client->replies = process_keep_stdout();
    if (client->replies < 0) {
        perror("pgperf-libpq: stdout");
        return OUTCOME_FAILED;
    }
    line_open(&client->lines, STDIN_FILENO);
    return GO_ON;
}

static enum outcome check_spec(struct client *client)
{
    const struct spec *spec = &client->spec.spec;
    if (spec->protocol != WIRE_PROTOCOL)
        return give_up(client, "spec", "protocol: this client speaks version " TEXT_OF(WIRE_PROTOCOL), OUTCOME_PROTOCOL);
    if (!session_find_mode(spec->mode, &client->session.mode))
        return give_up(client, "spec", "mode: choose simple, extended or prepared", OUTCOME_FAILED);
    client->reconnects = strcmp(spec->connection_mode, "per_operation") == 0;
    if (!client->reconnects && strcmp(spec->connection_mode, "persistent") != 0)
        return give_up(client, "spec", "connection_mode: this client knows persistent, per_operation only",
                       OUTCOME_FAILED);
    if (spec->workers != 1)
        return give_up(client, "spec", "workers: this client has one worker", OUTCOME_FAILED);
    return process_has_parent(spec->runner_pid) ? GO_ON : OUTCOME_OK;
}

static enum outcome take_spec(struct client *client)
{
    enum outcome outcome = next_message(client, &client->spec, "spec");
    if (outcome != GO_ON || client->spec.kind == MESSAGE_SPEC)
        return outcome == GO_ON ? check_spec(client) : outcome;
    return give_up(client, "spec", "the first message must be a spec", OUTCOME_PROTOCOL);
}

static enum outcome connect_server(struct client *client)
{
    struct spec *spec = &client->spec.spec;
    bool worked = spec->cold ? cold_connect(&client->cold, &client->session, spec, &client->failure)
                             : session_connect(&client->session, spec, &client->failure);
    return worked ? GO_ON : report(client, "connect", OUTCOME_FAILED);
}

/* Beside what an operation needs, the client will need memory for its samples. */
static int64_t limit_memory(const struct spec *spec)
{
    const int64_t own_bytes = TIMED_MAX_SAMPLES * (int64_t)sizeof(uint64_t);
    if (spec->memory_bytes <= 0 || spec->memory_bytes > INT64_MAX - own_bytes)
        return 0;
    return process_limit_memory(spec->memory_bytes + own_bytes);
}

/* One run counts the rows of an operation. It must come after the cold phases, if there are any. */
static enum outcome tell_ready(struct client *client)
{
    struct spec *spec = &client->spec.spec;
    int64_t rows = 0;
    int64_t memory_bytes = limit_memory(spec);
    if (spec->statements.count == 0)
        return give_up(client, "ready", "statements: none given; this layer runs SQL, so give the workload some",
                       OUTCOME_FAILED);
    const char *refusal = *spec->bulk.kind ? bulk_refusal(&client->session, spec) : NULL;
    if (refusal)
        return give_up(client, "ready", refusal, OUTCOME_FAILED);
    if ((spec->cold && !cold_run(&client->cold, &client->session, spec, &client->failure)) ||
        !bulk_or_statements(&client->session, spec, &rows, &client->failure))
        return report(client, "ready", OUTCOME_FAILED);
    client->samples = timed_new_samples();
    if (!client->samples)
        return give_up(client, "ready", "out of memory for the durations", OUTCOME_FAILED);
    bool replied = reply_ready(client->replies, &client->session, rows, memory_bytes, &client->cold);
    if (client->reconnects)
        session_close(&client->session);
    return listening(replied);
}

static bool run_statements(void *self, int64_t *rows)
{
    struct client *client = self;
    return bulk_or_statements(&client->session, &client->spec.spec, rows, &client->failure);
}

/* One of the statements alone, as the slice says. */
static bool run_single(void *self, int64_t *rows)
{
    struct client *client = self;
    struct statements single = {client->spec.spec.statements.items + client->single - 1, 1};
    return session_run(&client->session, &single, rows, &client->failure);
}

static bool connect_again(void *self)
{
    struct client *client = self;
    if (session_connect(&client->session, &client->spec.spec, &client->failure))
        return true;
    client->stage = "reconnect";
    return false;
}

static void disconnect(void *self)
{
    struct client *client = self;
    session_close(&client->session);
}

/* Allocates memory for a quarter more operations, so that the next slice need not. */
static void make_room(struct client *client, const struct timing *timing)
{
    int64_t recorded = timing->ops + timing->skipped;
    int64_t ops = recorded + recorded / 4;
    timed_make_room(client->samples, ops);
    for (int phase = 0; phase < timing->phases; phase++)
        timed_make_room(timed_phase(client->samples, phase), ops < TIMED_MAX_PHASED ? ops : TIMED_MAX_PHASED);
}

static enum outcome serve_slice(struct client *client, const struct slice *slice)
{
    struct timing timing;
    struct operation operation = {run_statements, client, NULL, NULL};
    if (client->reconnects)
        operation = (struct operation){run_statements, client, connect_again, disconnect};
    client->stage = "slice";
    if (slice->statement) {
        if (client->reconnects || *client->spec.spec.bulk.kind ||
            slice->statement > client->spec.spec.statements.count)
            return give_up(client, "slice", "statement: this client runs its operations as a whole only", OUTCOME_FAILED);
        client->single = slice->statement;
        operation.run = run_single;
    }
    if (slice->start_ns && !reply_armed(client->replies, slice->seq))
        return unheard();
    if (!timed_run(slice, operation, client->samples, &timing))
        return report(client, client->stage, OUTCOME_FAILED);
    bool replied = reply_slice(client->replies, slice->seq, &timing, client->samples);
    make_room(client, &timing);
    return listening(replied);
}

static enum outcome serve_query(struct client *client, const char *sql)
{
    client->stage = "query";
    if (client->reconnects && !connect_again(client))
        return report(client, client->stage, OUTCOME_FAILED);
    PGresult *result = session_query(&client->session, sql, &client->failure);
    if (!result)
        return report(client, "query", OUTCOME_FAILED);
    enum outcome outcome = listening(reply_rows(client->replies, result));
    PQclear(result);
    if (client->reconnects)
        disconnect(client);
    return outcome;
}

static enum outcome serve(struct client *client, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_SLICE:
        return serve_slice(client, &message->slice);
    case MESSAGE_QUERY:
        return serve_query(client, message->sql);
    case MESSAGE_BYE:
        return OUTCOME_OK;
    default:
        return give_up(client, "slice", "a second spec", OUTCOME_PROTOCOL);
    }
}

static enum outcome serve_request(struct client *client)
{
    struct message message;
    enum outcome outcome = next_message(client, &message, "slice");
    if (outcome == GO_ON)
        outcome = serve(client, &message);
    message_clear(&message);
    return outcome;
}

static void close_client(struct client *client)
{
    session_close(&client->session);
    timed_free_samples(client->samples);
    failure_clear(&client->failure);
    message_clear(&client->spec);
    line_close(&client->lines);
}
