# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The example programs. They are built as a user would build them, and the tests run them.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Too large for the sources: ./dev demo ocr makes it.
set(WEIR_OCR_NETWORKS "${PROJECT_SOURCE_DIR}/build/ocr/ocr.weir" CACHE FILEPATH "The networks of the ocr example")

# weir_example(<name> <source>...): the program goes to <build>/examples/<name>.
function(weir_example name)
    list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/examples/" OUTPUT_VARIABLE sources)
    add_executable("${name}" ${sources})
    set_target_properties("${name}" PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
    target_compile_options("${name}" PRIVATE -g ${weir_warnings})
    target_compile_definitions("${name}" PRIVATE
        "DIGITS_DATA_DIR=\"${PROJECT_SOURCE_DIR}/examples/digits\""
        "VOICE_DATA_DIR=\"${PROJECT_SOURCE_DIR}/examples/voice\""
        "OCR_DATA_DIR=\"${PROJECT_SOURCE_DIR}/examples/ocr\"" "OCR_NETWORKS=\"${WEIR_OCR_NETWORKS}\"")
    target_include_directories("${name}" PRIVATE "${PROJECT_SOURCE_DIR}/examples/digits")
endfunction()

weir_example(digits
    digits/digits.c digits/network.c digits/dataset.c digits/report.c digits/pool.c digits/count_allocations.c
    digits/tracing.c)
target_link_libraries(digits PRIVATE weir::weir Threads::Threads ${CMAKE_DL_LIBS})

# Nothing of weir is linked here: only the header is used, and the library is opened when the program runs.
weir_example(dlopen_digits c/dlopen_digits.c digits/dataset.c)
target_include_directories(dlopen_digits PRIVATE "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(dlopen_digits PRIVATE ${CMAKE_DL_LIBS})

# An event loop of libuv's.
find_path(WEIR_UV_INCLUDE_DIR uv.h)
find_library(WEIR_UV_LIBRARY uv)
if(WEIR_UV_INCLUDE_DIR AND WEIR_UV_LIBRARY)
    weir_example(uv_digits c/uv_digits.c digits/network.c digits/dataset.c digits/pool.c)
    target_include_directories(uv_digits SYSTEM PRIVATE "${WEIR_UV_INCLUDE_DIR}")
    target_link_libraries(uv_digits PRIVATE weir::weir "${WEIR_UV_LIBRARY}" Threads::Threads)
endif()

# The pool, and what counts allocations, are those of the digits.
weir_example(voice
    voice/voice.c voice/model.c voice/listener.c voice/weights.c voice/audio.c voice/segments.c voice/picture.c
    digits/pool.c digits/count_allocations.c digits/tracing.c)
target_link_libraries(voice PRIVATE weir::weir Threads::Threads ${CMAKE_DL_LIBS})

weir_example(ocr ocr/ocr.c ocr/network_run.c ocr/picture.c ${ocr_sources} digits/pool.c)
target_link_libraries(ocr PRIVATE weir::weir Threads::Threads m)

# Programs that are slow, and what a trace led to: docs/slow.md.
foreach(program IN ITEMS ranking pitch decoder)
    weir_example("slow_${program}" "slow/${program}.c" slow/runs.c)
    target_link_libraries("slow_${program}" PRIVATE weir::weir m)
endforeach()

# Of the MPI that mpicc and mpirun belong to; ctests/comm builds it for others, too. The networks are those of digits
# and voice.
set(ranks_sources ranks/ranks.c ranks/training.c ranks/step.c ranks/pipeline.c digits/tracing.c)
weir_find_mpi(default mpicc mpirun)
if(TARGET mpi_default)
    weir_example(ranks ${ranks_sources} digits/network.c digits/dataset.c
        voice/model.c voice/listener.c voice/weights.c voice/audio.c)
    target_include_directories(ranks PRIVATE "${PROJECT_SOURCE_DIR}/examples/voice")
    target_link_libraries(ranks PRIVATE weir::weir mpi_default Threads::Threads m)
endif()
