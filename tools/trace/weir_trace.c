/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Runs a program with a trace of its whole process, which the library records and saves itself: this program says by
 * the variable WEIR_TRACE of the environment what it shall do (docs/trace.md).
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

/* As env and timeout have them. */
enum { TROUBLE = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

enum { MOST_FILES = 16 };

static const char usage_text[] =
    "usage: weir_trace [option]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs a program that uses weir, and records what ran where and when, from its first call of weir to its end. The\n"
    "trace is written when it returns from main or calls exit.\n"
    "\n"
    "    -o, --output FILE     where to; may be there several times. In FILE %p is the number of the process, and %%\n"
    "                          a percent sign. Without it a report goes to standard error\n"
    "    -f, --format FORMAT   of the FILE that comes next: perfetto, chrome, folded, pprof, report, html or json.\n"
    "                          Without it the FILE's ending says so: these words, or pftrace, pb, txt\n"
    "    --keep-last           a thread that has made too many records loses its oldest, not its newest\n"
    "    --records N           how many records a thread keeps, 64 to 67108864; default 65536\n"
    "    --threads N           how many threads may make records, 1 to 4096; default 64\n"
    "    --help, --version\n"
    "\n"
    "Exit status: that of the program. A signal that ends the program ends weir_trace too. 125 = nothing was run,\n"
    "126 = the program cannot be executed, 127 = there is no such program.\n";

static int trouble(const char *what, const char *why) {
    fprintf(stderr, "weir_trace: %s: %s\n", what, why);
    return TROUBLE;
}

static int misused(const char *what, const char *why) {
    trouble(what, why);
    fputs("Try 'weir_trace --help'.\n", stderr);
    return TROUBLE;
}

/* ---- What is asked for --------------------------------------------------------------------------------------- */

/* A text that grows. What does not fit into memory ends the program, which has run nothing yet. */
typedef struct text {
    char *data;
    size_t length, room;
} text;

static void add(text *to, const char *more) {
    const size_t length = strlen(more);
    if (to->length + length + 1 > to->room) {
        to->room = 2 * (to->length + length + 1);
        to->data = realloc(to->data, to->room);
        if (to->data == NULL) exit(trouble("the arguments", strerror(ENOMEM)));
    }
    memcpy(to->data + to->length, more, length + 1);
    to->length += length;
}

/* With the characters in `special` behind a percent sign, as they stand for themselves in WEIR_TRACE. */
static void add_escaped(text *to, const char *more, const char *special) {
    for (; *more != '\0'; more++) {
        const char character[] = {*more, '\0'};
        if (strchr(special, *more) != NULL) add(to, "%");
        add(to, character);
    }
}

typedef struct request {
    struct {
        const char *path, *format;
    } files[MOST_FILES];
    int num_files;
    const char *format; /* of the next file, or NULL */
    const char *records, *threads;
    bool keep_last;
} request;

static const struct ending {
    const char *ending, *format;
} endings[] = {
    {"perfetto", "perfetto"}, {"chrome", "chrome"}, {"folded", "folded"}, {"pprof", "pprof"}, {"report", "report"},
    {"html", "html"},         {"json", "json"},     {"pftrace", "perfetto"}, {"pb", "pprof"}, {"txt", "report"},
};

enum { NUM_ENDINGS = sizeof endings / sizeof endings[0], NUM_FORMATS = 7 };

/* The format that one of the first `known` endings stands for, or NULL. */
static const char *format_of(const char *ending, int known) {
    for (int i = 0; i < known; i++) {
        if (strcmp(endings[i].ending, ending) == 0) return endings[i].format;
    }
    return NULL;
}

static int take_file(request *asked, const char *path) {
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    const char *format = asked->format;
    if (asked->num_files == MOST_FILES) return misused(path, "this is one file too many, expected 16 at most");
    if (*name == '\0') return misused(path, "this names no file");
    for (const char *at = strchr(path, '%'); at != NULL; at = strchr(at + 2, '%')) {
        if (at[1] != 'p' && at[1] != '%') return misused(path, "a percent sign is written %%, and %p is the process");
    }
    if (format == NULL && strrchr(name, '.') != NULL) format = format_of(strrchr(name, '.') + 1, NUM_ENDINGS);
    if (format == NULL) return misused(path, "its ending names no format, which -f FORMAT before it would do");
    asked->files[asked->num_files].path = path;
    asked->files[asked->num_files++].format = format;
    asked->format = NULL;
    return 0;
}

static int take_format(request *asked, const char *name) {
    if (asked->format != NULL) return misused(name, "there is no -o FILE between this format and the one before");
    asked->format = format_of(name, NUM_FORMATS);
    if (asked->format != NULL) return 0;
    return misused(name, "no such format, expected perfetto, chrome, folded, pprof, report, html or json");
}

static int take_number(const char **out, const char *option, const char *value, long least, long most) {
    char *end = NULL;
    errno = 0;
    const long number = strtol(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < least || number > most) {
        fprintf(stderr, "weir_trace: %s is '%s', expected %ld to %ld\n", option, value, least, most);
        return TROUBLE;
    }
    *out = value;
    return 0;
}

/* Takes the options away. -1 if there is nothing to run and all is well, else 0 or TROUBLE. */
static int take_options(int argc, char **argv, request *asked) {
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},  {"format", required_argument, NULL, 'f'},
        {"keep-last", no_argument, NULL, 'k'},     {"records", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},       {NULL, 0, NULL, 0},
    };
    int option, status = 0;
    /* The first word that is no option is the program. */
    while (status == 0 && (option = getopt_long(argc, argv, "+o:f:h", options, NULL)) != -1) {
        switch (option) {
        case 'o': status = take_file(asked, optarg); break;
        case 'f': status = take_format(asked, optarg); break;
        case 'k': asked->keep_last = true; break;
        case 'r': status = take_number(&asked->records, "--records", optarg, 64, 67108864); break;
        case 't': status = take_number(&asked->threads, "--threads", optarg, 1, 4096); break;
        case 'h': fputs(usage_text, stdout); return -1;
        case 'v':
            printf("weir_trace %d.%d.%d\n", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
            return -1;
        default: fputs("Try 'weir_trace --help'.\n", stderr); return TROUBLE;
        }
    }
    if (status != 0) return status;
    if (optind == argc) return misused("there is no program to run", "expected PROGRAM");
    if (asked->format == NULL) return 0;
    if (asked->num_files > 0) return misused(asked->format, "there is no -o FILE behind this format");
    const bool is_text = strcmp(asked->format, "report") == 0 || strcmp(asked->format, "json") == 0 ||
                         strcmp(asked->format, "folded") == 0;
    return is_text ? 0 : misused(asked->format, "a trace in this format needs a file, -o FILE");
}

/* The value of WEIR_TRACE. Its paths hold in every directory that the program goes to. `folder` is for the log, and for
 * what goes to standard error. */
static const char *variable(const request *asked, const char *folder) {
    text value = {NULL, 0, 0};
    char *here = getcwd(NULL, 0);
    if (here == NULL) exit(trouble("the working directory", strerror(errno)));
    add(&value, "log:"), add_escaped(&value, folder, "%;"), add(&value, "/log");
    for (int i = 0; i < asked->num_files; i++) {
        add(&value, ";"), add(&value, asked->files[i].format), add(&value, ":");
        if (asked->files[i].path[0] != '/') add_escaped(&value, here, "%;"), add(&value, "/");
        add_escaped(&value, asked->files[i].path, ";");
    }
    if (asked->num_files == 0) {
        add(&value, ";"), add(&value, asked->format != NULL ? asked->format : "report"), add(&value, ":");
        add_escaped(&value, folder, "%;"), add(&value, "/%p");
    }
    if (asked->records != NULL) add(&value, ";records="), add(&value, asked->records);
    if (asked->threads != NULL) add(&value, ";threads="), add(&value, asked->threads);
    if (asked->keep_last) add(&value, ";keep_last");
    free(here);
    return value.data;
}

/* ---- The program ---------------------------------------------------------------------------------------------- */

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

/* Becomes the program. Tells through `report` why not. */
static void become(char **argv, int report, const sigset_t *mask, const struct sigaction *child_action) {
    sigaction(SIGCHLD, child_action, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    const int error = errno;
    while (write(report, &error, sizeof error) < 0 && errno == EINTR) {
    }
    _exit(error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

/* Waits for the program's end. What another process sends to this one it is sent as well; what a terminal sends it has
 * got already, as all of its group. */
static int wait_for(pid_t program, const sigset_t *signals) {
    for (;;) {
        int status = 0;
        siginfo_t info;
        const int received = sigwaitinfo(signals, &info);
        if (received == SIGCHLD) {
            if (waitpid(program, &status, WNOHANG) == program) return status;
        } else if (received > 0 && info.si_code <= 0) {
            kill(program, received);
        }
    }
}

/* Runs it. 0 and its status, or how this program ends if it did not start. Signals stay blocked, so that this program
 * does not leave its folder behind. */
static int run(char **argv, int *out_status) {
    int report[2], error = 0;
    sigset_t signals, mask;
    struct sigaction child_action;
    const struct sigaction default_action = {.sa_handler = SIG_DFL};
    if (pipe(report) != 0) return trouble("a pipe", strerror(errno));
    fcntl(report[1], F_SETFD, FD_CLOEXEC);
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++) sigaddset(&signals, forwarded[i]);
    sigaction(SIGCHLD, &default_action, &child_action); /* where it is ignored there is nobody to wait for */
    sigprocmask(SIG_BLOCK, &signals, &mask);
    const pid_t program = fork();
    if (program == 0) {
        close(report[0]);
        become(argv, report[1], &mask, &child_action);
    }
    close(report[1]);
    if (program < 0) return trouble("fork", strerror(errno));
    ssize_t got;
    while ((got = read(report[0], &error, sizeof error)) < 0 && errno == EINTR) {
    }
    close(report[0]);
    *out_status = wait_for(program, &signals);
    if (got != sizeof error) return 0;
    trouble(argv[0], strerror(error));
    return error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

/* Ends as the program has ended. */
static int end_as(int status) {
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    /* The program has left its core, if it was to leave one. */
    const struct rlimit none = {0, 0};
    const struct sigaction default_action = {.sa_handler = SIG_DFL};
    sigset_t one;
    setrlimit(RLIMIT_CORE, &none);
    sigaction(WTERMSIG(status), &default_action, NULL);
    sigemptyset(&one);
    sigaddset(&one, WTERMSIG(status));
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* ---- What came of it ------------------------------------------------------------------------------------------ */

static void print_file(const char *path) {
    char chunk[4096];
    size_t got;
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) fwrite(chunk, 1, got, stderr);
    fclose(file);
}

/* Says what was written, and shows what was to be shown. */
static void tell(const char *program, const char *folder) {
    int began = 0, wrote = 0, failed = 0;
    char *line = NULL;
    size_t room = 0;
    text path = {NULL, 0, 0};
    signal(SIGPIPE, SIG_IGN); /* nobody may be there to read this */
    add(&path, folder), add(&path, "/log");
    FILE *log = fopen(path.data, "r");
    while (log != NULL && getline(&line, &room, log) > 0) {
        line[strcspn(line, "\n")] = '\0';
        began += strncmp(line, "began", 5) == 0;
        failed += strncmp(line, "failed", 6) == 0;
        if (strncmp(line, "wrote ", 6) != 0) continue;
        wrote++;
        const bool is_shown = strncmp(line + 6, folder, strlen(folder)) == 0 && line[6 + strlen(folder)] == '/';
        if (is_shown) print_file(line + 6);
        else fprintf(stderr, "weir_trace: wrote %s\n", line + 6);
    }
    if (log != NULL) fclose(log);
    free(line), free(path.data);
    /* Of what has failed the library has spoken. */
    if (began + failed == 0) {
        trouble(program, "did not use weir, so there is no trace");
    } else if (wrote + failed == 0) {
        trouble(program, "ended without exit (by a signal, abort, _exit or exec), so no trace was written");
    }
}

static void remove_folder(const char *folder) {
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        unlinkat(dirfd(entries), entry->d_name, 0); /* not of . and .. */
    }
    if (entries != NULL) closedir(entries);
    rmdir(folder);
}

int main(int argc, char **argv) {
    request asked = {.num_files = 0};
    text folder = {NULL, 0, 0};
    int status = take_options(argc, argv, &asked), ended = 0;
    if (status != 0) return status < 0 ? 0 : status;
    const char *temporary = getenv("TMPDIR");
    add(&folder, temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
    add(&folder, "/weir_trace.XXXXXX");
    if (mkdtemp(folder.data) == NULL) return trouble(folder.data, strerror(errno));
    if (setenv("WEIR_TRACE", variable(&asked, folder.data), 1) != 0) {
        status = trouble("WEIR_TRACE", strerror(errno));
    } else {
        status = run(argv + optind, &ended);
    }
    if (status == 0) tell(argv[optind], folder.data);
    remove_folder(folder.data);
    free(folder.data);
    return status != 0 ? status : end_as(ended);
}
