# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The programs: weir_conformance checks a thread pool against docs/threadpool.md, and weir_trace runs a program with a
# trace (docs/trace.md), which needs no library itself.

add_executable(weir_conformance "${CMAKE_CURRENT_SOURCE_DIR}/tools/conformance/weir_conformance.c")
# Installed, it finds the library from its own place, so the tree may be moved as a whole.
file(RELATIVE_PATH weir_bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
set_target_properties(weir_conformance PROPERTIES INSTALL_RPATH "$ORIGIN/${weir_bin_to_lib}")
target_link_libraries(weir_conformance PRIVATE weir::testing weir::weir ${CMAKE_DL_LIBS})

add_executable(weir_trace "${CMAKE_CURRENT_SOURCE_DIR}/tools/trace/weir_trace.c")
target_include_directories(weir_trace PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/include")

foreach(tool IN ITEMS weir_conformance weir_trace)
    set_target_properties(${tool} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON
        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/tools")
    target_compile_options(${tool} PRIVATE -g ${weir_warnings})
endforeach()
