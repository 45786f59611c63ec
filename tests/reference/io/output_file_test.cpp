// Output files are complete or absent, whatever happens while they are written.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "reference/io/atomic_file.h"
#include "tests/reference/io/io_testing.h"

namespace ringlab::io {
namespace {

namespace fs = std::filesystem;

/// A disk that is full after so many bytes of a file.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

FileTensor ramp(std::int64_t count) {
  FileTensor tensor{.dtype = DType::f32, .is_byte = false, .shape = {count}, .values = {}};
  for (std::int64_t i = 0; i < count; ++i) tensor.values.push_back(static_cast<double>(i));
  return tensor;
}

TEST(OutputFile, contents_are_written_whole_and_nothing_else_is_left) {
  const TemporaryFolder folder;
  const std::string contents = std::string("a\0b\n", 4) + std::string(100000, 'x');
  write_file(folder / "out.bin", contents);
  EXPECT_EQ(get(folder / "out.bin"), contents);
  write_file(folder / "out.bin", "");
  EXPECT_EQ(get(folder / "out.bin"), "");
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(OutputFile, a_new_file_has_ordinary_permissions) {
  const TemporaryFolder folder;
  put(folder / "ordinary", "x");
  write_file(folder / "ours", "x");
  EXPECT_EQ(fs::status(folder / "ours").permissions(),
            fs::status(folder / "ordinary").permissions());
}

TEST(OutputFile, a_full_disk_leaves_the_old_file_and_nothing_behind) {
  const TemporaryFolder folder;
  write_file(folder / "out.txt", "old");
  {
    const FullDisk disk(1000);
    expect_error(ErrorKind::environment, {"out.txt", "Nothing was left behind"},
                 [&] { write_file(folder / "out.txt", std::string(5000, 'x')); });
  }
  EXPECT_EQ(get(folder / "out.txt"), "old");
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(OutputFile, a_full_disk_leaves_no_tensor_of_several) {
  const TemporaryFolder folder;
  const NamedTensors tensors = {
      {"a_small", ramp(1)}, {"b_large", ramp(1000)}, {"c_small", ramp(1)}};
  const FullDisk disk(1000);
  for (const std::string name : {"new_folder", "new.safetensors"}) {
    expect_error(ErrorKind::environment, {}, [&] { write_tensors(folder / name, tensors); });
  }
  EXPECT_EQ(folder.files().size(), 0u);
}

// Devices and pipes of the test's own: a broken writer must not be able to replace /dev/null.
TEST(OutputFile, a_full_device_is_an_error) {
  const TemporaryFolder folder;
  const fs::path full = folder / "full";
  const bool made = ::mknod(full.c_str(), S_IFCHR | 0600, makedev(1, 7)) == 0;
  if (!made || ::access(full.c_str(), W_OK) != 0 || !std::ofstream(full).is_open()) {
    GTEST_SKIP() << "this user or file system cannot make a device";
  }
  expect_error(ErrorKind::environment, {"full", "No space left"}, [&] { write_file(full, "x"); });
  EXPECT_TRUE(fs::is_character_file(full));
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(OutputFile, a_pipe_is_written_to_and_not_replaced) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  write_file(pipe, "hello");
  char text[8] = {};
  EXPECT_EQ(::read(reader, text, sizeof(text)), 5);
  EXPECT_EQ(std::string(text), "hello");
  EXPECT_TRUE(fs::is_fifo(pipe));
  ::close(reader);
}

TEST(OutputFile, a_link_stays_a_link_and_its_file_gets_the_contents) {
  const TemporaryFolder folder;
  put(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "target"), "new");
}

TEST(OutputFile, a_link_to_what_is_not_there_yet_is_followed_too) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink("elsewhere/target", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(get(folder / "elsewhere/target"), "new");
}

TEST(OutputFile, a_file_that_is_replaced_keeps_its_permissions) {
  const TemporaryFolder folder;
  for (const auto mode : {fs::perms{0600}, fs::perms{0444}, fs::perms{0751}}) {
    put(folder / "file", "old");
    fs::permissions(folder / "file", mode);
    write_file(folder / "file", "new");
    EXPECT_EQ(get(folder / "file"), "new");
    EXPECT_EQ(fs::status(folder / "file").permissions(), mode);
    fs::remove(folder / "file");
  }
}

TEST(OutputFile, several_files_get_their_names_together_or_none_does) {
  const TemporaryFolder folder;
  put(folder / "old", "old");
  fs::create_directory(folder / "place");
  {
    AtomicFiles files;
    files.write(folder / "new", "new");
    files.write(folder / "old", "newer");
    files.write(folder / "place/file", "x");
    EXPECT_FALSE(fs::exists(folder / "new"));
    EXPECT_EQ(get(folder / "old"), "old");
    fs::remove_all(folder / "place");  // where the last one was to be
    expect_error(ErrorKind::environment, {"file", "Nothing was left behind"},
                 [&] { files.commit(); });
  }
  EXPECT_EQ(get(folder / "old"), "old");
  EXPECT_EQ(folder.files().size(), 1u);
  AtomicFiles files;
  files.write(folder / "new", "new");
  files.write(folder / "old", "newer");
  files.commit();
  EXPECT_EQ(get(folder / "new") + get(folder / "old"), "newnewer");
  EXPECT_EQ(folder.files().size(), 2u);
}

TEST(OutputFile, folders_that_a_failure_leaves_empty_go_and_others_stay) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "mine");
  {
    AtomicFiles one, other;
    one.expect_folder(folder / "a/b");
    other.expect_folder(folder / "a/b");
    one.make_folder(folder / "a/b/one");
    other.make_folder(folder / "a/b/other");
    one.make_folder(folder / "mine");
  }
  EXPECT_FALSE(fs::exists(folder / "a"));
  EXPECT_TRUE(fs::exists(folder / "mine"));
}

TEST(OutputFile, a_link_to_a_folder_that_is_not_there_yet_is_followed_and_goes_again) {
  const TemporaryFolder folder;
  fs::create_symlink("real", folder / "link");
  { AtomicFiles().make_folder(folder / "link"); }
  EXPECT_EQ(folder.files(), std::vector<std::string>{"link"});
  AtomicFiles files;
  files.make_folder(folder / "link");
  files.write(folder / "link/file", "whole");
  files.commit();
  EXPECT_EQ(get(folder / "real/file"), "whole");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

TEST(OutputFile, links_in_a_circle_are_errors_and_stay) {
  const TemporaryFolder folder;
  fs::create_symlink("two", folder / "one");
  fs::create_symlink("one", folder / "two");
  expect_error(ErrorKind::environment, {"one"},
               [&] { write_file(folder / "one", "nowhere to go"); });
  expect_error(ErrorKind::environment, {"one"}, [&] { AtomicFiles().make_folder(folder / "one"); });
  EXPECT_TRUE(fs::is_symlink(folder / "one"));
  EXPECT_EQ(folder.files().size(), 2u);
}

TEST(OutputFile, what_is_discarded_before_a_sudden_end_leaves_nothing) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFiles files;
    files.make_folder(folder / "made");
    files.write(folder / "made/file", "x");
    discard_uncommitted_files();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(OutputFile, places_that_cannot_be_written_are_environment_errors) {
  const TemporaryFolder folder;
  put(folder / "file", "x");
  fs::create_directory(folder / "folder");
  for (const std::string place : {"missing/out.txt", "file/out.txt", "folder"}) {
    expect_error(ErrorKind::environment, {place}, [&] { write_file(folder / place, "x"); });
  }
  expect_error(ErrorKind::environment, {"directory"}, [&] {
    write_tensors(folder / "file", {{"q", ramp(2)}});
  });
  EXPECT_EQ(folder.files().size(), 2u);
}

TEST(OutputFile, names_of_the_longest_legal_length_work) {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  write_file(folder / name, "x");
  EXPECT_EQ(get(folder / name), "x");
}

TEST(OutputFile, a_minus_is_standard_output) {
  testing::internal::CaptureStdout();
  write_file("-", "{\"a\": 1}\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{\"a\": 1}\n");
  EXPECT_FALSE(fs::exists("-"));
}

}  // namespace
}  // namespace ringlab::io
