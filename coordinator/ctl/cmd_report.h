/* cmd_report.h: what local.c too wants of the report. */
#ifndef MAKESPAN_COORDINATOR_CTL_CMD_REPORT_H
#define MAKESPAN_COORDINATOR_CTL_CMD_REPORT_H

struct call;
struct diag;

/* 0 when there is such a format of the report, else CTL_USAGE with text. */
int report_check_format(const char *format, struct diag *diag);

/* Prints a report to standard output. Exit status. */
int report_print(struct call *call, const char *sweep, const char *format);

#endif
