/* fuzz_token.c: any text as a token. What is accepted is written again as the same token; what is
 * refused has a sentence and leaves nothing behind. */
#include "common/diag.h"
#include "proto/token.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct token nothing;
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    struct diag *diag = diag_new(4);
    struct token token, again;
    if (token_parse(text, &token, diag) == 0) {
        char own[TOKEN_TEXT_SIZE];
        token_format(&token, own);
        if (token_parse(own, &again, NULL) != 0 || memcmp(&token, &again, sizeof(token)) != 0 ||
            diag_count(diag) != 0) {
            abort();
        }
    } else if (diag_errors(diag) != 1 || memcmp(&token, &nothing, sizeof(token)) != 0) {
        abort();
    }
    diag_free(&diag);
    free(text);
    return 0;
}
