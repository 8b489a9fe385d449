#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""trace_readers.py <trace_files> <folder> <reader>

Traces in the hands of readers that know nothing of weir: an HTML parser, a script engine and a browser for the page,
pprof, the messages of Perfetto, Perfetto's trace_processor. Each tells what it found, which is compared with the spans
in the JSON of Chrome's format. What pip brings stays in the folder.
"""

import base64
import collections
import html.parser
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import venv

import trace_sql

WEIRD = ["</script><script>alert(1)</script>", 'a "quoted" \\ name', "<!-- & &amp; -->", "tabs\tand\nlines", "été 水",
         "{{analysis}}", "</script><b>"]
RUNS = 20
# Traces that are small enough for readers that take their time.
SMALL = ["trace", "loops", "region", "failed", "marks", "full", "last", "open", "node", "one", "none"]
# Those whose pages are looked at in a browser.
PAGES = ["trace", "none", "one", "node", "many"]
BROWSERS = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(0)


def spans(folder, case="trace"):
    """The spans of a trace, as (name, category, length in ns, arguments)."""
    events = json.loads((folder / f"{case}.chrome").read_text())["traceEvents"]
    return [(e["name"], e["cat"], round(e["dur"] * 1000), e["args"]) for e in events if e["ph"] == "X"]


class Page(html.parser.HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    VOID = {"meta", "input", "link", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.scripts = [], collections.Counter(), {}

    def handle_starttag(self, tag, attributes):
        self.elements[tag] += 1
        attributes = dict(attributes)
        for name, value in attributes.items():
            assert not name.startswith("on"), f"<{tag} {name}>"
            assert name not in ("src", "href"), f"<{tag} {name}={value}> asks for something outside of the page"
        if tag not in self.VOID:
            self.open.append((tag, attributes.get("id")))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> in {self.open}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "script":
            key = self.open[-1][1]
            self.scripts[key] = self.scripts.get(key, "") + data
        else:
            assert "alert" not in data, data


def read_page(folder):
    text = (folder / "trace.html").read_text()
    page = Page()
    page.feed(text)
    page.close()
    assert not page.open and page.elements["script"] == 6 and page.elements["canvas"] == 1, page.elements
    assert "http://" not in text and "https://" not in text and "@import" not in text
    analysis, drawn = json.loads(page.scripts["analysis"]), json.loads(page.scripts["drawn"])
    assert analysis == json.loads((folder / "trace.json").read_text())
    names = set(drawn["names"])
    assert names.issuperset(WEIRD), set(WEIRD) - names
    known = collections.Counter((name, length) for name, _, length, _ in spans(folder))
    eights = lambda key: [x for x, in struct.iter_unpack("<d", base64.b64decode(page.scripts[key], validate=True))]
    labels = [x for x, in struct.iter_unpack("<I", base64.b64decode(page.scripts["labels"], validate=True))]
    begins, ends = eights("begins"), eights("ends")
    assert len(begins) == len(ends) == len(labels) == drawn["rows"][-1]["end"]
    threads = {number for number, lane in enumerate(drawn["lanes"]) if lane["is_thread"]}
    streams = [lane["name"] for lane in drawn["lanes"] if not lane["is_thread"]]
    assert any("a <b>stream</b>" in name for name in streams), streams
    found = collections.Counter()
    for row in drawn["rows"]:
        places = range(row["first"], row["end"])
        assert all(ends[i] <= begins[i + 1] for i in places[:-1]), "spans of a row overlap"
        if row["lane"] in threads:
            found.update((drawn["names"][labels[i]], round(ends[i] - begins[i])) for i in places)
    assert found == known, (found - known, known - found)
    assert len(analysis["runs"]) == 2
    for run in analysis["runs"]:
        at = run["begin_ns"]
        for part in run["path"]:
            assert part["begin_ns"] == at
            at = part["end_ns"]
        assert at == run["begin_ns"] + run["wall_ns"]
        assert sum(part["ns"] for part in run["path_sums"]) == run["wall_ns"]
        assert sum(share["ns"] for share in run["time_of_threads"]) == run["wall_ns"] * run["threads"]
    report = (folder / "trace.report").read_text()
    for words in ["the median run:", "the slowest run:", "the longest path of the graph:", "with nothing changed:"]:
        assert words in report, words
    print(f"{len(begins)} spans in {len(text)} bytes; {len(streams)} streams")


def find_node():
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        skip("there is no node (package nodejs)")
    return node


def read_page_runs(folder):
    node = find_node()
    subprocess.run([node, pathlib.Path(__file__).with_name("trace_page.js"), folder / "trace.html"], check=True)


def find_browser():
    for name in BROWSERS:
        found = shutil.which(name)
        # A snap does not see files of others. What only asks for one fails.
        if found and not found.startswith("/snap/"):
            if subprocess.run([found, "--version"], capture_output=True).returncode == 0:
                return found
    skip("there is no Chromium (package chromium)")


def read_pixels(folder):
    script = pathlib.Path(__file__).with_name("trace_pixels.js")
    subprocess.run([find_node(), script, find_browser(), folder], check=True)


def read_pprof(folder):
    go = shutil.which("go")
    if go is None:
        skip("there is no go (package golang-go)")

    def pprof(*arguments):
        # Names of files stay in the folder; it asks no server for anything.
        environment = dict(os.environ, PPROF_TMPDIR=str(folder), HOME=str(folder), GOTOOLCHAIN="local")
        told = subprocess.run([go, "tool", "pprof", *arguments, folder / "trace.pprof"], env=environment,
                              capture_output=True, text=True)
        if told.returncode != 0 and "no such tool" in told.stderr:
            skip(f"go has no pprof: {told.stderr.strip()}")
        assert told.returncode == 0, told.stderr
        return told.stdout

    raw = pprof("-raw")
    assert "work/nanoseconds[dflt] count/count waited/nanoseconds waiting/nanoseconds" in raw, raw[:400]
    # "   12345     1   678    0: 3 2 1", and a line "cause:[...] thread:[...]".
    samples = raw.split("Samples:")[1].split("Locations")[0]
    samples = re.findall(r"^ *(\d+) +(\d+) +(\d+) +(\d+): ([\d ]*)\n(.*)$", samples, re.MULTILINE)
    values = [[int(value) for value in sample[:4]] for sample in samples]
    known = spans(folder)
    assert sum(count for _, count, _, _ in values) == len(known), (values, len(known))
    programs = json.loads((folder / "trace.json").read_text())["programs"]
    waited = sum(node["waited_ns"] for program in programs for node in program["nodes"])
    assert sum(wait for _, _, wait, _ in values) == waited, (values, waited)
    shares, causes = collections.Counter(), collections.Counter()
    for program in programs:
        shares.update({share["what"]: share["ns"] for share in program["time_of_threads"]})
    del shares["in nodes"]
    for (*_, labels), (*_, waiting) in zip(samples, values):
        cause = re.search(r"cause:\[(.*?)\]", labels)
        assert (cause is not None) == (waiting > 0), (labels, waiting)
        if cause is not None:
            causes[cause[1]] += waiting
    assert +shares == causes and len(causes) > 2, (shares, causes)
    # A thread that goes to a node waits no longer for its beginning than the node does.
    own, all_waited = "weir's own", collections.Counter()
    for program in programs:
        all_waited.update({node["node"]: node["waited_ns"] for node in program["nodes"]})
    top = pprof("-sample_index=waiting", "-top", "-unit=ns", "-nodecount=1000", "-nodefraction=0",
                f"-tagfocus=cause={own}")
    before = {name: int(ns) for ns, name in re.findall(r"^ *(\d+)(?:ns)? .*% +(.*)$", top, re.MULTILINE)}
    assert sum(before.values()) == sum(ns for cause, ns in causes.items() if cause.startswith(own)), top
    plain = before.keys() & {"first", "last", "one side", "other side", "\u00e9t\u00e9 \u6c34"}
    assert len(plain) == 5 and all(before[name] <= all_waited[name] for name in plain), (before, all_waited)
    top = pprof("-sample_index=count", "-top", "-unit=count", "-nodecount=1000")
    line = next(line for line in top.splitlines() if line.endswith(" first"))
    assert line.split()[0] == str(RUNS), line
    print(f"{len(values)} samples")


def read_perfetto(folder, own):
    """With the messages as Perfetto publishes them."""
    try:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
    except ImportError:
        if own is None:
            skip("Python has no package perfetto, and pip cannot bring it")
        python = own / "bin" / "python"
        if not python.exists():
            venv.create(own, with_pip=True)
        brings = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "perfetto", "protobuf"]
        if subprocess.run(brings, capture_output=True).returncode != 0:
            skip("Python has no package perfetto, and pip cannot bring it")
        subprocess.run([python, __file__, "-", folder, "perfetto-here"], check=True)
        return
    for case in SMALL:
        trace = Trace()
        trace.ParseFromString((folder / f"{case}.perfetto").read_bytes())
        slices, flows = read_messages(trace, TrackEvent)
        known = collections.Counter((name, length) for name, _, length, _ in spans(folder, case))
        assert slices == known, (case, slices - known, known - slices)
        assert flows > 0 or case != "trace"
        print(f"{case}: {sum(slices.values())} slices, {flows} flows, {len(trace.packet)} packets")


def check_known(message, path):
    """Nothing is in the file that the messages do not have."""
    from google.protobuf import unknown_fields
    assert message.ByteSize() == len(message.SerializeToString())
    assert len(unknown_fields.UnknownFieldSet(message)) == 0, path
    for field, value in message.ListFields():
        # By its values: a list of messages, or one.
        for one in value if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)) else [value]:
            if hasattr(one, "ListFields"):
                check_known(one, f"{path}.{field.name}")


def read_messages(trace, TrackEvent):
    """The slices of threads, as names and lengths, and how many flows there are."""
    found, open_ = collections.Counter(), collections.defaultdict(list)
    names, threads, tracks, clocks, begun, ended = {}, {}, {}, {}, set(), set()
    for packet in trace.packet:
        check_known(packet, "packet")
        sequence = packet.trusted_packet_sequence_id
        if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("thread"):
            threads[packet.track_descriptor.uuid] = packet.track_descriptor.thread.thread_name
        if packet.HasField("trace_packet_defaults"):
            tracks[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        if packet.HasField("clock_snapshot"):
            clocks[sequence] = packet.clock_snapshot.clocks[1].timestamp
        for name in packet.interned_data.event_names:
            names[sequence, name.iid] = name.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        clocks[sequence] += packet.timestamp
        track = event.track_uuid or tracks[sequence]
        begun.update(event.flow_ids)
        ended.update(event.terminating_flow_ids)
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            open_[track].append((names[sequence, event.name_iid], clocks[sequence]))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            name, begin = open_[track].pop()
            if track in threads:
                found[name, clocks[sequence] - begin] += 1
    assert not any(open_.values()) and begun == ended
    return found, len(begun)


def read_sql(folder, place):
    why = trace_sql.read(find_node(), place, folder, SMALL)
    if why is not None:
        skip(why)


def main():
    program, place, reader = sys.argv[1:]
    place = pathlib.Path(place)
    if reader == "perfetto-here":
        return read_perfetto(place, None)
    with tempfile.TemporaryDirectory() as folder:
        cases = {"perfetto": SMALL, "sql": SMALL, "pixels": PAGES}.get(reader, ["trace"])
        subprocess.run([program, folder, *cases], check=True)
        folder = pathlib.Path(folder)
        if reader == "perfetto":
            read_perfetto(folder, place / "perfetto-env")
        elif reader == "sql":
            read_sql(folder, place)
        else:
            {"page": read_page, "page_runs": read_page_runs, "pixels": read_pixels, "pprof": read_pprof}[reader](folder)


main()
