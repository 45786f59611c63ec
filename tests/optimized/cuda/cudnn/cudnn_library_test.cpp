#include "optimized/cuda/cudnn/cudnn_library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "reference/core/error.h"

namespace ringlab::cudnn {
namespace {

std::string refusal_of(const std::string& name) {
  try {
    open_library(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return error.what();
  }
  return "";
}

TEST(CudnnLibrary, says_what_was_expected_found_and_to_do) {
  const std::string missing = refusal_of("libnosuchcudnn.so.9");
  for (const char* part : {"libnosuchcudnn.so.9", "cuDNN 9.10.2 or a newer 9.x",
                           "cannot open shared object file", kLibraryVariable}) {
    EXPECT_NE(missing.find(part), std::string::npos) << part << " in " << missing;
  }
  EXPECT_NE(refusal_of("libm.so.6").find("without a cuDNN version"), std::string::npos);
}

TEST(CudnnLibrary, is_the_one_that_the_environment_names) {
  const char* const before = std::getenv(kLibraryVariable);
  const std::string kept = before ? before : "";
  ::setenv(kLibraryVariable, "/opt/cudnn.so", 1);
  EXPECT_EQ(library_name(), "/opt/cudnn.so");
  ::setenv(kLibraryVariable, "", 1);
  EXPECT_EQ(library_name(), "libcudnn.so.9");
  before ? ::setenv(kLibraryVariable, kept.c_str(), 1) : ::unsetenv(kLibraryVariable);
}

TEST(CudnnLibrary, versions_are_read_as_cudnn_writes_them) {
  EXPECT_EQ(version_text(91900), "9.19.0");
  EXPECT_EQ(version_text(91002), "9.10.2");
  EXPECT_EQ(version_text(8907), "8.9.7");
}

}  // namespace
}  // namespace ringlab::cudnn
