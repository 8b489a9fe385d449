/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Threads that nobody joins. They are detached from their start: glibc's pthread_detach reads the memory of a thread
 * that ends beside it (sourceware bug 19951).
 */

#ifndef WEIR_CTESTS_DETACHED_H
#define WEIR_CTESTS_DETACHED_H

#include <pthread.h>

/* 0, or an error of pthread_create. */
static inline int start_detached(void *(*run)(void *), void *arg) {
    pthread_attr_t attr;
    pthread_t thread;
    int failed = pthread_attr_init(&attr);
    if (failed) return failed;
    failed = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (!failed) failed = pthread_create(&thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return failed;
}

#endif
