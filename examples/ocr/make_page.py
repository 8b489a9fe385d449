#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws page.png, the page that ocr reads if it is given none, and page.txt, what is written on it.

    pip install pillow
    python3 make_page.py [folder of the DejaVu fonts]

The fonts are those of Debian's packages fonts-dejavu-core and fonts-dejavu-extra. Lines are of several sizes and faces,
some a little aslant, one upside down, and one goes downwards.
"""

import pathlib
import sys

from PIL import Image, ImageDraw, ImageFont

SIZE = (800, 1056)
PAPER, INK = 244, 28
# Face, size, left, top, degrees, text.
LINES = [
    ("DejaVuSerif-Bold", 44, 60, 36, 0, "The Mill on the Weir"),
    ("DejaVuSans", 20, 60, 104, 0, "Notes for those who come by boat, and on foot"),
    ("DejaVuSerif", 24, 60, 160, 0, "A weir lets the stream pass where it should, and"),
    ("DejaVuSerif", 24, 60, 196, 0, "as fast as it should. Nobody has to push the water;"),
    ("DejaVuSerif", 24, 60, 232, 0, "it only has to be let through at the right moment."),
    ("DejaVuSans", 18, 60, 286, 0, "Built in 1874, rebuilt in 1921 after the flood of March. Height 2.35 m,"),
    ("DejaVuSans", 18, 60, 314, 0, "width 41.8 m, with three gates of oak and a wheel that turns all day."),
    ("DejaVuSans-Bold", 30, 60, 372, 0, "Opening hours"),
    ("DejaVuSansMono", 22, 60, 428, 0, "Monday to Friday"),
    ("DejaVuSansMono", 22, 460, 428, 0, "09:00 - 17:30"),
    ("DejaVuSansMono", 22, 60, 464, 0, "Saturday"),
    ("DejaVuSansMono", 22, 460, 464, 0, "10:00 - 16:00"),
    ("DejaVuSansMono", 22, 60, 500, 0, "Sunday"),
    ("DejaVuSansMono", 22, 460, 500, 0, "closed"),
    ("DejaVuSans-Bold", 28, 736, 400, -90, "DOWNSTREAM"),
    ("DejaVuSans-Oblique", 26, 60, 560, 2, "Please mind the step, it is always wet"),
    ("DejaVuSans", 24, 60, 618, -2, "Fish have the right of way at all times"),
    ("DejaVuSerif", 28, 60, 700, 180, "This sign was hung upside down"),
    ("DejaVuSans", 18, 60, 764, 0, "Flour 1 kg"),
    ("DejaVuSans", 18, 300, 764, 0, "EUR 2.40"),
    ("DejaVuSans", 18, 60, 794, 0, "Oats 500 g"),
    ("DejaVuSans", 18, 300, 794, 0, "EUR 1.95"),
    ("DejaVuSans", 18, 60, 824, 0, "Honey 250 g"),
    ("DejaVuSans", 18, 300, 824, 0, "EUR 6.80"),
    ("DejaVuSerif", 22, 60, 880, 1, "Whoever waits, works: the miller's rule for every day"),
    ("DejaVuSans", 14, 60, 936, 0, "Questions? Call 0123 456789 or write to the miller (mill@example.org)."),
    ("DejaVuSans", 14, 60, 960, 0, "No thread was started, no fish was harmed, and the water found its way."),
    ("DejaVuSansMono-Bold", 40, 60, 990, 0, "Lock 7"),
]


def main():
    fonts = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/fonts/truetype/dejavu")
    here = pathlib.Path(__file__).resolve().parent
    page = Image.new("L", SIZE, PAPER)
    for face, size, left, top, degrees, text in LINES:
        font = ImageFont.truetype(str(fonts / f"{face}.ttf"), size)
        width, height = int(font.getlength(text)) + 8, size + size // 2
        line = Image.new("L", (width, height), 0)
        ImageDraw.Draw(line).text((4, 0), text, fill=255, font=font)
        line = line.rotate(degrees, resample=Image.Resampling.BICUBIC, expand=True)
        page.paste(INK, (left, top), line)
    # 16 greys are enough, and take less room.
    page = page.point(lambda value: value // 16 * 17)
    page.save(here / "page.png", optimize=True)
    (here / "page.txt").write_text("".join(f"{line[-1]}\n" for line in LINES))


if __name__ == "__main__":
    main()
