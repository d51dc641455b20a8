/* Runs the inputs in the given files in sequence, without a fuzzer; any compiler can build it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The buffer has exactly the size of the file, so that a sanitizer detects a read beyond it. */
static void replay(const char *path)
{
    static uint8_t buffer[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file)
        exit(2);
    size_t size = fread(buffer, 1, sizeof buffer, file);
    uint8_t *data = malloc(size ? size : 1);
    if (!data)
        exit(2);
    for (size_t i = 0; i < size; i++)
        data[i] = buffer[i];
    fclose(file);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    return 0;
}
