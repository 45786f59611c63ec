# One target per folder:
# ringlab_library(NAME [ALONE] [COLD] SOURCES … HEADERS … INTERNAL_HEADERS … DEPENDS …).
# ALONE: its files are never compiled together. COLD: no time is spent in its own code, so that it
# is compiled fast; kernels, references, engines and what moves tensors are not cold.
# HEADERS are what a user of the library includes: they are installed. INTERNAL_HEADERS are for the
# rest of the project. Both are file sets: all_verify_interface_header_sets compiles each alone.

function(ringlab_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
      -Werror=switch>  # a kind that somebody forgot
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${RINGLAB_WERROR}>>:-Werror>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${RINGLAB_WERROR}>>:-Werror=all-warnings>)
  # g++ 12 takes "literal" + std::string for overlapping memory (GCC bug 105651), and with
  # precompiled headers for copies of more bytes than there can be, too.
  target_compile_options(${target} PRIVATE
    "$<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>")
  # g++ for Arm tells how structures of doubles and of vectors were passed before g++ 10.
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm)" AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -Wno-psabi)
  endif()
  # The compiler may not fuse or reorder what the error bounds speak about.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
  if(RINGLAB_DEV)
    ringlab_compile_fast(${target})
  endif()
endfunction()

# Code whose own speed does not count: compile it fast.
function(ringlab_compile_fast target)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()
if(RINGLAB_DEV)
  find_program(RINGLAB_CCACHE ccache)
  if(RINGLAB_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
        ${RINGLAB_CCACHE})
  endif()
  find_program(RINGLAB_MOLD mold)
  if(RINGLAB_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
# Ranks of a job compare the builds of their programs by it.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,--build-id RINGLAB_HAVE_BUILD_ID)
if(RINGLAB_HAVE_BUILD_ID)
  add_link_options(-Wl,--build-id)
endif()
# Tests' own code need not be fast: it is compiled fast.
function(ringlab_test_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Sanitize>:-O0>)
  ringlab_compile_fast(${target})
endfunction()
# But for the sources in which a cold library or a test spends its time.
function(ringlab_hot_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>
                              SKIP_PRECOMPILE_HEADERS ON)
endfunction()

include(precompiled_headers)

# Headers are read once for a few files, which halves the time of a build. The price: names that
# files of a target keep to themselves must differ, too.
option(RINGLAB_UNITY "Compile the files of a target a few at a time" OFF)
set(ringlab_files_together 16)
function(ringlab_unity target)
  if(NOT RINGLAB_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON
                        UNITY_BUILD_BATCH_SIZE ${ringlab_files_together})
  # It takes a file that is included for a header, whose types others would see, too.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE)
    if(NOT EXISTS ${path})
      continue()
    endif()
    # They include themselves, once for each kind of vectors.
    file(STRINGS ${path} kinds REGEX "foreach_target.h" LIMIT_COUNT 1)
    if(kinds)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

function(ringlab_library name)
  cmake_parse_arguments(ARG "ALONE;COLD" ""
                        "SOURCES;HEADERS;INTERNAL_HEADERS;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    ringlab_options(${name})
    if(ARG_COLD)
      ringlab_compile_fast(${name})
      ringlab_precompiled_headers(${name} cold_library)
    else()
      ringlab_precompiled_headers(${name} library)
    endif()
    if(NOT ARG_ALONE)
      ringlab_unity(${name})
    endif()
    target_link_libraries(${name} PRIVATE ${ARG_PRIVATE_DEPENDS})
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
    target_compile_features(${name} INTERFACE cxx_std_20)
  endif()
  target_sources(${name} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                 FILES ${ARG_HEADERS})
  target_link_libraries(${name} ${scope} ${ARG_DEPENDS})
  add_library(ringlab::${name} ALIAS ${name})
  if(ARG_INTERNAL_HEADERS)
    add_library(${name}_internal INTERFACE)  # nobody links it: what is exported must be installed
    target_sources(${name}_internal INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                   FILES ${ARG_INTERNAL_HEADERS})
    target_link_libraries(${name}_internal INTERFACE ${name} ${ARG_PRIVATE_DEPENDS})
  endif()
endfunction()

# KIND: program (unless given), cold_program or test.
function(ringlab_program name)
  cmake_parse_arguments(ARG "" "KIND" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  ringlab_options(${name})
  if(ARG_KIND STREQUAL test)
    ringlab_test_options(${name})
    ringlab_precompiled_headers(${name} test)
  elseif(ARG_KIND STREQUAL cold_program)
    ringlab_compile_fast(${name})
    ringlab_precompiled_headers(${name} cold_program)
  else()
    ringlab_precompiled_headers(${name} program)
  endif()
  ringlab_unity(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
endfunction()

# For what is installed: the linker writes at once where it finds its libraries. What CMake leaves in
# the build to be replaced when it installs ends with an empty element, which is the current folder.
function(ringlab_final_run_path)
  set_target_properties(${ARGN} PROPERTIES BUILD_WITH_INSTALL_RPATH ON
                        INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()

# A GoogleTest program; every TEST in it becomes a ctest entry.
function(ringlab_test name)
  ringlab_program(${name} KIND test ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 1200)
endfunction()

# Three targets are compiled and one is chosen at run time, for the whole process: AVX-512, AVX2
# with FMA, plain C++. Under a sanitizer and for editing two, without AVX-512, because that takes less
# time to compile. On Arm one: NEON. The registers of SVE have no size that arrays of them could have.
function(ringlab_vector_targets target)
  set(disabled "HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL")
  if(CMAKE_BUILD_TYPE STREQUAL Sanitize OR RINGLAB_DEV)
    string(APPEND disabled "|HWY_AVX3")
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm)")
    string(APPEND disabled "|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
  endif()
  target_compile_definitions(${target} PUBLIC "HWY_DISABLED_TARGETS=(${disabled})")
endfunction()

# Options of nvcc for a target's CUDA sources.
function(ringlab_cuda_options target)
  # 554: a view's conversion to its const form is constrained away where it is const already.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -diag-suppress=554>)
  # CMake before 3.26 does not know how nvcc is told to use C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>)
  endif()
endfunction()
