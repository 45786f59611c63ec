// NCCL is found at run time, or what is there instead is said.
#include "optimized/transport/nccl/nccl_library.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "reference/core/error.h"

namespace ringlab::nccl {
namespace {

std::string refusal_of(const std::string& name) {
  try {
    open_library(name);
    ADD_FAILURE() << name << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return error.what();
  }
  return "";
}

TEST(NcclLibrary, that_is_missing_is_named_with_what_to_do) {
  const std::string text = refusal_of("libnccl-of-nobody.so.2");
  for (const char* part : {"libnccl-of-nobody.so.2", "NCCL 2.14 or a newer 2.x",
                           "cannot open shared object file", "RINGLAB_NCCL_LIBRARY"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(NcclLibrary, that_is_something_else_is_refused) {
  EXPECT_NE(refusal_of("libm.so.6").find("a library without a NCCL version"), std::string::npos);
  EXPECT_NE(refusal_of("/proc/self/cmdline").find("expected NCCL"), std::string::npos);
}

TEST(NcclLibrary, is_named_by_the_variable) {
  ::unsetenv(kLibraryVariable);
  EXPECT_EQ(library_name(), "libnccl.so.2");
  ::setenv(kLibraryVariable, "", 1);
  EXPECT_EQ(library_name(), "libnccl.so.2");
  ::setenv(kLibraryVariable, "/opt/libnccl.so.2", 1);
  EXPECT_EQ(library_name(), "/opt/libnccl.so.2");
  ::unsetenv(kLibraryVariable);
}

TEST(NcclLibrary, has_versions_in_either_way_of_writing_them) {
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(21400), "2.14.0");
  EXPECT_EQ(version_text(30001), "3.0.1");
  EXPECT_EQ(version_text(2807), "2.8.7");
}

}  // namespace
}  // namespace ringlab::nccl
