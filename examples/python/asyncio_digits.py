#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The digits network behind asyncio: coroutines await runs, and no thread waits for one.

    python3 asyncio_digits.py libweir.so [folder with digits.bin and weights.bin]

Every run is started with a notice that adds 1 to an eventfd. The event loop watches that file (loop.add_reader) and then
sees which runs are over. weir never calls Python here, so its threads never take the interpreter's lock. One coroutine
cancels its run. Meanwhile another one counts how often it got its turn. Ends with status 1 if fewer than 97.5 % of the
digits are read right, or a request is not answered.
"""

import asyncio
import os
import pathlib
import sys
from ctypes import byref, c_float, c_int32, c_void_p, pointer

import weir_ctypes
from digits import GOAL, Dataset, Network, builtin_pool, desc, over
from weir_ctypes import WeirError, create, sized

CLIENTS, ROUNDS = 4, 5


class Runs:
    """Runs under way, and the eventfd that says that some are over. Everything here is the event loop's."""

    def __init__(self, weir):
        self.weir, self.under_way = weir, {}
        self.event_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        notice = sized(weir.weir_notice, event_fd=self.event_fd)  # no function: only the eventfd is raised
        self.options = sized(weir.weir_run_options, notice=pointer(notice))
        asyncio.get_running_loop().add_reader(self.event_fd, self._some_are_over)

    def _some_are_over(self):
        os.eventfd_read(self.event_fd)  # back to 0, before the look: what ends behind it raises it again
        done = c_int32()
        for run, future in list(self.under_way.items()):
            self.weir.weir_run_query(run, byref(done))
            if done.value:
                del self.under_way[run]
                future.set_result(None)

    async def run(self, program, stream, inputs, outputs, cancel=False):
        """Runs the program on an asynchronous stream. Other coroutines go on meanwhile."""
        arguments = [program, stream, inputs, len(inputs), outputs, len(outputs), byref(self.options)]
        run = create(self.weir.weir_program_start, *arguments)
        if cancel:
            self.weir.weir_run_cancel(run)
        self.under_way[run.value] = asyncio.get_running_loop().create_future()
        try:
            await self.under_way[run.value]
            self.weir.weir_run_synchronize(run, 0)  # it is over: this only raises its failure, if it has one
        finally:
            self.weir.weir_run_release(run)

    def close(self):
        asyncio.get_running_loop().remove_reader(self.event_fd)
        os.close(self.event_fd)


class Client:
    """Asks for all scans at once, again and again, on a stream of its own."""

    def __init__(self, weir, network):
        data, engine = network.data, network.engine
        self.weir, self.network = weir, network
        self.stream = create(weir.weir_stream_create, engine, weir.WEIR_STREAM_ASYNCHRONOUS, None)
        width = data.sizes[-1]
        self.logits, self.classes = (c_float * (data.count * width))(), (c_int32 * data.count)()
        self.tensors = [
            create(weir.weir_tensor_create, engine, byref(shape), over(weir, array))
            for shape, array in [
                (desc(weir, weir.WEIR_F32, data.count, data.sizes[0]), data.pixels),
                (desc(weir, weir.WEIR_F32, data.count, width), self.logits),
                (desc(weir, weir.WEIR_S32, data.count), self.classes),
            ]
        ]

    async def read(self, runs, cancel=False):
        """How many digits it has read right."""
        inputs, outputs = (c_void_p * 1)(self.tensors[0]), (c_void_p * 2)(*self.tensors[1:])
        await runs.run(self.network.program, self.stream, inputs, outputs, cancel)
        return sum(read == written for read, written in zip(self.classes, self.network.data.labels))

    def close(self):
        for tensor in self.tensors:
            self.weir.weir_tensor_release(tensor)
        self.weir.weir_stream_release(self.stream)


async def serve(weir, network):
    """The accuracies of all requests, how the cancelled one ended, and the turns that another coroutine got."""
    runs, clients = Runs(weir), [Client(weir, network) for _ in range(CLIENTS)]
    turns = 0

    async def count_turns():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def ask_often(client):
        return [await client.read(runs) / network.data.count for _ in range(ROUNDS)]

    counting = asyncio.create_task(count_turns())
    answers = await asyncio.wait_for(asyncio.gather(*map(ask_often, clients)), 60)
    try:
        await asyncio.wait_for(clients[0].read(runs, cancel=True), 60)
        cancelled = "it was over before"
    except WeirError as error:
        cancelled = str(error)
    counting.cancel()
    for client in clients:
        client.close()
    runs.close()
    return [accuracy for of_client in answers for accuracy in of_client], cancelled, turns


def main():
    library = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("WEIR_LIBRARY")
    if library is None:
        sys.exit(__doc__)
    beside = pathlib.Path(__file__).resolve().parent.parent / "digits"
    data = Dataset(pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else beside)
    weir = weir_ctypes.load(library)
    pool = builtin_pool(weir, 2)
    network = Network(weir, data, pool)
    accuracies, cancelled, turns = asyncio.run(serve(weir, network))
    network.close()
    weir.weir_threadpool_release(pool)
    print(f"{len(accuracies)} requests of {CLIENTS} coroutines answered, {min(accuracies):.1%} read right or more")
    print(f"another coroutine got {turns} turns meanwhile; the request that was cancelled: {cancelled}")
    if min(accuracies) < GOAL or len(accuracies) != ROUNDS * CLIENTS:
        sys.exit("FAILED")


if __name__ == "__main__":
    main()
