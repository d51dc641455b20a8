/* Prints intended starts, one a line: RATE KIND SEED COUNT. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule.h"

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    struct schedule schedule =
        schedule_begin(strtod(argv[1], NULL), strcmp(argv[2], "exponential") == 0, strtoull(argv[3], NULL, 10), 0);
    for (long left = strtol(argv[4], NULL, 10); left > 0; left--) {
        printf("%" PRIu64 "\n", schedule.due_ns);
        schedule_advance(&schedule);
    }
    return 0;
}
