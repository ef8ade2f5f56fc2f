/* document.c: asks for documents and prints them. Owns nothing. */
#include "coordinator/ctl/document.h"

#include "common/buf.h"
#include "coordinator/ctl/call.h"
#include "coordinator/ctl/ctl.h"

#include <stdio.h>

int document_print(struct ctl *ctl, const struct buf *document, document_f *text)
{
    struct buf out = BUF_INIT;
    json_t *doc;

    if (ctl->json) {
        fputs(buf_str(document), stdout);
        return CTL_DONE;
    }
    doc = json_parse("the answer", buf_str(document), document->len, ctl->diag);
    if (doc == NULL)
        return CTL_INFRASTRUCTURE;
    text(doc, &out);
    fputs(buf_str(&out), stdout);
    buf_fini(&out);
    json_decref(doc);
    return CTL_DONE;
}

int document_ask(struct ctl *ctl, struct call *call, uint32_t number, const struct msg *request, document_f *text)
{
    struct buf body = BUF_INIT;
    int status = call_document(call, number, request, &body);

    if (status == 0)
        status = document_print(ctl, &body, text);
    buf_fini(&body);
    return status;
}
