/* file.h: an open file of a node, by the number that children get: for the fakes alone. */
#ifndef MAKESPAN_TESTS_SIM_FAKES_FILE_H
#define MAKESPAN_TESTS_SIM_FAKES_FILE_H

#include "common/fileio.h"

struct disk;
struct inode;
struct node;

struct sim_open {
    struct sim_open *next;
    struct disk *disk;
    struct inode *inode;
    int fd;
    char path[FILE_PATH_MAX];
};

/* NULL when the node has no such file open. */
struct sim_open *sim_open_find(struct node *node, int fd);

#endif
