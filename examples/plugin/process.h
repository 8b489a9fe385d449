/* The worker process and the file that is its memory, seen from the plug-in.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef REMOTE_PROCESS_H
#define REMOTE_PROCESS_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol.h"

struct process {
    pid_t pid;
    int memory_fd;
    char *space; /* where the memory would be in this process: nobody may read or write there */
    int connections[REMOTE_CONNECTIONS];
    pthread_mutex_t turns[REMOTE_CONNECTIONS]; /* one request at a time */
};

/* Starts a worker. 0, or -1 with a reason in `why`, of 128 bytes. */
int process_start(struct process *process, char *why);

/* Ends it, when nobody asks it any more. */
void process_end(struct process *process);

/* Has the worker do something, and waits for it. A weir_status: WEIR_DEVICE_LOST if the worker is gone. */
int32_t process_ask(struct process *process, int connection, const struct remote_request *request);

/* Reads and writes the memory from this side. */
int32_t process_write(struct process *process, uint64_t offset, const void *from, uint64_t bytes);
int32_t process_read(struct process *process, uint64_t offset, void *to, uint64_t bytes);

#endif
