/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 *     exercise_module <module>
 *
 * Runs everything on the pool of a module that exports weir_conformance_pool.
 */

#include <dlfcn.h>

#include "exercise.h"
#include "make.h"

int main(int argc, char **argv) {
    int (*make)(weir_threadpool_vtable *, void **) = NULL;
    weir_threadpool_vtable vtable;
    void *ctx = NULL;
    CHECK_EQ(argc, 2);
    void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL); /* stays open: its threads may */
    if (module == NULL) check_failed(__FILE__, __LINE__, argv[1], dlerror());
    *(void **)&make = dlsym(module, "weir_conformance_pool");
    CHECK(make != NULL);
    CHECK_EQ(make(&vtable, &ctx), 0);
    exercise_vtable(&vtable, ctx);
    return 0;
}
