// Ranks meet in a folder, or say who did not come.
#include "optimized/transport/files/file_meeting.h"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <thread>

#include "reference/core/error.h"
#include "tests/temporary_folder.h"

namespace ringlab {
namespace {

using std::chrono::milliseconds;

FileMeetingPlace place(const TemporaryFolder& folder, int rank, int ranks,
                       const std::string& run = "7") {
  return {.folder = folder.path(),
          .name = "ids",
          .run = run,
          .rank = rank,
          .ranks = ranks,
          .deadline = milliseconds(10000)};
}

std::string error_of(FileMeetingPlace where, milliseconds deadline) {
  where.deadline = deadline;
  FileMeeting meeting(where);
  try {
    meeting.tell_all("x");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return error.what();
  }
  return "";
}

TEST(FileMeeting, tells_all_ranks_what_all_ranks_say) {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    const TemporaryFolder folder;
    std::vector<std::string> said;
    for (int rank = 0; rank < ranks; ++rank) {
      said.push_back(std::string("\0a\nb", 4) + std::string(static_cast<std::size_t>(rank), '\n'));
    }
    std::vector<std::vector<std::string>> heard(said.size());
    std::vector<std::unique_ptr<FileMeeting>> meetings;
    for (int rank = 0; rank < ranks; ++rank) {
      meetings.push_back(std::make_unique<FileMeeting>(place(folder, rank, ranks)));
    }
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < said.size(); ++rank) {
        threads.emplace_back([&, rank] { heard[rank] = meetings[rank]->tell_all(said[rank]); });
      }
    }
    for (const auto& texts : heard) EXPECT_EQ(texts, said);
    EXPECT_EQ(folder.files().size(), said.size());
    meetings.clear();
    EXPECT_TRUE(folder.files().empty());
  }
}

TEST(FileMeeting, names_the_ranks_that_do_not_come_and_leaves_nothing) {
  const TemporaryFolder folder;
  const std::string text = error_of(place(folder, 1, 4), milliseconds(20));
  EXPECT_NE(text.find("no file of rank 0, rank 2, rank 3"), std::string::npos) << text;
  EXPECT_TRUE(folder.files().empty());
}

TEST(FileMeeting, refuses_files_of_other_runs_and_leaves_them) {
  const TemporaryFolder folder;
  for (const std::string stale :
       {"ringlab run 6, 2 ranks\nid", "ringlab run 7, 3 ranks\nid", "", "garbage"}) {
    std::ofstream(folder.path() / "ids.0") << stale;
    const std::string text = error_of(place(folder, 1, 2), milliseconds(10000));
    EXPECT_NE(text.find("ids.0"), std::string::npos) << text;
    EXPECT_NE(text.find("other runs"), std::string::npos) << text;
    EXPECT_EQ(folder.files(), std::vector<std::string>{"ids.0"});
  }
}

TEST(FileMeeting, refuses_an_own_file_that_is_there_before) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "ids.1") << "ringlab run 7, 2 ranks\nid";
  const std::string text = error_of(place(folder, 1, 2), milliseconds(10000));
  EXPECT_NE(text.find("this rank did not write"), std::string::npos) << text;
  EXPECT_EQ(folder.files(), std::vector<std::string>{"ids.1"});
}

TEST(FileMeeting, says_where_it_cannot_write) {
  const TemporaryFolder folder;
  FileMeetingPlace nowhere = place(folder, 0, 1);
  nowhere.folder /= "missing";
  const std::string text = error_of(nowhere, milliseconds(10000));
  EXPECT_NE(text.find("a folder that rank 0 can write to"), std::string::npos) << text;
}

TEST(FileMeeting, has_ranks_below_their_number_and_runs_of_one_line) {
  const TemporaryFolder folder;
  EXPECT_THROW(FileMeeting(place(folder, 2, 2)), Error);
  EXPECT_THROW(FileMeeting(place(folder, -1, 2)), Error);
  EXPECT_THROW(FileMeeting(place(folder, 0, 2, "7\n8")), Error);
}

}  // namespace
}  // namespace ringlab
