#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes the three networks of PP-OCR, and the characters that they know, as one file for ocr.

    pip install numpy onnx
    python3 convert.py rapidocr_onnxruntime-1.4.4-py3-none-any.whl ocr.weir

The file has what bench/networks/onnx_recording.py describes; its text are the characters, one a line, in the order of
the recognition's classes, behind the one that stands for nothing. See NOTICE for the licence of the networks.
"""

import pathlib
import sys
import zipfile

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/networks"))
import onnx_recording  # noqa: E402

MODELS = {
    # Name, file, shape of the input, and what its open dimensions are multiples of.
    "detect": ("ch_PP-OCRv4_det_infer.onnx", (1, 3, None, None), 32),
    "turn": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192), 1),
    "read": ("ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, None), 8),
}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    networks, characters = [], None
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        for name, (file, shape, unit) in MODELS.items():
            model = onnx.load_from_string(wheel.read(f"rapidocr_onnxruntime/models/{file}"))
            networks.append(onnx_recording.Network(name, model, "x", shape, unit))
            for entry in model.metadata_props:
                if entry.key == "character":
                    characters = entry.value.splitlines()
    text = "\n".join([*characters, " "]) + "\n"
    pathlib.Path(sys.argv[2]).write_bytes(onnx_recording.encode(networks, text.encode()))


if __name__ == "__main__":
    main()
