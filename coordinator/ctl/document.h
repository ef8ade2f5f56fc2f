/* document.h: answers that are JSON documents: printed as they are, or as text for people. */
#ifndef MAKESPAN_COORDINATOR_CTL_DOCUMENT_H
#define MAKESPAN_COORDINATOR_CTL_DOCUMENT_H

#include "common/attr.h"
#include "common/json.h"

#include <stdint.h>

struct buf;
struct call;
struct ctl;
struct msg;

/* Appends a document as text. */
typedef void document_f(const json_t *doc, struct buf *out);

/* With --format json the document, else what `text` makes of it, to standard output. Exit status. */
int document_print(struct ctl *ctl, const struct buf *document, document_f *text) MUST_CHECK;
/* The same for the answer to a request with that number. Exit status. */
int document_ask(struct ctl *ctl, struct call *call, uint32_t number, const struct msg *request, document_f *text) MUST_CHECK;

#endif
