# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What of the ocr example its program, its tests and the comparison with ONNX Runtime are made of, below examples.

set(ocr_sources
    ocr/reader.c ocr/network.c ocr/operators.c ocr/model_file.c ocr/boxes.c ocr/rectangle.c ocr/crop.c ocr/text.c
    ocr/image.c ocr/png.c ocr/inflate.c)
