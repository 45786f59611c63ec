#include "reference/core/machine/shared_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace ringlab {
namespace {

namespace fs = std::filesystem;

/// PATH and HOME lead to an installation of Python that is made up.
class SharedLibrary : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::canonical(fs::temp_directory_path()) /
              ("ringlab-shared-library-" + std::to_string(::getpid()));
    path_ = std::getenv("PATH");
    home_ = std::getenv("HOME") ? std::getenv("HOME") : "";
    make("env/bin/python3");
    ::setenv(
        "PATH",
        ("relative:" + (folder_ / "none").string() + ":" + (folder_ / "env/bin").string()).c_str(),
        1);
    ::setenv("HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    ::setenv("HOME", home_.c_str(), 1);
    fs::remove_all(folder_);
  }

  fs::path make(const fs::path& file) {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << "no library\n";
    return folder_ / file;
  }

  fs::path folder_;

 private:
  std::string path_, home_;
};

TEST_F(SharedLibrary, folders_are_those_of_every_python_on_the_path_and_of_the_user) {
  const std::string packages = "lib/python3.11/site-packages/nvidia/";
  make("env/" + packages + "cudnn/lib/libcudnn.so.9");
  make("env/" + packages + "nccl/lib/libnccl.so.2");
  make("env/" + packages + "nccl/include/nccl.h");
  make("env/local/lib/python3.11/dist-packages/nvidia/cu13/lib/libcublasLt.so.13");
  make(".local/" + packages + "cudnn/lib/libcudnn.so.9");
  make("other/" + packages + "cudnn/lib/libcudnn.so.9");
  const std::vector<fs::path> expected = {
      folder_ / "env" / packages / "cudnn/lib", folder_ / "env" / packages / "nccl/lib",
      folder_ / "env/local/lib/python3.11/dist-packages/nvidia/cu13/lib",
      folder_ / ".local" / packages / "cudnn/lib"};
  EXPECT_EQ(python_library_folders(), expected);
}

TEST_F(SharedLibrary, a_virtual_environment_is_looked_through_before_what_it_was_made_from) {
  const std::string packages = "lib/python3.11/site-packages/nvidia/";
  make("base/bin/python3.11");
  make("base/" + packages + "nccl/lib/libnccl.so.2");
  make("env/" + packages + "nccl/lib/libnccl.so.2");
  fs::remove(folder_ / "env/bin/python3");
  fs::create_symlink(folder_ / "base/bin/python3.11", folder_ / "env/bin/python3");
  const std::vector<fs::path> expected = {folder_ / "env" / packages / "nccl/lib",
                                          folder_ / "base" / packages / "nccl/lib"};
  EXPECT_EQ(python_library_folders(), expected);
}

TEST_F(SharedLibrary, what_the_loader_finds_is_that) {
  make("env/lib/python3.11/site-packages/nvidia/m/lib/libm.so.6");
  EXPECT_NE(open_shared_library("libm.so.6", RTLD_NOW | RTLD_LOCAL), nullptr);
}

TEST_F(SharedLibrary, what_is_nowhere_or_no_library_is_null_with_the_loaders_reason) {
  EXPECT_EQ(open_shared_library("libringlab_none.so.1", RTLD_NOW), nullptr);
  EXPECT_NE(std::string(::dlerror()).find("libringlab_none.so.1"), std::string::npos);
  const fs::path file = make("env/lib/python3.11/site-packages/nvidia/x/lib/libringlab_x.so.1");
  EXPECT_EQ(open_shared_library("libringlab_x.so.1", RTLD_NOW), nullptr);
  EXPECT_NE(std::string(::dlerror()).find(file.string()), std::string::npos);
}

}  // namespace
}  // namespace ringlab
