#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "failure.h"

extern char **environ;

void process_guard(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGPIPE, SIG_IGN);
}

/* The pages of data are the sixth field. -1 if they cannot be read. */
static int64_t data_bytes(void)
{
    int64_t pages = -1;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (!statm)
        return -1;
    if (fscanf(statm, "%*s %*s %*s %*s %*s %" SCNd64, &pages) != 1)
        pages = -1;
    fclose(statm);
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

int64_t process_limit_memory(int64_t more_bytes)
{
    struct rlimit limit;
    int64_t has = data_bytes();
    if (has < 0 || more_bytes > INT64_MAX - has || getrlimit(RLIMIT_DATA, &limit) != 0)
        return 0;
    rlim_t wanted = (rlim_t)(has + more_bytes);
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted)
        limit.rlim_max = wanted;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_DATA, &limit) == 0 ? (int64_t)limit.rlim_max : 0;
}

static void remove_variable(const char *entry)
{
    char *name = strndup(entry, strcspn(entry, "="));
    if (!name)
        failure_no_memory();
    unsetenv(name);
    free(name);
}

void process_clean_environment(void)
{
    char **entry = environ;
    while (entry && *entry) {
        if (strncmp(*entry, "PG", 2) == 0)
            remove_variable(*entry); /* the next variable moves to this place */
        else
            entry++;
    }
    setenv("PGTZ", "UTC", 1);
}

/* Opens closed standard streams. Otherwise the socket of the connection could become one of them. */
static bool fill_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

int process_keep_stdout(void)
{
    if (!fill_standard_descriptors())
        return -1;
    int replies = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (replies < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    return replies;
}

bool process_has_parent(int64_t runner_pid)
{
    return runner_pid == 0 || (int64_t)getppid() == runner_pid;
}
