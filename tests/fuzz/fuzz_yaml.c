/* fuzz_yaml.c: any bytes as a YAML document: either one located message and no tree, or a tree
 * within its limits. */
#include "common/diag.h"
#include "common/str.h"
#include "common/yaml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* Walks the whole tree; depth counts lists and maps above. */
static size_t check(const struct yaml_node *node, int depth)
{
    size_t nodes = 1;
    require(depth <= 32 && node->line >= 1 && node->column >= 1);
    if (node->kind == YAML_SCALAR) {
        require(node->count == 0 && str_is_utf8(node->text, strlen(node->text)));
        return nodes;
    }
    for (size_t i = 0; i < node->count; i++) {
        nodes += check(node->items[i], depth + 1);
        if (node->kind == YAML_MAP) {
            require(node->keys[i]->kind == YAML_SCALAR);
            require(yaml_get(node, node->keys[i]->text) == node->items[i]);
            nodes++;
        }
    }
    return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct diag *diag = diag_new(8);
    struct yaml_doc *doc = yaml_parse("fuzz", data, n, diag);
    if (doc == NULL) {
        require(diag_count(diag) == 1 && diag_get(diag, 0)->line >= 1 &&
                diag_get(diag, 0)->column >= 1);
    } else {
        require(diag_count(diag) == 0 && check(yaml_root(doc), 0) <= 100000);
    }
    yaml_doc_free(&doc);
    diag_free(&diag);
    return 0;
}
