/* Runs a fuzz target over files and folders without libFuzzer, so that every build replays the
 * corpora: replay PATH... A folder is replayed with all its files, not with folders below it.
 * Prints the number of inputs; ends with 1 when a path cannot be read or there was no input. */
#include "base/buf.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define INPUT_BYTES_MAX (64u << 20)
#define PATH_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is copied to memory of exactly its size: reading one byte too far is found by ASan. */
static int run(struct str input)
{
    uint8_t *exact = malloc(input.len ? input.len : 1);

    if (!exact)
        return -1;
    memcpy(exact, input.data, input.len);
    (void)LLVMFuzzerTestOneInput(exact, input.len);
    free(exact);
    return 0;
}

static int replay_file(const char *path)
{
    struct buf input = BUF_INIT(INPUT_BYTES_MAX);
    FILE *file = fopen(path, "rb");
    char part[4096];
    size_t got;
    int rc = -1;

    if (!file)
        goto out;
    while ((got = fread(part, 1, sizeof part, file)) > 0)
        buf_append(&input, part, got);
    if (!ferror(file) && !input.failed)
        rc = run(buf_view(&input));
out:
    if (rc < 0)
        fprintf(stderr, "cannot replay %s\n", path);
    if (file)
        fclose(file);
    buf_deinit(&input);
    return rc;
}

static int replay_folder(const char *path, unsigned long *count)
{
    struct dirent **entries;
    int found = scandir(path, &entries, NULL, alphasort);
    int rc = found < 0 ? -1 : 0;

    for (int i = 0; i < found; i++) {
        char name[PATH_BYTES_MAX];
        struct stat info;
        int len = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);

        free(entries[i]);
        if (len < 0 || (size_t)len >= sizeof name || stat(name, &info) < 0)
            rc = -1;
        else if (S_ISREG(info.st_mode) && replay_file(name) < 0)
            rc = -1;
        else if (S_ISREG(info.st_mode))
            (*count)++;
    }
    if (found >= 0)
        free(entries);
    return rc;
}

int main(int argc, char **argv)
{
    unsigned long count = 0;
    int rc = 0;

    for (int i = 1; i < argc; i++) {
        struct stat info;

        if (stat(argv[i], &info) < 0) {
            fprintf(stderr, "cannot replay %s\n", argv[i]);
            rc = -1;
        } else if (S_ISDIR(info.st_mode)) {
            rc |= replay_folder(argv[i], &count);
        } else {
            rc |= replay_file(argv[i]);
            count++;
        }
    }
    printf("%lu inputs replayed\n", count);
    return rc < 0 || count == 0;
}
