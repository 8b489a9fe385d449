/* Starting the worker, and talking to it.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _GNU_SOURCE
#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

extern char **environ;

static const char program[] = "remote_worker";

/* The program lies beside this library. */
static int find_worker(char *path, size_t capacity) {
    Dl_info here;
    if (dladdr(&program, &here) == 0) return -1;
    const char *slash = strrchr(here.dli_fname, '/');
    int folder = slash == NULL ? 0 : (int)(slash - here.dli_fname + 1);
    int length = snprintf(path, capacity, "%.*s%s", folder, here.dli_fname, program);
    return length > 0 && (size_t)length < capacity ? 0 : -1;
}

/* posix_spawn, with the memory and the far ends of the connections under the numbers that the worker expects. They are
 * first moved out of the way of those numbers. */
static int spawn(struct process *process, const int *far_ends) {
    char path[4096];
    char *const arguments[] = {path, NULL};
    int moved[1 + REMOTE_CONNECTIONS], error = ENOENT;
    posix_spawn_file_actions_t actions;
    if (find_worker(path, sizeof path) != 0) return ENOENT;
    if (posix_spawn_file_actions_init(&actions) != 0) return ENOMEM;
    for (int i = 0; i <= REMOTE_CONNECTIONS; i++) {
        moved[i] = fcntl(i == 0 ? process->memory_fd : far_ends[i - 1], F_DUPFD_CLOEXEC, 64);
        if (moved[i] >= 0) posix_spawn_file_actions_adddup2(&actions, moved[i], REMOTE_MEMORY_FD + i);
    }
    error = posix_spawn(&process->pid, path, &actions, NULL, arguments, environ);
    for (int i = 0; i <= REMOTE_CONNECTIONS; i++) {
        if (moved[i] >= 0) close(moved[i]);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int process_start(struct process *process, char *why) {
    int ends[REMOTE_CONNECTIONS][2], far_ends[REMOTE_CONNECTIONS], made = 0, error = 0;
    memset(process, 0, sizeof *process);
    process->memory_fd = memfd_create("remote device memory", MFD_CLOEXEC);
    process->space = mmap(NULL, REMOTE_MEMORY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (process->memory_fd < 0 || process->space == MAP_FAILED || ftruncate(process->memory_fd, (off_t)REMOTE_MEMORY_BYTES) != 0) {
        error = errno;
    }
    while (error == 0 && made < REMOTE_CONNECTIONS) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[made]) != 0) {
            error = errno;
            break;
        }
        process->connections[made] = ends[made][0];
        far_ends[made] = ends[made][1];
        pthread_mutex_init(&process->turns[made], NULL);
        made++;
    }
    if (error == 0) error = spawn(process, far_ends);
    for (int i = 0; i < made; i++) close(far_ends[i]);
    if (error == 0) return 0;
    snprintf(why, 128, "the worker cannot be started: %s", strerror(error));
    for (int i = 0; i < made; i++) {
        close(process->connections[i]);
        pthread_mutex_destroy(&process->turns[i]);
    }
    if (process->space != MAP_FAILED) munmap(process->space, REMOTE_MEMORY_BYTES);
    if (process->memory_fd >= 0) close(process->memory_fd);
    return -1;
}

void process_end(struct process *process) {
    for (int i = 0; i < REMOTE_CONNECTIONS; i++) close(process->connections[i]); /* that ends it */
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR) {}
    for (int i = 0; i < REMOTE_CONNECTIONS; i++) pthread_mutex_destroy(&process->turns[i]);
    munmap(process->space, REMOTE_MEMORY_BYTES);
    close(process->memory_fd);
}

int32_t process_ask(struct process *process, int connection, const struct remote_request *request) {
    struct remote_answer answer = {WEIR_DEVICE_LOST};
    int fd = process->connections[connection];
    pthread_mutex_lock(&process->turns[connection]);
    if (send(fd, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request ||
        recv(fd, &answer, sizeof answer, MSG_WAITALL) != (ssize_t)sizeof answer) {
        answer.status = WEIR_DEVICE_LOST;
    }
    pthread_mutex_unlock(&process->turns[connection]);
    return answer.status;
}

int32_t process_write(struct process *process, uint64_t offset, const void *from, uint64_t bytes) {
    for (const char *at = from; bytes > 0;) {
        ssize_t done = pwrite(process->memory_fd, at, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return WEIR_DATA_LOSS;
        at += done, offset += (uint64_t)done, bytes -= (uint64_t)done;
    }
    return WEIR_OK;
}

int32_t process_read(struct process *process, uint64_t offset, void *to, uint64_t bytes) {
    for (char *at = to; bytes > 0;) {
        ssize_t done = pread(process->memory_fd, at, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return WEIR_DATA_LOSS;
        at += done, offset += (uint64_t)done, bytes -= (uint64_t)done;
    }
    return WEIR_OK;
}
