# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Builds the library with cargo and wraps it into imported targets.
#
# cargo decides what is fresh, so its target runs in every build and does nothing when nothing changed. It has a target
# directory of its own: a developer's `cargo build` in the source tree neither waits for it nor throws it away.
# `cargo rustc --crate-type` builds exactly the artifacts that are wanted.

find_program(WEIR_CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin" DOC "The cargo that builds weir")
if(NOT WEIR_CARGO)
    message(FATAL_ERROR "weir needs cargo and rustc 1.89 or later: install rustup, or set WEIR_CARGO to your cargo")
endif()

set(weir_crate_types cdylib)
set(weir_release_dir "${WEIR_CARGO_TARGET_DIR}/release")
set(weir_debug_dir "${WEIR_CARGO_TARGET_DIR}/debug")
set(weir_config_dir "${WEIR_CARGO_TARGET_DIR}/$<IF:$<CONFIG:Debug>,debug,release>")
set(weir_byproducts "${weir_config_dir}/libweir.so" "${weir_config_dir}/${WEIR_SONAME}")
if(WEIR_BUILD_STATIC)
    string(APPEND weir_crate_types ",staticlib")
    list(APPEND weir_byproducts "${weir_config_dir}/libweir.a")
endif()

# Panics name the files of dependencies: without the folder that they were brought to. RUSTFLAGS of the environment come
# in the place of this, as of all that a configuration says.
set(weir_cargo_home "$ENV{CARGO_HOME}")
if(NOT weir_cargo_home)
    set(weir_cargo_home "$ENV{HOME}/.cargo")
endif()
set(weir_no_paths "build.rustflags=['--remap-path-prefix=${weir_cargo_home}=cargo']")

list(JOIN WEIR_FEATURES "," weir_features)
# The link beside the library is for programs of the build tree: they look for the soname when they start.
# A default target triple in the environment would move cargo's output, so it is taken away.
set(weir_in_all "")
if(WEIR_INSTALL)
    set(weir_in_all ALL)  # who installs needs the library, also if no program asks for it
endif()
add_custom_target(weir_cargo ${weir_in_all}
    COMMAND "${CMAKE_COMMAND}" -E env --unset=CARGO_BUILD_TARGET --unset=CARGO_TARGET_DIR
            "${WEIR_CARGO}" rustc --locked --package weir-capi --lib --crate-type "${weir_crate_types}"
            --no-default-features "--features=${weir_features}"
            --profile "$<IF:$<CONFIG:Debug>,dev,release>" --config "${weir_no_paths}"
            --manifest-path "${CMAKE_CURRENT_SOURCE_DIR}/Cargo.toml" --target-dir "${WEIR_CARGO_TARGET_DIR}"
    COMMAND "${CMAKE_COMMAND}" -E create_symlink libweir.so "${weir_config_dir}/${WEIR_SONAME}"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    BYPRODUCTS ${weir_byproducts}
    COMMENT "cargo builds libweir"
    USES_TERMINAL VERBATIM)

# The library for tests is built for those who ask for it: for programs that are linked with weir::testing, and to be
# installed as a component.
set(weir_testing_soname "libweir_testing.so.${PROJECT_VERSION_MAJOR}.${WEIR_HEADER_ABI_VERSION}")
add_custom_target(weir_testing_cargo ${weir_in_all}
    COMMAND "${CMAKE_COMMAND}" -E env --unset=CARGO_BUILD_TARGET --unset=CARGO_TARGET_DIR
            "${WEIR_CARGO}" rustc --locked --package weir-testing --lib --crate-type cdylib
            --profile "$<IF:$<CONFIG:Debug>,dev,release>" --config "${weir_no_paths}"
            --manifest-path "${CMAKE_CURRENT_SOURCE_DIR}/Cargo.toml" --target-dir "${WEIR_CARGO_TARGET_DIR}"
    COMMAND "${CMAKE_COMMAND}" -E create_symlink libweir_testing.so "${weir_config_dir}/${weir_testing_soname}"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    BYPRODUCTS "${weir_config_dir}/libweir_testing.so" "${weir_config_dir}/${weir_testing_soname}"
    COMMENT "cargo builds libweir_testing"
    USES_TERMINAL VERBATIM)
add_dependencies(weir_testing_cargo weir_cargo)

add_library(weir_shared SHARED IMPORTED GLOBAL)
set_target_properties(weir_shared PROPERTIES
    IMPORTED_LOCATION "${weir_release_dir}/libweir.so"
    IMPORTED_LOCATION_DEBUG "${weir_debug_dir}/libweir.so"
    IMPORTED_SONAME "${WEIR_SONAME}"
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_SOURCE_DIR}/include")
add_dependencies(weir_shared weir_cargo)
add_library(weir::weir ALIAS weir_shared)
add_library(weir::shared ALIAS weir_shared)

if(WEIR_BUILD_STATIC)
    add_library(weir_static STATIC IMPORTED GLOBAL)
    set_target_properties(weir_static PROPERTIES
        IMPORTED_LOCATION "${weir_release_dir}/libweir.a"
        IMPORTED_LOCATION_DEBUG "${weir_debug_dir}/libweir.a"
        INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CURRENT_SOURCE_DIR}/include"
        INTERFACE_COMPILE_DEFINITIONS WEIR_STATIC
        INTERFACE_LINK_LIBRARIES "${WEIR_STATIC_LINK_LIBRARIES}")
    add_dependencies(weir_static weir_cargo)
    add_library(weir::static ALIAS weir_static)
endif()

add_library(weir_testing SHARED IMPORTED GLOBAL)
set_target_properties(weir_testing PROPERTIES
    IMPORTED_LOCATION "${weir_release_dir}/libweir_testing.so"
    IMPORTED_LOCATION_DEBUG "${weir_debug_dir}/libweir_testing.so"
    IMPORTED_SONAME "${weir_testing_soname}"
    INTERFACE_LINK_LIBRARIES weir_shared)
add_dependencies(weir_testing weir_testing_cargo)
add_library(weir::testing ALIAS weir_testing)
