/* yaml.h: a YAML document as a tree of nodes with their places, by libyaml, within limits.
 *
 * Scalars stay text; the schema decides the type. Refused: aliases and anchors, tags, several documents, duplicate keys, keys that are no
 * scalars, more than 1 MiB, more than 32 levels, more than 100 000 nodes, more than 100 directives, NUL bytes, bytes that are not UTF-8. */
#ifndef MAKESPAN_COMMON_YAML_H
#define MAKESPAN_COMMON_YAML_H

#include "common/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct diag;

enum yaml_kind { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    unsigned line;   /* from 1 */
    unsigned column; /* from 1, in characters */
    const char *text; /* scalar: its text, "" for an empty one */
    bool plain;       /* scalar: written without quotes */
    size_t count;     /* of list items or map pairs */
    const struct yaml_node **items; /* list items, or the values of a map */
    const struct yaml_node **keys;  /* the keys of a map (scalars), in the order of the file */
};

struct yaml_doc;

#define YAML_MAX_BYTES (1024 * 1024)

/* Parses the text; `file` names it in messages (copied). NULL with one located message in diag on failure. An empty document is an error. */
struct yaml_doc *yaml_parse(const char *file, const void *text, size_t n, struct diag *diag) MUST_CHECK;
/* NULL inside is fine. (libyaml itself exports a yaml_free.) */
void yaml_doc_free(struct yaml_doc **doc);
const struct yaml_node *yaml_root(const struct yaml_doc *doc);
const char *yaml_file(const struct yaml_doc *doc);
/* The value of a key in a map, or NULL. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);

#endif
