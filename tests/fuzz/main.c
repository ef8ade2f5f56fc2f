/*
 * Replays stored inputs through a fuzz target, without a fuzzer: the ordinary test run calls it
 * for every target with its corpus.
 *
 * usage: fuzz_NAME FILE|FOLDER...
 *
 * Every regular file below the given folders is read whole and handed to the target once, in the
 * order of names. Prints "N inputs". Exit status: 0 done, 1 a file could not be read or there was
 * none. What the target finds wrong ends the process by a signal.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct tally {
    long inputs;
    long errors;
};

static void replay_path(struct tally *tally, const char *path);

static void report_error(struct tally *tally, const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    tally->errors++;
}

static void replay_file(struct tally *tally, const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        report_error(tally, path);
        return;
    }
    /* Exactly as large as the input, so that a sanitizer sees the first byte read behind it. */
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (data == NULL || fread(data, 1, size, file) != size) {
        report_error(tally, path);
    } else {
        fprintf(stderr, "input %s\n", path);
        LLVMFuzzerTestOneInput(data, size);
        tally->inputs++;
    }
    free(data);
    fclose(file);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_folder(struct tally *tally, const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_visible, alphasort);
    if (count < 0) {
        report_error(tally, path);
        return;
    }
    for (int i = 0; i < count; i++) {
        size_t size = strlen(path) + strlen(entries[i]->d_name) + 2;
        char *child = malloc(size);
        if (child == NULL) {
            report_error(tally, path);
        } else {
            snprintf(child, size, "%s/%s", path, entries[i]->d_name);
            replay_path(tally, child);
        }
        free(child);
        free(entries[i]);
    }
    free(entries);
}

static void replay_path(struct tally *tally, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        report_error(tally, path);
    } else if (S_ISDIR(st.st_mode)) {
        replay_folder(tally, path);
    } else {
        replay_file(tally, path, (size_t)st.st_size);
    }
}

int main(int argc, char **argv)
{
    struct tally tally = {0, 0};
    for (int i = 1; i < argc; i++) {
        replay_path(&tally, argv[i]);
    }
    printf("%ld inputs\n", tally.inputs);
    return tally.errors == 0 && tally.inputs > 0 ? 0 : 1;
}
