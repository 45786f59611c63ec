// A job whose ranks meet in a folder: they talk, end together, and hear of each other's failures.
#include "optimized/transport/files/folder_session.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <latch>
#include <thread>

#include "optimized/transport/tell_all.h"
#include "reference/core/error.h"
#include "tests/optimized/transport/any_network.h"
#include "tests/temporary_folder.h"

namespace ringlab {
namespace {

/// `work(session)` on every rank; returns the errors' texts.
std::vector<std::string> on_all_ranks(const TemporaryFolder& folder, int ranks, double timeout_s,
                                      const std::function<void(JobSession&)>& work) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto session = start_in_folder(
            {.folder = folder.path(), .rank = rank, .ranks = ranks, .timeout_s = timeout_s});
        EXPECT_EQ(session->rank(), rank);
        EXPECT_EQ(session->ranks(), ranks);
        work(*session);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::environment);
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(FolderSession, of_any_number_of_ranks_lets_all_tell_all_and_leaves_nothing) {
  const TemporaryFolder folder;  // one after the other in the same folder
  for (int ranks = 1; ranks <= 7; ++ranks) {
    std::vector<std::string> said;
    for (int rank = 0; rank < ranks; ++rank) {
      said.push_back(std::string("\0\n", 2) + std::string(static_cast<std::size_t>(rank), 'x'));
    }
    said.front().clear();
    const auto errors = on_all_ranks(folder, ranks, 30, [&](JobSession& session) {
      const TellAll tell_all = tell_all_over(session.network(), 5);
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(tell_all(said[static_cast<std::size_t>(session.rank())]), said);
      }
      session.check_others("look");
      session.finish();
    });
    EXPECT_EQ(errors, std::vector<std::string>(said.size()));
    EXPECT_TRUE(folder.files().empty()) << folder.files().front();
  }
}

/// A rank that goes must not take the folder from those that are still to be told.
TEST(FolderSession, of_many_ranks_ends_well_whoever_goes_first) {
  const TemporaryFolder folder;
  for (int job = 0; job < 40; ++job) {
    const auto errors = on_all_ranks(folder, 9, 30, [](JobSession& session) { session.finish(); });
    ASSERT_EQ(errors, std::vector<std::string>(9)) << "job " << job;
    ASSERT_TRUE(folder.files().empty()) << folder.files().front();
  }
}

TEST(FolderSession, ends_all_ranks_when_one_says_that_it_failed_whatever_they_do) {
  const TemporaryFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  std::latch is_posted(1);  // a rank that hears of the failure earlier says so when it posts
  const auto errors = on_all_ranks(folder, 4, 60, [&](JobSession& session) {
    if (session.rank() == 2) {
      is_posted.wait();
      return session.abort("no room\nat all");
    }
    if (session.rank() == 0) return session.finish();
    if (session.rank() == 1) {
      int value = 0;
      const Request request = session.network().post_receive(3, 0, writable_bytes_of(&value, 1));
      is_posted.count_down();
      return session.network().wait(request);
    }
    for (;;) session.check_others("wait for the device");
  });
  EXPECT_EQ(errors[2], "");
  for (const int rank : {0, 1, 3}) {
    const std::string& text = errors[static_cast<std::size_t>(rank)];
    expect_in("rank " + std::to_string(rank), text);
    expect_in("rank 2 failed (no room\nat all)", text);
    expect_in("Suspect: rank 2", text);
  }
  expect_in("receive tag 0 from rank 3", errors[1]);
  expect_in("wait for the device", errors[3]);
  EXPECT_LT(seconds_since(begin), 20);
  // Whatever it left does not disturb the next job.
  const auto next = on_all_ranks(folder, 4, 30, [](JobSession& session) { session.finish(); });
  EXPECT_EQ(next, std::vector<std::string>(4));
}

TEST(FolderSession, says_after_a_failure_what_it_was_in_every_call) {
  const TemporaryFolder folder;
  const auto errors = on_all_ranks(folder, 2, 30, [](JobSession& session) {
    if (session.rank() == 1) {
      session.abort("first");
      session.abort("second");
      EXPECT_THROW(session.check_others("look"), RankError);
      EXPECT_THROW(session.finish(), RankError);
      return;
    }
    EXPECT_THROW(session.finish(), RankError);
    session.abort("consequence");
    session.check_others("look again");
  });
  expect_in("rank 1 failed (first)", errors[0]);
  expect_in("look again", errors[0]);
}

TEST(FolderSession, waits_for_a_message_until_its_deadline_and_tells_the_others) {
  const TemporaryFolder folder;
  const auto errors = on_all_ranks(folder, 2, 0.5, [](JobSession& session) {
    if (session.rank() == 0) receive_ints(session.network(), 1, 7, 1);
    for (;;) session.check_others("wait for the device");
  });
  expect_in("receive tag 7 from rank 1", errors[0]);
  expect_in("no message after 0.5", errors[0]);
  expect_in("Suspect: rank 1", errors[0]);
  expect_in("rank 0 failed (no message)", errors[1]);
}

TEST(FolderSession, names_the_ranks_that_do_not_come) {
  const TemporaryFolder folder;
  try {
    start_in_folder({.folder = folder.path(), .rank = 1, .ranks = 3, .timeout_s = 0.02});
    FAIL() << "it began";
  } catch (const RankError& error) {
    expect_in("no file of rank 0, rank 2", error.what());
  }
  EXPECT_TRUE(folder.files().empty());
}

TEST(FolderSession, refuses_a_message_of_another_size) {
  const TemporaryFolder folder;
  const auto errors = on_all_ranks(folder, 2, 30, [](JobSession& session) {
    if (session.rank() == 0) return send_ints(session.network(), 1, 3, {1, 2});
    receive_ints(session.network(), 0, 3, 1);
  });
  expect_in("a message of 8 bytes, not 4", errors[1]);
}

TEST(FolderSession, makes_its_folder_or_says_why_not) {
  const TemporaryFolder folder;
  const auto begin_in = [](const std::filesystem::path& path, int rank, double timeout_s) {
    start_in_folder({.folder = path, .rank = rank, .ranks = 1, .timeout_s = timeout_s})->finish();
  };
  begin_in(folder.path() / "new" / "deep", 0, 30);
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "new" / "deep"));
  std::ofstream(folder.path() / "file") << "x";
  for (const char* name : {"file", "file/below"}) {
    try {
      begin_in(folder.path() / name, 0, 30);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::environment);
      expect_in("expected a folder", error.what());
    }
  }
  for (const auto& [rank, timeout_s] : {std::pair{1, 1.0}, {-1, 1.0}, {0, 0.0}, {0, NAN}}) {
    try {
      begin_in(folder.path(), rank, timeout_s);
      ADD_FAILURE() << rank << " " << timeout_s;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    }
  }
}

TEST(FileCommunicator, refuses_peers_tags_and_requests_that_make_no_sense) {
  const TemporaryFolder folder;
  on_all_ranks(folder, 1, 30, [](JobSession& session) {
    Communicator& network = session.network();
    for (const auto& [peer, tag] : {std::pair{1, 0}, {-1, 0}, {0, -1}}) {
      EXPECT_THROW(network.post_send(peer, tag, {}), Error);
      EXPECT_THROW(network.post_receive(peer, tag, {}), Error);
    }
    const Request request = network.post_send(0, 0, {});
    network.wait(request);
    EXPECT_THROW(network.wait(request), Error);
    EXPECT_THROW(network.wait({.id = 77}), Error);
    network.wait(network.post_receive(0, 0, {}));
    session.finish();
  });
}

}  // namespace
}  // namespace ringlab
