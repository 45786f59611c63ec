# One target per folder: ringlab_library(NAME SOURCES … HEADERS … DEPENDS …).
# Headers are a file set, so that each is compiled alone (all_verify_interface_header_sets).

function(ringlab_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${RINGLAB_WERROR}>>:-Werror>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${RINGLAB_WERROR}>>:-Werror=all-warnings>)
  # g++ 12 takes "literal" + std::string for overlapping memory (GCC bug 105651).
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
  # The compiler may not fuse or reorder what the error bounds speak about.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
endfunction()

function(ringlab_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    ringlab_options(${name})
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
endfunction()

function(ringlab_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  ringlab_options(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
endfunction()

# A GoogleTest program; every TEST in it becomes a ctest entry.
function(ringlab_test name)
  ringlab_program(${name} ${ARGN})
  # Under a sanitizer what is tested counts, not how fast the tests' own code is: compile it fast.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Sanitize>:-O0>)
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
