/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * ThreadSanitizer gives fences no meaning. Arc needs one: each drop subtracts from the count with Release, and the last
 * one then makes an Acquire fence before it destroys the value. Without it every shared object would be reported as
 * raced on by its destructor.
 *
 * In the memory model of C and Rust, an acquire fence after an atomic read acquires what that read has seen. These
 * wrappers (the linker puts them in front of the runtime's functions) do just that for the latest subtraction of the
 * calling thread, with the runtime's own acquire. It is less than the model grants, so it hides no race.
 */

#include <stdint.h>

enum { ACQUIRE = 2, ACQ_REL = 4, SEQ_CST = 5 }; /* as the runtime numbers them */

void __tsan_acquire(void *address);
uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *address, uint64_t value, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *address, uint64_t value, int order);
void __real___tsan_atomic_thread_fence(int order);
void __wrap___tsan_atomic_thread_fence(int order);

static _Thread_local volatile uint64_t *latest;

uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *address, uint64_t value, int order) {
    uint64_t before = __real___tsan_atomic64_fetch_sub(address, value, order);
    /* Whoever did not bring a count to zero may not look at it again: it may be gone. */
    latest = before == value ? address : 0;
    return before;
}

void __wrap___tsan_atomic_thread_fence(int order) {
    __real___tsan_atomic_thread_fence(order);
    if ((order == ACQUIRE || order == ACQ_REL || order == SEQ_CST) && latest != 0) {
        __tsan_acquire((void *)(uintptr_t)latest);
        latest = 0;
    }
}
