/* The timer of schedule_accuracy.py without a database: bare_timer GAP_NS COUNT sleeps until COUNT moments, GAP_NS
 * apart, and writes by how much it woke up late each time: numbers of 64 bits, ns. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define NS_PER_S 1000000000u

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    uint64_t gap_ns = strtoull(argv[1], NULL, 10), due_ns = now_ns();
    prctl(PR_SET_TIMERSLACK, 1ul); /* as the clients */
    for (long left = atol(argv[2]); left > 0; left--) {
        due_ns += gap_ns;
        struct timespec due = {.tv_sec = (time_t)(due_ns / NS_PER_S), .tv_nsec = (long)(due_ns % NS_PER_S)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL))
            ;
        uint64_t late_ns = now_ns() - due_ns;
        if (fwrite(&late_ns, sizeof late_ns, 1, stdout) != 1)
            return 1;
    }
    return fflush(stdout) != 0;
}
