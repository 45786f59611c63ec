# cmake --install: the libraries, their headers, the program, and what find_package(ringlab) needs.
# Two components, which are two Debian packages: "program", and "development" for other projects.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/ringlab)

# device_engine is there in every build; without CUDA it says what is missing.
set(installed core attention io cpu_kernels fibres transport ring_engine stages stage_parts cuda_calls
    cudnn_calls device_engine cases property_tests diagnosis verifier)
if(RINGLAB_HAVE_CUDA)
  list(APPEND installed cuda_hopper cuda_kernels cuda_devices cudnn_attention ring_devices)
endif()
if(RINGLAB_HAVE_NCCL)
  list(APPEND installed nccl_transport nccl_links)
endif()

# Headers keep their root-relative names below include/ringlab: "reference/core/mask.h".
install(TARGETS ${installed} EXPORT ringlab_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/ringlab COMPONENT development
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ringlab COMPONENT development)
set(programs ringlab ringlab-plugin-host)
ringlab_final_run_path(${programs})
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
add_custom_target(what_is_installed DEPENDS ${installed} ${programs})

# Manual pages and completion are what the program itself says.
# No variable may have the name of a component: policy CMP0054 is not set where this runs.
install(CODE "set(built_ringlab \"$<TARGET_FILE:ringlab>\")" COMPONENT program)
install(CODE [[
  set(share "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share")
  file(MAKE_DIRECTORY "${share}/man/man1" "${share}/bash-completion/completions")
  execute_process(COMMAND "${built_ringlab}" help --bash COMMAND_ERROR_IS_FATAL ANY
                  OUTPUT_FILE "${share}/bash-completion/completions/ringlab")
  execute_process(COMMAND "${built_ringlab}" help --man COMMAND_ERROR_IS_FATAL ANY
                  OUTPUT_FILE "${share}/man/man1/ringlab.1")
  foreach(command doctor list run verify bench trace compare plan simulate)
    execute_process(COMMAND "${built_ringlab}" help ${command} --man COMMAND_ERROR_IS_FATAL ANY
                    OUTPUT_FILE "${share}/man/man1/ringlab-${command}.1")
  endforeach()
]] COMPONENT program)

install(EXPORT ringlab_targets NAMESPACE ringlab:: FILE ringlabTargets.cmake
        DESTINATION ${config_folder} COMPONENT development)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/scripts/cmake/ringlabConfig.cmake.in
  ${PROJECT_BINARY_DIR}/ringlabConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ringlabConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ringlabConfig.cmake
              ${PROJECT_BINARY_DIR}/ringlabConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT development)

if(RINGLAB_TESTS)
  add_test(NAME find_package.a_project_outside_the_tree_uses_an_installed_ringlab
           COMMAND ${CMAKE_COMMAND}
                   -D source=${PROJECT_SOURCE_DIR}/tests/find_package
                   -D build=${PROJECT_BINARY_DIR}
                   -D config=$<CONFIG>
                   -D compiler=${CMAKE_CXX_COMPILER}
                   -D flags=${CMAKE_CXX_FLAGS}
                   -D generator=${CMAKE_GENERATOR}
                   -P ${PROJECT_SOURCE_DIR}/tests/find_package/install_and_use.cmake)
  set_tests_properties(find_package.a_project_outside_the_tree_uses_an_installed_ringlab
                       PROPERTIES TIMEOUT 600)
endif()
