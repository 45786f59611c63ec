# Headers that most files include, read once: a fifth of a build was reading them again. Targets of
# a kind share them, because they share what the compiler has to agree on: libraries (PIC), programs
# (PIE), both hot or cold, tests (PIE, GoogleTest, hardly optimised).
option(RINGLAB_PCH "Precompile the headers that most files include" ON)

set(ringlab_common_headers <algorithm> <chrono> <cmath> <cstdint> <functional> <limits> <map>
    <memory> <numeric> <optional> <random> <string> <thread> <utility> <vector>)

# The target of a kind that has them.
function(ringlab_add_header_owner kind)
  set(owner ringlab_headers_${kind})
  set(source ${CMAKE_BINARY_DIR}/${owner}.cpp)
  file(GENERATE OUTPUT ${source} CONTENT "int main() {}\n")
  if(kind MATCHES library)
    add_library(${owner} OBJECT ${source})
  else()
    add_executable(${owner} EXCLUDE_FROM_ALL ${source})
  endif()
  ringlab_options(${owner})
  set(headers ${ringlab_common_headers})
  if(kind MATCHES cold)
    ringlab_compile_fast(${owner})
  endif()
  if(kind STREQUAL test)
    list(APPEND headers <gtest/gtest.h>)
    ringlab_test_options(${owner})
    target_link_libraries(${owner} PRIVATE GTest::gtest)
  endif()
  target_precompile_headers(${owner} PRIVATE ${headers})
endfunction()

# KIND: library, program, either of them cold, or test.
function(ringlab_precompiled_headers target kind)
  # Fuzzers instrument some targets and not others: what is precompiled would not fit.
  if(NOT RINGLAB_PCH OR RINGLAB_FUZZ)
    return()
  endif()
  if(NOT TARGET ringlab_headers_${kind})
    ringlab_add_header_owner(${kind})
  endif()
  target_precompile_headers(${target} REUSE_FROM ringlab_headers_${kind})
endfunction()
