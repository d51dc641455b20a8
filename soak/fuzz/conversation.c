/* Fuzzes whole conversations of the C client: main.c and everything below it, without a server and a clock.
 *
 * An input is a script of 8 bytes (how the environment behaves) and the bytes on stdin. The sanitizers
 * must find nothing, and these must hold:
 * - the exit code is one of the protocol's;
 * - the replies are whole messages of UTF-8, followed by the bytes that they announce;
 * - an error is the last reply, and there is one exactly if the exit code says so;
 * - no reply contains the password;
 * - the same bytes in small pieces, with interrupted calls, get the same replies. */
#define _GNU_SOURCE /* memmem */
#define PGPERF_HARNESS
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_libpq.h"
#include "process.h"
#include "redirect.h"
#include "timed.h"
#include "utf8.h"

#define SCRIPT_BYTES 8
#define REPLY_BYTES (1 << 24) /* two replies with as many samples as there is room for; then the runner is gone */
#define COMPLAINT_BYTES 3000
#define REPLIES_FD 5

#define MUST(holds)                                                                                                   \
    do {                                                                                                              \
        if (!(holds)) {                                                                                               \
            fprintf(stderr, "conversation.c:%d: does not hold: %s\n", __LINE__, #holds);                              \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The behavior of the runner, the kernel and the clock during one conversation. */
struct surroundings {
    const uint8_t *data; /* sent by the runner */
    size_t size;
    size_t sent;
    unsigned piece;       /* most bytes of one read or write; 0: no limit */
    bool interrupted;     /* the previous call was */
    size_t listens_bytes; /* the runner closes its end after this number */
    uint64_t now_ns;
    uint64_t step_ns; /* between two readings of the clock */
};

struct replies {
    int outcome;
    size_t used;
    char data[REPLY_BYTES];
};

static struct surroundings around;
static struct replies first, second, *replies;
static uint64_t samples[TIMED_MAX_SAMPLES];

/* With small pieces, every other call is interrupted. */
static bool interrupts(void)
{
    around.interrupted = around.piece && !around.interrupted;
    errno = EINTR;
    return around.interrupted;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t portion(size_t bytes)
{
    return around.piece ? least(bytes, around.piece) : bytes;
}

ssize_t harness_read(int fd, void *data, size_t bytes)
{
    MUST(fd == STDIN_FILENO && bytes > 0);
    if (interrupts())
        return -1;
    size_t given = least(portion(bytes), around.size - around.sent);
    memcpy(data, around.data + around.sent, given);
    around.sent += given;
    return (ssize_t)given;
}

ssize_t harness_write(int fd, const void *data, size_t bytes)
{
    MUST(fd == REPLIES_FD);
    if (interrupts())
        return -1;
    size_t taken = least(portion(bytes), around.listens_bytes - replies->used);
    errno = EPIPE;
    if (bytes > 0 && taken == 0)
        return -1;
    memcpy(replies->data + replies->used, data, taken);
    replies->used += taken;
    return (ssize_t)taken;
}

int harness_clock_gettime(struct timespec *now)
{
    around.now_ns += around.step_ns;
    *now = (struct timespec){(time_t)(around.now_ns / 1000000000), (long)(around.now_ns % 1000000000)};
    return 0;
}

int harness_clock_nanosleep(const struct timespec *until)
{
    uint64_t until_ns = (uint64_t)until->tv_sec * 1000000000 + (uint64_t)until->tv_nsec;
    around.now_ns = until_ns > around.now_ns ? until_ns : around.now_ns;
    return 0;
}

int harness_getrusage(struct rusage *usage)
{
    memset(usage, 0, sizeof *usage);
    return 0;
}

void *harness_mmap(size_t bytes)
{
    MUST(bytes == sizeof samples);
    return samples;
}

int harness_munmap(void *data, size_t bytes)
{
    MUST(data == samples && bytes == sizeof samples);
    return 0;
}

/* process.c is left out: it would change the fuzzer's own process. */

void process_guard(void)
{
}

void process_clean_environment(void)
{
}

int process_keep_stdout(void)
{
    return REPLIES_FD;
}

int64_t process_limit_memory(int64_t more_bytes)
{
    return more_bytes;
}

bool process_has_parent(int64_t runner_pid)
{
    return runner_pid % 2 == 0;
}

/* The server's error text: bytes of the conversation itself, which contains the password. */
static void complain(char *complaint, size_t bytes)
{
    for (size_t i = 0; i + 1 < bytes; i++)
        complaint[i] = around.size && around.data[i % around.size] ? (char)around.data[i % around.size] : ' ';
    complaint[bytes - 1] = '\0';
}

static void set_up(const uint8_t *script, const uint8_t *data, size_t size, bool in_pieces)
{
    static const ExecStatusType statuses[] = {PGRES_COMMAND_OK,  PGRES_EMPTY_QUERY,    PGRES_COPY_IN,
                                              PGRES_COPY_OUT,    PGRES_COPY_BOTH,      PGRES_BAD_RESPONSE,
                                              PGRES_FATAL_ERROR, PGRES_NONFATAL_ERROR, PGRES_SINGLE_TUPLE};
    static const uint64_t steps[] = {1000, 0, 1, 100, 1000000, 1000000000, 60000000000};
    static char complaint[COMPLAINT_BYTES];
    around = (struct surroundings){.data = data,
                                   .size = size,
                                   .piece = in_pieces ? script[0] : 0,
                                   .listens_bytes = script[1] ? script[1] * 16u : REPLY_BYTES,
                                   .now_ns = 1000000000,
                                   .step_ns = steps[script[2] % (sizeof steps / sizeof *steps)]};
    bool odd = script[3] < sizeof statuses / sizeof *statuses;
    complain(complaint, 1 + script[7] * (COMPLAINT_BYTES - 1u) / 255);
    fake_server = (struct fake_server){.refuses = script[4] % 16 == 1,
                                       .answers = 4 * (int64_t)script[5],
                                       .rows = script[6] % 8,
                                       .columns = script[6] / 8 % 4,
                                       .status = odd ? statuses[script[3]] : PGRES_TUPLES_OK,
                                       .complaint = complaint};
}

static void converse(struct replies *into)
{
    static char name[] = "pgperf-libpq", *argv[] = {name, NULL};
    replies = into;
    into->used = 0;
    into->outcome = client_main(1, argv);
}

/* The number of bytes that a message announces after itself. */
static size_t announced(const char *message, const char *end)
{
    static const char member[] = "\"nbytes\":";
    const char *found = memmem(message, (size_t)(end - message), member, strlen(member));
    return found ? strtoul(found + strlen(member), NULL, 10) : 0;
}

static bool begins(const char *text, const char *end, const char *with)
{
    return (size_t)(end - text) > strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static void check_messages(const struct replies *said)
{
    const char *at = said->data, *end = at + said->used;
    bool error = false;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        MUST(newline && !error);
        MUST(begins(at, newline, "{\"type\":\"") && newline[-1] == '}' && utf8_valid(at, (size_t)(newline - at)));
        error = begins(at, newline, "{\"type\":\"error\"");
        size_t follow = announced(at, newline);
        MUST(follow <= (size_t)(end - newline - 1));
        at = newline + 1 + follow;
    }
    MUST(error == (said->outcome != 0));
}

/* True for a password that cannot be in a reply by chance. */
static bool is_canary(const char *password)
{
    size_t length = strlen(password);
    return length >= 8 && memcmp(password, "S3cr", 4) == 0 && strspn(password, "S3cretanyCANARY0123456789") == length;
}

static void check(const struct replies *said)
{
    const char *password = fake_server.password;
    MUST(said->outcome == 0 || said->outcome == 3 || said->outcome == 4);
    MUST(!is_canary(password) || !memmem(said->data, said->used, password, strlen(password)));
    if (said->used < around.listens_bytes)
        check_messages(said);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < SCRIPT_BYTES)
        return -1;
    set_up(data, data + SCRIPT_BYTES, size - SCRIPT_BYTES, false);
    converse(&first);
    check(&first);
    if (data[0] == 0)
        return 0;
    set_up(data, data + SCRIPT_BYTES, size - SCRIPT_BYTES, true);
    converse(&second);
    check(&second);
    MUST(first.outcome == second.outcome && first.used == second.used);
    MUST(memcmp(first.data, second.data, first.used) == 0);
    return 0;
}
