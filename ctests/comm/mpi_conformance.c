/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The adapter for MPI keeps its side of the contract, clause by clause.
 */

#include <weir/conformance.h>

#include "mpi_ranks.h"

static void report(void *arg, const weir_conformance_line *line) {
    static const char *const verdicts[] = {"pass", "FAIL", "not offered", "note", "not checked"};
    int *passed = arg;
    *passed += line->verdict == WEIR_CONFORMANCE_PASS;
    if (rank == 0 || line->verdict == WEIR_CONFORMANCE_FAIL || line->verdict == WEIR_CONFORMANCE_NOT_CHECKED)
        printf("rank %d: %-4s %-11s %s: %s\n", rank, line->clause, verdicts[line->verdict], line->title, line->text);
    fflush(stdout);
}

int main(int argc, char **argv) {
    const int is_funneled = argc > 1 && strcmp(argv[1], "funneled") == 0;
    /* A rank may have to wait long for a processor. */
    const weir_conformance_options options = {.struct_size = sizeof options, .budget_ns = 20000000000};
    weir_comm_vtable vtable;
    void *ctx = NULL;
    int32_t failed = -1;
    int passed = 0;
    begin_ranks(&argc, &argv, is_funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE);
    CHECK_OK(weir_mpi_vtable_create(MPI_COMM_WORLD, &vtable, &ctx));
    CHECK_OK(weir_comm_conformance(&vtable, ctx, &options, report, &passed, &failed));
    CHECK_EQ(failed, 0);
    CHECK(passed >= 10);
    vtable.release(ctx);
    end_ranks("the adapter keeps the contract");
    return 0;
}
