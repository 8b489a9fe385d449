# SPDX-License-Identifier: MIT OR Apache-2.0
#
# What an MPI needs is what its compiler says: a search for "MPI" would find one of those that are there.

# weir_find_mpi(<name> <compiler> <launcher>): a target mpi_<name> to link with, and WEIR_MPI_<name>_LAUNCHER; no target
# if compiler, launcher or header are missing.
function(weir_find_mpi name compiler launcher)
    find_program(WEIR_MPI_${name}_COMPILER ${compiler})
    find_program(WEIR_MPI_${name}_LAUNCHER ${launcher})
    if(TARGET mpi_${name} OR NOT WEIR_MPI_${name}_COMPILER OR NOT WEIR_MPI_${name}_LAUNCHER)
        return()
    endif()
    execute_process(COMMAND "${WEIR_MPI_${name}_COMPILER}" -show RESULT_VARIABLE failed
                    OUTPUT_VARIABLE says OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    separate_arguments(says UNIX_COMMAND "${says}")
    list(POP_FRONT says)
    set(includes ${says})
    list(FILTER includes INCLUDE REGEX "^-I")
    list(TRANSFORM includes REPLACE "^-I" "")
    list(FILTER says EXCLUDE REGEX "^-I")
    # Some distributions have the compiler without the header.
    find_path(WEIR_MPI_${name}_HEADER mpi.h HINTS ${includes})
    if(failed OR NOT WEIR_MPI_${name}_HEADER)
        return()
    endif()
    add_library(mpi_${name} INTERFACE)
    target_include_directories(mpi_${name} SYSTEM INTERFACE ${includes})
    target_link_libraries(mpi_${name} INTERFACE ${says})
endfunction()
