#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What threads that write the same cache lines cost each other: a simulation of the executor's shared words.

    bench/contention.py

A line belongs to the thread that wrote it last. Writing it again costs that thread OWN ns; another one has to fetch it, which
takes FAR ns and in its turn: a line serves one thread at a time. Reading a line that another thread has written since costs FAR
too, but readers do not wait for each other. Everything else is free, so what is missing to 1 is what the shared words cost.
The figures stand for no machine: FAR is of the order of one transfer between cores of a large socket, OWN of a locked operation.
"""

import heapq

FAR, OWN = 100.0, 3.0
LEAF = 32  # arrivals at one leaf of a wide join, as src/graph/compile/layout/joins.rs has it
OFFER = 32_000.0  # ns of work that a thread takes at once


class Line:
    def __init__(self):
        self.owner, self.free_at = None, 0.0

    def write(self, thread, now):
        """When the write is done."""
        start = max(now, self.free_at)
        self.free_at = start + (OWN if self.owner == thread else FAR)
        self.owner = thread
        return self.free_at


def run(threads, nodes, body, arrive, give):
    """Nodes that all lead to one join. Threads take `give(left)` neighbours at once from one list; each arrival is
    `arrive(thread, node, now)`. The time until all have arrived."""
    taken, queue = 0, Line()
    ready = [(0.0, thread, 0, 0) for thread in range(threads)]
    end = 0.0
    while ready:
        now, thread, node, last = heapq.heappop(ready)
        if node == last:
            if taken == nodes:
                continue
            count = min(give(nodes - taken), nodes - taken)
            node, last, taken = taken, taken + count, taken + count
            now = queue.write(thread, now)
        now = arrive(thread, node, now + body)
        end = max(end, now)
        heapq.heappush(ready, (now, thread, node + 1, last))
    return end


def efficiency(threads, nodes, body, leaves, per_line=1):
    root = Line()
    if leaves:
        lines = [Line() for _ in range(-(-nodes // LEAF) // per_line + 1)]
        left = [LEAF] * (-(-nodes // LEAF))
        left[-1] = nodes - LEAF * (len(left) - 1)

        def arrive(thread, node, now):
            leaf = node // LEAF
            now = lines[leaf // per_line].write(thread, now)
            left[leaf] -= 1
            return root.write(thread, now) if left[leaf] == 0 else now
    else:

        def arrive(thread, node, now):
            return root.write(thread, now)

    # Half of what is left, and not more than an offer.
    give = lambda left: max(1, min(left // 2, int(OFFER / body) or 1))
    return nodes * body / threads / run(threads, nodes, body, arrive, give)


def table(title, rows, columns, cell):
    print(f"\n{title}\n")
    print("| threads | " + " | ".join(columns) + " |")
    print("|--:|" + "--:|" * len(columns))
    for row in rows:
        print(f"| {row} | " + " | ".join(cell(row, i) for i in range(len(columns))) + " |")


def main():
    bodies = [200.0, 1000.0, 5000.0, 20000.0]
    names = ["0.2 us", "1 us", "5 us", "20 us"]
    threads = [1, 2, 4, 8, 16, 32, 64]
    nodes = 64 * 512
    kinds = [
        ("one counter", False, 1),
        (f"leaves of {LEAF}, eight neighbours on a line", True, 8),
        (f"leaves of {LEAF}, each on a line of its own", True, 1),
    ]
    for kind, leaves, per_line in kinds:
        table(
            f"A join of {nodes} arrivals, {kind}: the work divided by threads / the time, by what a node costs",
            threads,
            names,
            lambda row, i, k=(leaves, per_line): f"{efficiency(row, nodes, bodies[i], *k):.3f}",
        )

    def leaving(row, _):
        line, now = Line(), 0.0
        for thread in range(row):
            now = max(now, line.write(thread, 0.0))
        return f"{now / 1000:.2f} us"

    table("All threads leave a run at once: until the last one is out", threads, ["time"], leaving)


if __name__ == "__main__":
    main()
