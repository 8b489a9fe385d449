# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The installed tree: lib/libweir.so with its soname links, include/weir.h, weir.hpp and weir/, bin/weir_conformance and
# bin/weir_trace, a CMake package, a pkg-config file and the licences. Nothing in it knows where it lies: it may be moved
# as a whole. Components: runtime (the library and its licences), debug (its symbols and lines), testing (the library for
# tests with its links and headers, and the two programs) and dev (all the rest).

include(CMakePackageConfigHelpers)

# install(TARGETS) takes no imported targets, so the library is installed as a file, under its full name.
install(FILES "${weir_config_dir}/libweir.so"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}" RENAME "${WEIR_FILE_NAME}"
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
    COMPONENT runtime)
if(WEIR_BUILD_STATIC)
    install(FILES "${weir_config_dir}/libweir.a" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
endif()

# A tree of which some targets alone were built may have no library for tests.
install(FILES "${weir_config_dir}/libweir_testing.so"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}" RENAME "${weir_testing_soname}.${PROJECT_VERSION_PATCH}"
    PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE
    COMPONENT testing OPTIONAL)

# The installed library has no symbols but those that it exports. Debuggers find the rest by the library's build id, in
# debug/.build-id beside it (gdb: set debug-file-directory).
set(weir_installed "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(weir_installed "\$ENV{DESTDIR}${CMAKE_INSTALL_LIBDIR}")
endif()
install(CODE "
    execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --strip-all \"${weir_installed}/${WEIR_FILE_NAME}\"
                    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT runtime)
install(CODE "
    set(library \"${weir_installed}/${weir_testing_soname}.${PROJECT_VERSION_PATCH}\")
    if(EXISTS \"\${library}\")
        execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --strip-all \"\${library}\" COMMAND_ERROR_IS_FATAL ANY)
    endif()" COMPONENT testing)
if(WEIR_BUILD_STATIC)
    install(CODE "
    execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --strip-debug \"${weir_installed}/libweir.a\"
                    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT dev)
endif()
install(CODE "
    set(library \"${weir_config_dir}/libweir.so\")
    execute_process(COMMAND \"${CMAKE_READELF}\" -n \"\${library}\" OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
    if(notes MATCHES \"Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)\")
        set(file \"${weir_installed}/debug/.build-id/\${CMAKE_MATCH_1}/\${CMAKE_MATCH_2}.debug\")
        cmake_path(GET file PARENT_PATH folder)
        file(MAKE_DIRECTORY \"\${folder}\")
        execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --only-keep-debug --compress-debug-sections \"\${library}\" \"\${file}\"
                        COMMAND_ERROR_IS_FATAL ANY)
        message(STATUS \"Installing: \${file}\")
    else()
        message(STATUS \"The linker gives no build id, so debug lines are not installed\")
    endif()" COMPONENT debug)

# The links are made here and installed as they are, so DESTDIR and the install manifest hold for them too.
set(weir_links "${CMAKE_CURRENT_BINARY_DIR}/install-links")
file(MAKE_DIRECTORY "${weir_links}")
file(CREATE_LINK "${WEIR_FILE_NAME}" "${weir_links}/${WEIR_SONAME}" SYMBOLIC)
file(CREATE_LINK "${WEIR_SONAME}" "${weir_links}/libweir.so" SYMBOLIC)
install(FILES "${weir_links}/${WEIR_SONAME}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)
install(FILES "${weir_links}/libweir.so" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)

file(CREATE_LINK "${weir_testing_soname}.${PROJECT_VERSION_PATCH}" "${weir_links}/${weir_testing_soname}" SYMBOLIC)
file(CREATE_LINK "${weir_testing_soname}" "${weir_links}/libweir_testing.so" SYMBOLIC)
install(FILES "${weir_links}/${weir_testing_soname}" "${weir_links}/libweir_testing.so"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT testing)

install(FILES include/weir.h include/weir.hpp DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev)
install(DIRECTORY include/weir DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.json" PATTERN "*testing*" EXCLUDE)
install(FILES include/weir/testing.h include/weir/testing.hpp include/weir/weir_testing_cdef.h
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/weir" COMPONENT testing)
install(FILES LICENSE-MIT LICENSE-APACHE DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/weir" COMPONENT runtime)

set(weir_installed_programs "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}")
if(IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
    set(weir_installed_programs "\$ENV{DESTDIR}${CMAKE_INSTALL_BINDIR}")
endif()
if(TARGET weir_conformance AND WEIR_BUILD_TOOLS)
    # A tree of which some targets alone were built has none of these, and its library is installed.
    foreach(tool IN ITEMS weir_conformance weir_trace)
        install(TARGETS ${tool} DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT testing OPTIONAL)
        install(CODE "
    if(EXISTS \"$<TARGET_FILE:${tool}>\")
        execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --strip-all \"${weir_installed_programs}/${tool}\"
                        COMMAND_ERROR_IS_FATAL ANY)
    else()
        message(STATUS \"Not built, so not installed: ${tool}\")
    endif()" COMPONENT testing)
    endforeach()
endif()

# find_package(weir 0.1 CONFIG)
set(weir_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
configure_package_config_file(cmake/weir-config.cmake.in weir-config.cmake
    INSTALL_DESTINATION "${weir_package_dir}"
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(weir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/weir-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/weir-config-version.cmake"
    DESTINATION "${weir_package_dir}" COMPONENT dev)

# pkg-config --cflags --libs weir. The prefix is found from the place of the .pc file; directories that were given as
# absolute paths stay so.
set(weir_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(WEIR_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
    set(WEIR_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
else()
    file(RELATIVE_PATH weir_pc_up "/prefix/${weir_pc_dir}" "/prefix")
    string(REGEX REPLACE "/$" "" weir_pc_up "${weir_pc_up}")
    set(WEIR_PC_PREFIX "\${pcfiledir}/${weir_pc_up}")
    set(WEIR_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(WEIR_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
else()
    set(WEIR_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
list(TRANSFORM WEIR_STATIC_LINK_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE WEIR_PC_LIBS_PRIVATE)
list(JOIN WEIR_PC_LIBS_PRIVATE " " WEIR_PC_LIBS_PRIVATE)
configure_file(cmake/weir.pc.in weir.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/weir.pc" DESTINATION "${weir_pc_dir}" COMPONENT dev)
