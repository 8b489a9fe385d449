# SPDX-License-Identifier: MIT OR Apache-2.0
#
# How a test is made of a program, a script or a module.

set(warnings ${weir_warnings})
# Test programs compute little: more optimisation takes twice as long to compile and saves nothing when they run. What
# memcheck and sanitizers report has lines, and no variables.
set(test_optimization "$<IF:$<CONFIG:Debug>,-g,-O1;-g1>")
set(sanitize "")
set(sanitize_link "")
set(library weir::weir)
set(testing weir::testing)
if(WEIR_SANITIZE STREQUAL "thread")
    set(sanitize -fsanitize=thread)
    set(library thread_sanitizer)  # both libraries compiled with it, and the runtime
    set(testing "")
    add_subdirectory(thread_sanitizer)
elseif(WEIR_SANITIZE)
    # Optimised, what is instrumented takes longer to compile than the tests then save.
    set(test_optimization "$<IF:$<CONFIG:Debug>,-g,-O0;-g1>")
    list(JOIN WEIR_SANITIZE "," sanitizers)
    set(sanitize "-fsanitize=${sanitizers}" -fno-sanitize-recover=all)
    set(sanitize_link ${sanitize})
    # Instrumented code makes gcc warn of what cannot happen. ./dev test compiles everything else with -Werror.
    list(REMOVE_ITEM warnings -Werror)
endif()
set(memcheck "${WEIR_VALGRIND}" --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite,indirect
             --errors-for-leak-kinds=definite,indirect --fair-sched=yes)
# Memcheck reads all that a debugger would, two seconds long for each test: it gets the library with names only.
set(memcheck_library "${CMAKE_CURRENT_BINARY_DIR}/memcheck")
if(WEIR_TEST_VALGRIND AND WEIR_VALGRIND AND NOT WEIR_SANITIZE)
    add_custom_command(OUTPUT "${memcheck_library}/${WEIR_SONAME}"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${memcheck_library}"
        COMMAND "${CMAKE_OBJCOPY}" --strip-debug "$<TARGET_FILE:weir::weir>" "${memcheck_library}/${WEIR_SONAME}"
        DEPENDS weir_cargo "${weir_config_dir}/libweir.so"
        COMMENT "The library for memcheck")
    add_custom_target(memcheck_library ALL DEPENDS "${memcheck_library}/${WEIR_SONAME}")
endif()
set(digits "${PROJECT_SOURCE_DIR}/examples/digits")
set(voice "${PROJECT_SOURCE_DIR}/examples/voice")
set(ocr "${PROJECT_SOURCE_DIR}/examples/ocr")

# weir_test(<name> <label> <seconds> COMMAND <command>... [ENVIRONMENT <variable=value>...]): run in the source tree.
function(weir_test name label seconds)
    cmake_parse_arguments(PARSE_ARGV 3 test "" "" "COMMAND;ENVIRONMENT")
    add_test(NAME "${name}" COMMAND ${test_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties("${name}" PROPERTIES LABELS "${label}" TIMEOUT "${seconds}")
    if(test_ENVIRONMENT)
        set_tests_properties("${name}" PROPERTIES ENVIRONMENT "${test_ENVIRONMENT}")
    endif()
endfunction()

# A test that this machine cannot run; ctest reports it as skipped.
function(weir_skip name label reason)
    weir_test("${name}" "${label}" 60 COMMAND "${CMAKE_COMMAND}" -E echo "SKIPPED: ${reason}")
    set_tests_properties("${name}" PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED: ")
endfunction()

# weir_set(<property> <value> <test>...): for those of the tests that there are in this build.
function(weir_set property value)
    foreach(test IN LISTS ARGN)
        if(TEST "${test}")
            set_property(TEST "${test}" APPEND PROPERTY "${property}" "${value}")
        endif()
    endforeach()
endfunction()

# How test programs and their common parts are compiled.
function(weir_test_settings name)
    set_target_properties("${name}" PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
    target_include_directories("${name}" PRIVATE "${PROJECT_SOURCE_DIR}/ctests/common" "${digits}" "${voice}")
    target_compile_definitions("${name}" PRIVATE "DIGITS_DATA_DIR=\"${digits}\"" "VOICE_DATA_DIR=\"${voice}\""
        "OCR_DATA_DIR=\"${ocr}\"" "OCR_NETWORKS=\"${WEIR_OCR_NETWORKS}\"")
    target_compile_options("${name}" PRIVATE "${test_optimization}" -UNDEBUG ${warnings} ${sanitize})
    target_link_options("${name}" PRIVATE ${sanitize_link})
    target_link_libraries("${name}" PRIVATE ${testing} ${library} Threads::Threads m ${CMAKE_DL_LIBS})
endfunction()

# weir_program(<name> <source>...): linked with what the programs have in common.
function(weir_program name)
    add_executable("${name}" ${ARGN})
    weir_test_settings("${name}")
    target_link_libraries("${name}" PRIVATE common)
endfunction()

# weir_suite_test(<name> <source>... [ARGUMENTS <argument>...]): a program that exits 0 when all is well, run as it is
# and under memcheck; or with a sanitizer. WEIR_TEST_SCALE=small asks it for fewer rounds where each takes longer.
function(weir_suite_test name)
    cmake_parse_arguments(PARSE_ARGV 1 test "" "" ARGUMENTS)
    weir_program("${name}" ${test_UNPARSED_ARGUMENTS})
    if(WEIR_SANITIZE STREQUAL "thread")
        weir_test("race.${name}" race 300 COMMAND "${name}" ${test_ARGUMENTS}
            ENVIRONMENT WEIR_TEST_SCALE=small TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1)
    elseif(WEIR_SANITIZE)
        weir_test("suite.${name}" suite 300 COMMAND "${name}" ${test_ARGUMENTS}
            ENVIRONMENT WEIR_TEST_SCALE=small WEIR_MEMORY_MODE=direct)
    else()
        weir_test("suite.${name}" suite 300 COMMAND "${name}" ${test_ARGUMENTS})
        weir_memcheck_test("${name}" "$<TARGET_FILE:${name}>" ${test_ARGUMENTS})
    endif()
endfunction()

# weir_memcheck_test(<name> <program> <argument>...)
function(weir_memcheck_test name)
    if(NOT WEIR_TEST_VALGRIND)
        return()
    elseif(NOT WEIR_VALGRIND)
        weir_skip("valgrind.${name}" valgrind "there is no valgrind")
    else()
        weir_test("valgrind.${name}" valgrind 600 COMMAND ${memcheck} ${ARGN}
            ENVIRONMENT WEIR_TEST_SCALE=small WEIR_MEMORY_MODE=direct "LD_LIBRARY_PATH=${memcheck_library}")
    endif()
endfunction()

# weir_tests(<folder> <program>... [RACE <program>...]): programs of one source of their name each, and of what
# <program>_sources names besides; <program>_arguments are their arguments. Those after RACE use threads: they are
# also built with ThreadSanitizer. The folder is a second label, and a target that builds its programs.
function(weir_tests folder)
    cmake_parse_arguments(PARSE_ARGV 1 tests "" "" RACE)
    if(NOT TARGET "tests_${folder}")
        add_custom_target("tests_${folder}")
    endif()
    set(programs ${tests_RACE})
    if(NOT WEIR_SANITIZE STREQUAL "thread")
        list(PREPEND programs ${tests_UNPARSED_ARGUMENTS})
    endif()
    foreach(program IN LISTS programs)
        file(GLOB source RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "${folder}/${program}.c" "${folder}/${program}.cpp")
        weir_suite_test("${program}" ${source} ${${program}_sources} ARGUMENTS ${${program}_arguments})
        weir_set(LABELS "${folder}" "suite.${program}" "valgrind.${program}")
        add_dependencies("tests_${folder}" "${program}")
    endforeach()
endfunction()

# weir_with(<variable> <value;...> <program>...): the programs once more, for each value of a variable of the
# environment, which is read once per process.
function(weir_with variable values)
    foreach(program IN LISTS ARGN)
        foreach(value IN LISTS values)
            weir_test("suite.${program}.${value}" suite 300 COMMAND "${program}" ${${program}_arguments}
                ENVIRONMENT "${variable}=${value}")
        endforeach()
    endforeach()
endfunction()

# weir_refuses(<variable> <value> <program> <text>): a value that nobody knows, which the program expects to be refused
# with this text.
function(weir_refuses variable value program text)
    weir_test("suite.${program}.${value}" suite 60 COMMAND "${program}" "${text}" ENVIRONMENT "${variable}=${value}")
endfunction()

# weir_module(<name> <source>...): a module that a program loads.
function(weir_module name)
    add_library("${name}" MODULE ${ARGN})
    set_target_properties("${name}" PROPERTIES PREFIX "" C_STANDARD 11 C_STANDARD_REQUIRED ON)
    target_include_directories("${name}" PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/ctests/common")
    target_compile_options("${name}" PRIVATE "${test_optimization}" -UNDEBUG ${warnings})
    target_link_libraries("${name}" PRIVATE Threads::Threads)
endfunction()

# weir_conformance_test(<name> <expected exit status> <pattern;...> <argument of weir_conformance>...)
function(weir_conformance_test name status patterns)
    weir_test("conformance.${name}" conformance 300
        COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/scripts/conformance.sh" "$<TARGET_FILE:weir_conformance>" "${status}"
                "${patterns}" ${ARGN})
endfunction()

# weir_broken_pools(<clause> <pool>...) and weir_broken_devices(<clause> <kind>...): each breaks the clause, and
# weir_conformance finds that.
function(weir_broken_pools clause)
    foreach(pool IN LISTS ARGN)
        weir_conformance_test("${pool}" 1 "^${clause} .* FAIL " --budget 400 --rounds 8 "${pools}" "${pool}")
    endforeach()
endfunction()

function(weir_broken_devices clause)
    foreach(kind IN LISTS ARGN)
        weir_conformance_test("device_${kind}" 1 "^${clause} .* FAIL " --budget 1000 --plugin "${devices}" "${kind}")
    endforeach()
endfunction()

# weir_script_test(<name> <script> <argument>...)
function(weir_script_test name script)
    weir_test("script.${name}" script 1500 COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/scripts/${script}" ${ARGN}
        ENVIRONMENT "CC=${CMAKE_C_COMPILER}" "CXX=${CMAKE_CXX_COMPILER}")
    set_tests_properties("script.${name}" PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED: ")
endfunction()

# weir_python_test(<name> <argument of python>...): an example.
function(weir_python_test name)
    if(WEIR_PYTHON)
        weir_test("example.${name}" example 300 COMMAND "${WEIR_PYTHON}" -B ${ARGN})
    else()
        weir_skip("example.${name}" example "there is no python3")
    endif()
endfunction()
