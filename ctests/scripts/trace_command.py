#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""trace_command.py <weir_trace> <digits> <endings>

Programs under weir_trace, and with a trace that the environment asks for: each format, each way to end, and what is
refused.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

COMMAND, DIGITS, ENDINGS = sys.argv[1:]
SPANS = ["before", "at exit"]
REFUSED = 125


class Ran:
    """A command that has ended, in a folder of its own."""

    def __init__(self, folder, *command, variable=None):
        self.folder = folder
        environment = dict(os.environ, TMPDIR=str(folder / "temporary"))
        environment.pop("WEIR_TRACE", None)
        if variable is not None:
            environment["WEIR_TRACE"] = variable
        (folder / "temporary").mkdir(exist_ok=True)
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        self.status, self.out, self.err = ran.returncode, ran.stdout, ran.stderr
        left = os.listdir(folder / "temporary")
        assert not left, f"{command} leaves {left}"

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name != "temporary")

    def expect(self, status, *errors):
        """The exit status, and the lines of standard error, as regular expressions."""
        lines = self.err.splitlines()
        matches = len(lines) == len(errors) and all(re.search(error, line) for error, line in zip(errors, lines))
        assert self.status == status and matches, f"{self.status}, {lines}, expected {status}, {errors}"
        return self


def traced(folder, *words):
    return Ran(folder, COMMAND, *words)


def spans(file):
    return [event["name"] for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]


def test_every_format_by_its_name_or_ending(folder):
    names = ["a.html", "a.json", "a.txt", "a.report", "a.perfetto", "a.pftrace", "a.pprof", "a.pb", "a.folded",
             "a.chrome"]
    outputs = [word for name in names for word in ("-o", name)]
    ran = traced(folder, *outputs, "-f", "chrome", "-o", "b.json", "--format=html", "--output=c.txt", "--", DIGITS)
    names += ["b.json", "c.txt"]
    assert ran.files() == sorted(names)
    ran.expect(0, *[f"^weir_trace: wrote {folder}/{name}$" for name in names])
    assert "500 handwritten digits" in ran.out, ran.out
    read = {name: (folder / name).read_bytes() for name in names}
    numbers = json.loads(read["a.json"])
    (program,) = numbers["programs"]
    layers = {node["node"] for node in program["nodes"]}
    assert program["runs"] > 100 and "layer 1" in layers and numbers["lost_records"] == 0, numbers
    for page in read["a.html"], read["c.txt"]:
        (analysis,) = re.findall(b'<script type="application/json" id="analysis">(.*?)</script>', page, re.DOTALL)
        assert json.loads(analysis) == numbers
    assert read["b.json"] == read["a.chrome"] and spans(folder / "b.json").count("layer 1") == program["runs"]
    assert read["a.txt"] == read["a.report"] and b"program 'digits': " in read["a.txt"]
    assert read["a.perfetto"] == read["a.pftrace"] and b"layer 1" in read["a.perfetto"]
    assert read["a.pprof"] == read["a.pb"] and b"layer 1" in read["a.pb"]
    stacks = [line.rsplit(" ", 1) for line in read["a.folded"].decode().splitlines()]
    assert any(stack.endswith("layer 1") for stack, _ in stacks) and all(int(count) >= 0 for _, count in stacks)


def test_a_report_on_standard_error_without_a_file(folder):
    for words in [], ["--"], ["-f", "report"]:
        ran = traced(folder, *words, ENDINGS, "return")
        assert ran.status == 5 and ran.err.startswith("weir trace: 2 spans of 1 threads, "), ran.err
    ran = traced(folder, "-f", "json", ENDINGS, "return")
    assert ran.status == 5 and json.loads(ran.err)["weir_trace"] == 1 and ran.files() == []
    ran = Ran(folder, ENDINGS, "return", variable="report")
    assert ran.status == 5 and ran.err.startswith("weir trace: 2 spans") and ran.files() == []
    # Options behind the program are its own.
    traced(folder, ENDINGS, "-o", "x.html").expect(2, "usage: endings <way>", "^weir trace: ", "^thread ")


def test_a_process_is_traced_to_its_end(folder):
    for way, status in [("return", 5), ("thread", 7), ("directory", 0), ("fork", 0), ("unseen", 0)]:
        traced(folder, "-o", "a.chrome", ENDINGS, way).expect(status, "wrote")
        assert spans(folder / "a.chrome") == SPANS, (way, spans(folder / "a.chrome"))
        (folder / "a.chrome").unlink()


def test_a_process_that_ends_in_the_middle_writes_nothing(folder):
    for way, status in [("_exit", 6), ("quick", 6), ("abort", -signal.SIGABRT)]:
        traced(folder, "-o", "a.html", ENDINGS, way).expect(status, "endings: ended without exit")
        assert Ran(folder, ENDINGS, way, variable="html:a.html").expect(status).files() == []


def test_each_process_has_its_file(folder):
    for way in "exec", "fork_before":
        traced(folder, "-o", "%p.chrome", "-o", "%%%p.json", ENDINGS, way).expect(0, *["wrote"] * 4)
        there = sorted(os.listdir(folder))
        found = [[name for name in there if name.endswith(ending)] for ending in (".chrome", ".json")]
        numbers = [int(name.removesuffix(".chrome")) for name in found[0]]
        assert len(set(numbers)) == 2 and found[1] == sorted(f"%{number}.json" for number in numbers), found
        of_each = sorted(spans(folder / name) for name in found[0])
        assert of_each == [SPANS, SPANS] if way == "exec" else of_each == [SPANS, ["in the child", "at exit"]], of_each
        for name in found[0] + found[1]:
            (folder / name).unlink()


def test_paths_have_every_character(folder):
    place = folder / "a %; 100%% folder: = ü"
    place.mkdir()
    inside = Ran(place, COMMAND, "-o", "b;c d.chrome", "-o", "e=1.json", ENDINGS, "return").expect(5, "wrote", "wrote")
    assert inside.files() == ["b;c d.chrome", "e=1.json"] and spans(place / "b;c d.chrome") == SPANS
    Ran(folder, ENDINGS, "return", variable="chrome:f%;g%%.x").expect(5)
    assert spans(folder / "f;g%.x") == SPANS


def test_a_path_that_cannot_be_written(folder):
    (folder / "taken").mkdir()
    errors = ["^weir: no trace in '/no/such/a.html': .*No such file or directory",
              f"^weir: no trace in '{folder}/taken': .*irectory", "^weir: no trace in '/dev/full': .*No space left"]
    Ran(folder, ENDINGS, "return", variable="html:/no/such/a.html;json:taken;report:/dev/full").expect(5, *errors)
    outputs = ["-o", "/no/such/a.html", "-f", "json", "-o", "taken", "-f", "report", "-o", "/dev/full"]
    traced(folder, *outputs, "-o", "a.json", ENDINGS, "return").expect(5, *errors, "wrote")
    json.loads((folder / "a.json").read_text())


def test_a_program_that_does_not_use_weir(folder):
    traced(folder, "-o", "a.html", "true").expect(0, "^weir_trace: true: did not use weir, so there is no trace$")
    traced(folder, "-o", "a.html", ENDINGS, "without").expect(4, "endings: did not use weir")
    assert traced(folder, "true").files() == []


def test_what_cannot_be_run(folder):
    traced(folder, "no_such_program").expect(127, "^weir_trace: no_such_program: No such file")
    traced(folder, str(folder)).expect(126, f"^weir_trace: {folder}: Permission denied$")


def test_arguments_that_are_refused(folder):
    for words, why in [
        ([], "there is no program to run"),
        (["-o", "a", ENDINGS], "a: its ending names no format"),
        (["-o", "a.pb.gz", ENDINGS], "a.pb.gz: its ending names no format"),
        (["-o", "a/", ENDINGS], "a/: this names no file"),
        (["-o", "%q.html", ENDINGS], "%q.html: a percent sign is written %%"),
        (["-f", "htm", "-o", "a", ENDINGS], "htm: no such format, expected perfetto, chrome"),
        (["-f", "txt", ENDINGS], "txt: no such format"),
        (["-f", "html", ENDINGS], "html: a trace in this format needs a file"),
        (["-o", "a.html", "-f", "json", ENDINGS], "json: there is no -o FILE behind this format"),
        (["-f", "json", "-f", "json", "-o", "a", ENDINGS], "json: there is no -o FILE between"),
    ]:
        ran = traced(folder, *words).expect(REFUSED, re.escape(why), "Try 'weir_trace --help'")
        assert ran.out == "" and ran.files() == []
    traced(folder, "--records", "63", ENDINGS).expect(REFUSED, "--records is '63', expected 64 to 67108864")
    traced(folder, "--threads", "1x", ENDINGS).expect(REFUSED, "--threads is '1x', expected 1 to 4096")
    traced(folder, "--nothing", ENDINGS).expect(REFUSED, "unrecognized option", "Try")
    assert "usage: weir_trace" in traced(folder, "--help").expect(0).out
    assert re.fullmatch(r"weir_trace \d+\.\d+\.\d+\n", traced(folder, "--version").expect(0).out)


def test_a_variable_that_is_refused(folder):
    for variable, why in [("htm:a.html", "'htm' is no format, expected perfetto, chrome"),
                          ("html:a.html;records=1", "records is '1', expected 64 to 67108864"),
                          ("html:%x", "'%x' is none of"), ("yes", "'yes' is unknown")]:
        line = f"^weir: nothing is traced: the environment variable WEIR_TRACE is '{re.escape(variable)}': .*{why}"
        assert Ran(folder, ENDINGS, "return", variable=variable).expect(5, line).files() == []
    assert Ran(folder, ENDINGS, "return", variable="").expect(5).files() == []
    assert Ran(folder, ENDINGS, "without", variable="yes").expect(4).files() == []


def test_without_memory_nothing_is_traced(folder):
    script = f"ulimit -v 4000000; exec {ENDINGS} return"
    line = "^weir: nothing is traced: .*memory"
    Ran(folder, "sh", "-c", script, variable="report;records=67108864").expect(5, line)
    traced(folder, "--records", "67108864", "sh", "-c", script).expect(5, line)


def test_how_much_is_kept(folder):
    lost = []
    for words in ["--records", "64"], ["--records", "64", "--keep-last"], ["--threads", "1"]:
        traced(folder, *words, "-o", "a.json", "-o", "a.chrome", DIGITS).expect(0, "wrote", "wrote")
        numbers = json.loads((folder / "a.json").read_text())
        events = json.loads((folder / "a.chrome").read_text())["traceEvents"]
        begins = [event["ts"] * 1000 - numbers["begin_ns"] for event in events if event["ph"] == "X"]
        lost.append((numbers["lost_records"], len(numbers["threads"]), min(begins), numbers["length_ns"]))
    assert lost[0][0] > 1000 and lost[1][0] > 1000 and lost[2][1] == 1, lost
    print(lost)


def test_signals(folder):
    """Those that another process sends to weir_trace go to the program; the end of one is that of the other."""
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGUSR1:
        command = [COMMAND, "-o", str(folder / "a.chrome"), ENDINGS, "signal"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == number and "weir_trace: wrote" in errors, (process.returncode, errors)
        assert spans(folder / "a.chrome") == ["before", "after the signal", "at exit"]
    traced(folder, "sh", "-c", "kill -KILL $$").expect(-signal.SIGKILL, "did not use weir")
    # A signal that is blocked by who started it stays blocked in the program.
    script = "import signal, sys; sys.exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"
    traced(folder, sys.executable, "-c", script).expect(0, "did not use weir")


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            with tempfile.TemporaryDirectory() as folder:
                test(pathlib.Path(folder).resolve())
            print(name)


main()
