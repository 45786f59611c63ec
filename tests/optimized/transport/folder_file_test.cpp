// Files in a folder that others may write to are never reached through a link.
#include "optimized/transport/files/folder_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "optimized/transport/files/file_communicator.h"
#include "optimized/transport/files/file_meeting.h"
#include "reference/core/error.h"
#include "tests/temporary_folder.h"

namespace ringlab {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::filesystem::path& path, const std::string& part, const std::string& text) {
  write_folder_file(path.parent_path() / part, path, std::as_bytes(std::span(text)), "rank 0");
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return error.what();
  }
  return "";
}

TEST(FolderFile, is_whole_and_read_back) {
  const TemporaryFolder folder;
  EXPECT_FALSE(FolderFile::open(folder / "a"));
  for (const std::string& text :
       {std::string("x\0y", 3), std::string(), std::string(100000, 'z')}) {
    write(folder / "a", "a.part", text);
    const auto file = FolderFile::open(folder / "a");
    ASSERT_TRUE(file);
    EXPECT_EQ(file->text(100000), text);
    EXPECT_EQ(folder.files(), std::vector<std::string>{"a"});
  }
  EXPECT_NE(refusal([&] { FolderFile::open(folder / "a")->text(99999); }).find("100000 bytes"),
            std::string::npos);
}

TEST(FolderFile, is_not_written_or_read_through_a_link) {
  const TemporaryFolder folder;
  write(folder / "mine", "mine.part", "precious");
  std::filesystem::create_symlink(folder / "mine", folder / "a.part");
  EXPECT_NE(refusal([&] { write(folder / "a", "a.part", "x"); }), "");
  EXPECT_EQ(contents(folder / "mine"), "precious");
  std::filesystem::create_symlink(folder / "mine", folder / "b");
  EXPECT_NE(refusal([&] { FolderFile::open(folder / "b"); }).find("a link"), std::string::npos);
  write(folder / "b", "b.part", "x");  // takes the place of the link
  EXPECT_EQ(contents(folder / "mine"), "precious");
  EXPECT_EQ(FolderFile::open(folder / "b")->text(1), "x");
}

TEST(FolderFile, is_no_pipe_and_no_folder_and_nobody_waits_for_one) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const auto& path : {folder / "pipe", folder.path()}) {
    EXPECT_NE(refusal([&] { FolderFile::open(path); }).find("no plain file"), std::string::npos);
  }
}

TEST(FolderFile, of_a_meeting_and_of_messages_is_not_a_link_either) {
  const TemporaryFolder folder;
  write(folder / "mine", "mine.part", "ringlab run 7, 2 ranks\nsecret");
  const FileMeetingPlace place{.folder = folder.path(),
                               .name = "ids",
                               .run = "7",
                               .rank = 0,
                               .ranks = 2,
                               .deadline = std::chrono::milliseconds(5000)};
  std::filesystem::create_symlink(folder / "mine", folder / "ids.1");
  EXPECT_NE(refusal([&] { FileMeeting(place).tell_all("x"); }).find("a link"), std::string::npos);
  FileCommunicator network({.folder = folder.path(), .rank = 0, .ranks = 2, .timeout_s = 5});
  std::filesystem::create_symlink(folder / "mine", folder / "1-0.3.0");
  std::vector<std::byte> buffer(29);
  EXPECT_NE(refusal([&] { network.wait(network.post_receive(1, 3, buffer)); }).find("a link"),
            std::string::npos);
  std::filesystem::create_symlink(folder / "mine", folder / "0-1.3.0.part");
  EXPECT_NE(refusal([&] { network.post_send(1, 3, buffer); }), "");
  EXPECT_EQ(contents(folder / "mine"), "ringlab run 7, 2 ranks\nsecret");
}

}  // namespace
}  // namespace ringlab
