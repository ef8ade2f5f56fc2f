/* spec_shell_test.c: parameters in commands and `env`: what is put where, what is refused, and,
 * with a real shell, that no value gets out of its word. */
#include "proto/spec.h"

#include "common/buf.h"
#include "common/err.h"
#include "common/prng.h"
#include "tests/harness/place.h"
#include "tests/unit/proto/spec_help.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A text as a double-quoted YAML scalar. */
static void add_yaml(struct buf *out, const char *text)
{
    buf_add_char(out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            buf_add_char(out, '\\');
            buf_add_char(out, *p);
        } else if (*p == '\n') {
            buf_add_str(out, "\\n");
        } else {
            buf_add_char(out, *p);
        }
    }
    buf_add_char(out, '"');
}

/* The `run` command with the parameter x set; NULL with the messages when it is refused. */
static struct spec *with_run(const char *run, const char *value, const char **command,
                             struct buf *messages)
{
    struct buf text = BUF_INIT;
    buf_add_str(&text, "sweep: s\nparams: {x: old, long-name: other}\nworkload:\n  run: ");
    add_yaml(&text, run);
    buf_add_char(&text, '\n');
    struct diag *diag = diag_new(16);
    struct spec_set set = {"x", value};
    struct spec *spec = NULL;
    int rc = spec_parse("s.yaml", text.data, text.len, &set, 1, &spec, diag);
    cr_assert((rc == 0) == (spec != NULL));
    if (messages != NULL) {
        buf_reset(messages);
        diag_print(diag, messages);
    }
    *command = NULL;
    if (spec != NULL) {
        size_t n = 0;
        *command = spec_workloads(spec, &n)[0].run;
    }
    buf_fini(&text);
    diag_free(&diag);
    return spec;
}

Test(spec_shell, puts_values_where_they_are_one_word)
{
    static const struct {
        const char *run;
        const char *value;
        const char *command;
    } table[] = {
        {"make O=%{x}", "-O2", "make O='-O2'"},
        {"make O=\"-g %{x}\"", "-O2", "make O=\"-g \"'-O2'\"\""},
        {"make O='-g %{x} z'", "it's", "make O='-g it'\\''s z'"},
        {"make %{x}", "a b; c", "make 'a b; c'"},
        {"make %{x}", "", "make ''"},
        {"a$(b %{x} \"c%{x}\")", "v", "a$(b 'v' \"c\"'v'\"\")"},
        {"\"$(b \"%{x}\")$V%{x}\"", "v", "\"$(b \"\"'v'\"\")$V\"'v'\"\""},
        {"printf %%{x} %d %s%%", "v", "printf %{x} %d %s%%"},
        {"echo '%%{x}' \"%%{x}\"", "v", "echo '%{x}' \"%{x}\""},
        {"a # %{x} isn't\nb %{x}", "v", "a # %{x} isn't\nb 'v'"},
        {"a#%{x}", "v", "a#'v'"},
        {"sed s#$(pwd)#%{x}#", "v", "sed s#$(pwd)#'v'#"},
        {"sed s#`pwd`#%{x}#", "v", "sed s#`pwd`#'v'#"},
        {"a $((1 + 2))#%{x}", "v", "a $((1 + 2))#'v'"},
        {"\"$(a)\"#%{x} $(b) #%{x}", "v", "\"$(a)\"#'v' $(b) #%{x}"},
        {"a $(b)#'\n%{x}\n'", "v", "a $(b)#'\nv\n'"},
        {"(a)#%{x}\nb;#%{x}\n$(c (d)#%{x}\n)", "v", "(a)#%{x}\nb;#%{x}\n$(c (d)#%{x}\n)"},
        {"x=${y:-${z}} %{x}", "v", "x=${y:-${z}} 'v'"},
        {"x=$((1 + 2)) %{x}", "v", "x=$((1 + 2)) 'v'"},
        {"x=`a 'b'` %{x}", "v", "x=`a 'b'` 'v'"},
        {"cat <<E %{x}\ndon't\nE\n", "v", "cat <<E 'v'\ndon't\nE\n"},
        {"case %{x} in a) b;; esac; %{x}", "v", "case 'v' in a) b;; esac; 'v'"},
        {"(a; $(b (c)) %{x})", "v", "(a; $(b (c)) 'v')"},
        {"\"$(b (c) %{x})\"", "v", "\"$(b (c) 'v')\""},
        {"a\\\n%{x} \\\\ b", "v", "a\\\n'v' \\\\ b"},
        {"%{x}%{x}", "v", "'v''v'"},
        {"%{long-name} %{x}", "v", "'other' 'v'"},
        {"a % { %x} 100%", "v", "a % { %x} 100%"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *command = NULL;
        struct buf messages = BUF_INIT;
        struct spec *spec = with_run(table[i].run, table[i].value, &command, &messages);
        cr_assert_not_null(spec, "`%s` was refused: %s", table[i].run, buf_str(&messages));
        cr_expect_str_eq(command, table[i].command, "`%s` gave `%s`", table[i].run, command);
        spec_free(&spec);
        buf_fini(&messages);
    }
}

Test(spec_shell, refuses_where_it_cannot_be_sure)
{
    static const struct {
        const char *run;
        const char *message;
    } table[] = {
        {"a \\%{x}", "a parameter cannot be put directly after a backslash; set a shell variable "
                     "from it before (`x=%{name}`) and use \"$x\" there"},
        {"a \"\\%{x}\"", "directly after a backslash"},
        {"a $%{x}", "directly after a $"},
        {"a ${%{x}}", "within ${...}"},
        {"a ${y:-%{x}}", "within ${...}"},
        {"a $((1 + %{x}))", "within $((...))"},
        {"a `b %{x}`", "within backquotes"},
        {"cat <<E\n%{x}\nE\n", "on a line after a here-document begins"},
        {"cat <<E\na\nE\nb %{x}\n", "on a line after a here-document begins"},
        {"a $(case b in c) d;; esac) %{x}", "behind a `case` within $(...)"},
        {"a \"$(case b in c) '%{x}';; esac)\"", "behind a `case` within $(...)"},
        {"a ${y#'}'} %{x}", "behind a ${...} with quotes, backslashes or commands in it"},
        {"a ${y:-$(b)} %{x}", "behind a ${...} with quotes, backslashes or commands in it"},
        {"a $((b ')')) %{x}", "behind a $((...)) with quotes or braces in it"},
        {"a $'b\\'c' %{x}", "behind $'...', which not every shell understands"},
        {"a\\ # '\nb %{x} '", "behind a backslash, a character and a #"},
        {"a %{x", "`%{` without its `}`; a plain `%{` is written `%%{`"},
        {"a %{}", "`%{}`: there is no such parameter in `params`"},
        {"a %{y}", "`%{y}`: there is no such parameter in `params`"},
        {"a %{long-nmae}", "`%{long-nmae}`: there is no such parameter; did you mean `long-name`?"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const char *command = NULL;
        struct buf messages = BUF_INIT;
        struct spec *spec = with_run(table[i].run, "v", &command, &messages);
        cr_expect_null(spec, "`%s` gave `%s`", table[i].run, command);
        cr_expect(strncmp(buf_str(&messages), "s.yaml:4:8: ", 12) == 0, "%s", buf_str(&messages));
        cr_expect_not_null(strstr(buf_str(&messages), table[i].message), "`%s`: %s", table[i].run,
                           buf_str(&messages));
        spec_free(&spec);
        buf_fini(&messages);
    }
}

/* Runs a command with /bin/sh in a folder, nothing on its standard input; its output, at most room
 * - 1 bytes, in dst. */
static int run_shell(const char *folder, const char *command, char *dst, size_t room)
{
    int fds[2];
    cr_assert(pipe(fds) == 0);
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        if (chdir(folder) == 0 && dup2(fds[1], 1) == 1 &&
            freopen("/dev/null", "r", stdin) != NULL && freopen("/dev/null", "w", stderr) != NULL) {
            close(fds[0]);
            close(fds[1]);
            execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        }
        _exit(126);
    }
    close(fds[1]);
    size_t len = 0;
    for (;;) {
        char extra[256];
        ssize_t n = len + 1 < room ? read(fds[0], dst + len, room - 1 - len)
                                   : read(fds[0], extra, sizeof(extra));
        if (n <= 0) {
            break;
        }
        len += len + 1 < room ? (size_t)n : 0;
    }
    dst[len] = '\0';
    close(fds[0]);
    int status = 0;
    cr_assert(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *const hostile[] = {
    "plain",
    "",
    "two words",
    " lead and trail ",
    "semi; touch canary",
    "& touch canary & echo",
    "| touch canary |",
    "$(touch canary)",
    "`touch canary`",
    "'; touch canary; '",
    "\"; touch canary; \"",
    "'\"'\"`$(touch canary)",
    "a\ntouch canary\nb",
    "\\",
    "\\\\'",
    "end\\",
    "$HOME ${HOME} $1 $$ $?",
    "* ? [a-z] ~ {a,b}",
    "#not a comment",
    "!history",
    ")) || touch canary; ((",
    "}; touch canary; {",
    "\t tab \r return",
    "\xc3\xa9\xe2\x82\xac",
    "%{x} %%{x} %s",
    "-n",
};

Test(spec_shell, a_hostile_value_stays_one_word_in_a_real_shell)
{
    /* each prints <VALUE> and nothing else when the value is one word where it stands */
    static const char *const runs[] = {
        "printf '<%s>' %{x}",
        "printf '<%s>' \"%{x}\"",
        "v=%{x}; printf '<%s>' \"$v\"",
        "v=\"%{x}\"; printf '<%s>' \"$v\"",
        "printf '<%s>' \"$(printf '%s.' %{x})\" | sed '$s/\\.>$/>/'",
        "printf '<%s>' \"$(printf '%s.' \"%{x}\")\" | sed '$s/\\.>$/>/'",
        "sh -c 'printf \"<%s>\" \"$1\"' sh %{x}",
        "for v in %{x}; do printf '<%s>' \"$v\"; done",
        "case a in a) printf '<%s>' %{x};; esac",
        "f() { printf '<%s>' \"$1\"; }; f %{x} # %{x} isn't here",
        "y=${z:-1}; test $((y + 1)) = 2 && (printf '<%s>' \"%{x}\")",
        "env V=%{x} sh -c 'printf \"<%s>\" \"$V\"'",
        "printf '<%s>' ''%{x}\"\"",
        "if :; then\n  printf '<%s>' \\\n    %{x}\nfi",
        "v=$(:)#%{x}; printf '<%s>' \"${v#?}\"",
        "v=`:`#'%{x}'; printf '<%s>' \"${v#?}\"",
        "v=$((1))#'\n%{x}'; printf '<%s>' \"${v#???}\"",
    };
    char folder[200];
    place_new_dir(folder, sizeof(folder), "makespan-shell");
    for (size_t r = 0; r < ARRAY_LEN(runs); r++) {
        for (size_t v = 0; v < ARRAY_LEN(hostile); v++) {
            const char *command = NULL;
            char expected[256];
            char output[512];
            struct buf messages = BUF_INIT;
            struct spec *spec = with_run(runs[r], hostile[v], &command, &messages);
            cr_assert_not_null(spec, "`%s` was refused: %s", runs[r], buf_str(&messages));
            snprintf(expected, sizeof(expected), "<%s>", hostile[v]);
            int rc = run_shell(folder, command, output, sizeof(output));
            cr_expect(rc == 0, "%s: exit %d", command, rc);
            cr_expect_str_eq(output, expected, "`%s` printed `%s`, not `%s`", command, output,
                             expected);
            spec_free(&spec);
            buf_fini(&messages);
        }
    }
    char canary[256];
    snprintf(canary, sizeof(canary), "%s/canary", folder);
    cr_expect(access(canary, F_OK) != 0, "a value was run as a command");
    (void)unlink(canary);
    cr_expect(rmdir(folder) == 0);
}

Test(spec_shell, no_value_gets_out_of_random_commands)
{
    /* The pieces do no harm whatever they make together; most of what comes out is no valid
     * command, and that is fine. What counts is that nothing of the value is run. */
    static const char *const pieces[] = {
        "\"",
        "'",
        "`",
        "\\",
        "$",
        "(",
        ")",
        "$(",
        "$((",
        "))",
        "${z",
        "${z:-",
        "}",
        "{ ",
        " ",
        " ",
        "\n",
        ";",
        "#",
        " #",
        "<<E",
        "\nE\n",
        "case a in a) ",
        ";; esac",
        ":",
        ": ",
        "=",
        "%{x}",
        "%{x}",
        " %{x}",
        "\"%{x}\"",
        "'%{x}'",
        "%%{",
        "%",
        "&&",
        "||",
        "!",
        "if :; then ",
        "\nfi\n",
        "a",
        "\\\n",
    };
    static const char *const values[] = {
        "a\n>canary\n#",    "';>canary;'", "\";>canary;\"",  "$(>canary)",
        "`>canary`",        ");>canary;(", "}\n>canary\n{",  "\nE\n>canary\n",
        "\\';>canary;\\\"", "x>canary",    ";;esac;>canary",
    };
    char folder[200];
    char canary[256];
    struct prng g;
    const char *rounds = getenv("MAKESPAN_SHELL_ROUNDS");
    long n = rounds != NULL ? strtol(rounds, NULL, 10) : 400;
    size_t ran = 0;
    prng_init(&g, rounds != NULL ? (uint64_t)getpid() : 1);
    place_new_dir(folder, sizeof(folder), "makespan-shell");
    snprintf(canary, sizeof(canary), "%s/canary", folder);
    for (long i = 0; i < n; i++) {
        struct buf run = BUF_INIT;
        const char *command = NULL;
        char output[512];
        size_t count = (size_t)(1 + prng_below(&g, 12));
        for (size_t k = 0; k < count; k++) {
            buf_add_str(&run, pieces[prng_below(&g, ARRAY_LEN(pieces))]);
        }
        const char *value = values[prng_below(&g, ARRAY_LEN(values))];
        struct spec *spec = with_run(buf_str(&run), value, &command, NULL);
        if (spec != NULL && strstr(command, "canary") != NULL) {
            (void)run_shell(folder, command, output, sizeof(output));
            ran++;
            cr_assert(access(canary, F_OK) != 0, "`%s` with `%s` gave\n%s\nwhich ran the value",
                      buf_str(&run), value, command);
        }
        spec_free(&spec);
        buf_fini(&run);
    }
    cr_expect(ran >= (size_t)n / 10, "only %zu commands were tried", ran);
    cr_expect(rmdir(folder) == 0);
}

Test(spec_shell, values_of_env_are_put_in_as_they_are)
{
    struct diag *diag = diag_new(8);
    static const char text[] =
        "sweep: s\nparams: {x: old}\nworkload: {run: make}\n"
        "variants: [{name: a, env: {A: \"-%{x}-%%{x}\", B: \"%{x}%{x}\", C: \"\"}}]\n";
    struct spec_set sets[] = {{"x", "first"}, {"x", "it's \"$x\"\n"}};
    struct spec *spec = NULL;
    cr_assert(spec_parse("s", text, strlen(text), sets, 2, &spec, diag) == 0, "%s",
              diag_first(diag));
    size_t n = 0;
    const struct spec_variant *v = spec_variants(spec, &n);
    cr_expect_str_eq(v[0].env[0].value, "-it's \"$x\"\n-%{x}");
    cr_expect_str_eq(v[0].env[1].value, "it's \"$x\"\nit's \"$x\"\n");
    cr_expect_str_eq(v[0].env[2].value, "");
    const struct spec_param *p = spec_params(spec, &n);
    cr_expect(p[0].is_set);
    cr_expect_str_eq(p[0].value, "it's \"$x\"\n");
    spec_free(&spec);
    diag_free(&diag);
}

Test(spec_shell, says_mistakes_in_params_and_sets)
{
    HELP_EXPECT_MESSAGES("sweep: s\nparams: [a]\nworkload: {run: x}\n",
                         "s.yaml:2:9: params: must be a map, as {name: value}\n");
    HELP_EXPECT_MESSAGES(
        "sweep: s\nparams: {a b: 1, c: [d], e: f}\nworkload: {run: \"x %{g}\"}\nvariants: [{name: "
        "a, env: {X: \"%{h\"}}]\n",
        "s.yaml:2:10: params: `a b` is not a name: 1 to 64 of A-Z a-z 0-9 . _ + , = -\n"
        "s.yaml:2:21: params: the value of `c` must be plain text\n"
        "s.yaml:3:17: `%{g}`: there is no such parameter in `params`\n"
        "s.yaml:4:31: `%{` without its `}`; a plain `%{` is written `%%{`\n");
    HELP_EXPECT_MESSAGES("sweep: s\nparams: {used: 1, idle: 2}\nworkload: {run: \"x %{used}\"}\n",
                         "s.yaml:2:19: warning: params: `idle` is used nowhere\n");
    static const char text[] =
        "sweep: s\nparams: {optimise: 1}\nworkload: {run: \"x %{optimise}\"}\n";
    struct spec_set sets[] = {{"optimize", "2"}, {"y", "3"}, {"optimise", "\xff"}};
    struct diag *diag = diag_new(8);
    struct spec *spec = NULL;
    cr_expect(spec_parse("s.yaml", text, strlen(text), sets, 3, &spec, diag) == -ERR_NOTFOUND);
    cr_assert(diag_count(diag) == 3);
    cr_expect_str_eq(diag_get(diag, 0)->text,
                     "--set optimize: the file has no such parameter; did you mean `optimise`?");
    cr_expect_str_eq(diag_get(diag, 1)->text, "--set y: the file has no such parameter");
    cr_expect_str_eq(diag_get(diag, 2)->text,
                     "--set optimise: the value is not UTF-8 of at most 4096 bytes");
    diag_free(&diag);
}

Test(spec_shell, long_values_and_commands_have_limits)
{
    struct buf text = BUF_INIT;
    struct diag *diag = diag_new(8);
    struct spec *spec = NULL;
    char value[4098];
    memset(value, 'v', 4096);
    value[4096] = '\0';
    struct spec_set set = {"x", value};
    buf_add_str(&text, "sweep: s\nparams: {x: old}\nworkload: {run: \"");
    for (int i = 0; i < 15; i++) {
        buf_add_str(&text, "%{x}");
    }
    size_t fits = text.len;
    buf_add_str(&text, "\"}\n");
    cr_expect(spec_parse("s", text.data, text.len, &set, 1, &spec, diag) == 0, "%s",
              diag_first(diag));
    spec_free(&spec);
    text.len = fits;
    buf_add_str(&text, "%{x}\"}\n");
    cr_expect(spec_parse("s", text.data, text.len, &set, 1, &spec, diag) == -ERR_LIMIT);
    cr_expect_str_eq(diag_first(diag),
                     "run: the command with its parameters is longer than 65536 bytes");
    diag_clear(diag);
    value[4096] = 'v';
    value[4097] = '\0';
    cr_expect(spec_parse("s", text.data, text.len, &set, 1, &spec, diag) == -ERR_INVAL);
    buf_fini(&text);
    diag_free(&diag);
}
