# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
#
# The networks that are too large for the sources. They come by pip, and so does what reads them.

networks_wheel=$build/networks/rapidocr_onnxruntime-1.4.4-py3-none-any.whl

# networks_python <module>...: sets $python to an interpreter, in build/networks/venv, that has these. Fails if pip
# cannot bring them.
networks_python() {
    python=$build/networks/venv/bin/python
    for module in "$@"; do
        "$python" -c "import $module" 2>/dev/null && continue
        case $module in
        onnx) package=onnx==1.23.2 ;;
        onnxruntime) package=onnxruntime==1.32.0 ;;
        *) package=$module ;;
        esac
        say "installing $package in build/networks/venv"
        python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv
        [ -x "$python" ] || { mkdir -p "$build/networks" && python3 -m venv "$build/networks/venv"; } || return 1
        "$python" -m pip install --quiet "$package" || return 1
    done
}

# After networks_python.
networks_download() {
    [ -e "$networks_wheel" ] ||
        "$python" -m pip download --quiet --no-deps --dest "$build/networks" rapidocr-onnxruntime==1.4.4
}

# After networks_python. Sets $onednn to the library. Its newer wheels go through SYCL.
onednn_library() {
    onednn=$build/networks/onednn/onednn_cpu_gomp-2023.2.0.data/data/lib/libdnnl.so.3
    [ ! -e "$onednn" ] || return 0
    "$python" -m pip download --quiet --no-deps --dest "$build/networks" onednn-cpu-gomp==2023.2.0 &&
        "$python" -m zipfile -e "$build"/networks/onednn_cpu_gomp-*.whl "$build/networks/onednn"
}

# Makes build/ocr/ocr.weir, unless it is there and newer than what makes it. Fails if pip cannot bring what it needs.
ocr_networks() {
    ocr_file=$build/ocr/ocr.weir
    makers="examples/ocr/convert.py bench/networks examples/python/weir_ctypes.py include/weir/weir_api.json"
    # shellcheck disable=SC2086 # several words
    if [ -e "$ocr_file" ] && [ -z "$(find $makers \( -name '*.py' -o -name '*.json' \) -newer "$ocr_file")" ]; then
        return 0
    fi
    need python3=python3
    networks_python numpy onnx && networks_download || return 1
    say "making build/ocr/ocr.weir"
    mkdir -p "$build/ocr" &&
        "$python" examples/ocr/convert.py "$networks_wheel" "$ocr_file.new" && mv "$ocr_file.new" "$ocr_file"
}
