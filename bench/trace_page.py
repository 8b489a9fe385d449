#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How long the page of a trace takes to draw itself: bench/trace_page.py [<page>]

In a headless Chromium without a GPU, 1400 by 900: all of the trace, and a thousandth of it from its middle. A redraw is
timed to the end of its last pixel. Without an argument the page is that of `cargo bench --bench traces -- page`, of a
million spans.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BROWSERS = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]

# Reading a pixel waits until all is drawn. A browser that sees this often draws into memory from then on, which is what
# it does without a GPU anyway.
MEASURE = """<script>
{
  const once = () => {
    const begin = performance.now();
    draw();
    context.getImageData(0, 0, 1, 1);
    return performance.now() - begin;
  };
  const times = (from, to) => {
    view = { from, to };
    const all = Array.from({ length: 25 }, once).slice(4).sort((a, b) => a - b);
    return { median: all[all.length >> 1], least: all[0], most: all[all.length - 1] };
  };
  const length = trace.length_ns, spans = begins.length;
  const told = { spans, whole: times(0, length), part: times(length * 0.5, length * 0.501) };
  document.documentElement.textContent = JSON.stringify(told);
}
</script>
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        page = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else folder / "trace.html"
        if len(sys.argv) == 1:
            subprocess.run(["cargo", "bench", "--locked", "--bench", "traces", "--", "page", page], check=True)
        measured = folder / "measured.html"
        measured.write_text(page.read_text().replace("</body>", MEASURE + "</body>"))
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is None:
            sys.exit("there is no Chromium (package chromium)")
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900", "--hide-scrollbars",
                   "--disable-dev-shm-usage", f"--user-data-dir={folder / 'home'}", "--dump-dom"]
        dump = subprocess.run([browser, *options, measured.as_uri()], capture_output=True, text=True, check=True).stdout
        told = json.loads(re.search(r"\{.*\}", dump)[0])
        print(f"{told['spans']} spans, ms for a redraw: median, least, most")
        for what, which in ("all of it", "whole"), ("a thousandth", "part"):
            times = told[which]
            print(f"{what:14} {times['median']:7.2f} {times['least']:7.2f} {times['most']:7.2f}")


main()
