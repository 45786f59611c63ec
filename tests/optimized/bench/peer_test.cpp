// Peers that answer, and peers that hang, die, talk nonsense and lie.
#include "optimized/bench/measure/peer.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "optimized/bench/measure/torch_peer.h"
#include "reference/core/error.h"

namespace ringlab::bench {
namespace {

using std::chrono::milliseconds;

PeerCommand shell(const std::string& script) {
  return {.name = "fake",
          .words = {"/bin/sh", "-c", script},
          .environment = {},
          .start_timeout = milliseconds(20'000),
          .answer_timeout = milliseconds(20'000)};
}
PeerCommand answering(const std::string& answer) {
  return shell("echo ready; while read line; do " + answer + "; done");
}

/// What the environment error says that `work` throws.
template <class Work>
std::string complaint(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::environment);
    return error.what();
  }
  return "nothing was thrown";
}
std::string complaint_about(const std::string& answer) {
  Peer peer(answering(answer));
  return complaint([&] { peer.ask("work"); });
}

/// No child is left, running or to be waited for.
void expect_no_children() {
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Peer, answers_each_request_with_its_seconds) {
  {
    Peer peer(shell("echo ready Fake 1.0; while read a b; do echo 0.00$b; done"));
    EXPECT_EQ(peer.description(), "Fake 1.0");
    EXPECT_DOUBLE_EQ(peer.ask("work 1"), 0.001);
    EXPECT_DOUBLE_EQ(peer.ask("work 2"), 0.002);
    EXPECT_DOUBLE_EQ(peer.ask("work 3e-1"), 0.0003);
  }
  expect_no_children();
}

TEST(Peer, gets_the_environment_it_is_to_have) {
  ::setenv("RINGLAB_PEER_TEST", "outside", 1);
  PeerCommand command = shell("echo ready $RINGLAB_PEER_TEST $HOME");
  command.environment = {{"RINGLAB_PEER_TEST", "inside"}, {"HOME", "here"}};
  EXPECT_EQ(Peer(command).description(), "inside here");
  ::unsetenv("RINGLAB_PEER_TEST");
}

TEST(Peer, that_is_not_there_is_named) {
  const std::string text = complaint([] { Peer({.name = "x", .words = {"/no/such/peer"}}); });
  EXPECT_NE(text.find("/no/such/peer"), std::string::npos) << text;
  expect_no_children();
}

TEST(Peer, that_dies_before_it_is_ready_is_quoted) {
  const std::string text =
      complaint([] { Peer(shell("echo first >&2; echo no such library >&2; exit 3")); });
  EXPECT_NE(text.find("exit code 3"), std::string::npos) << text;
  EXPECT_NE(text.find("no such library"), std::string::npos) << text;
  expect_no_children();
}

TEST(Peer, that_dies_at_work_says_of_what) {
  const std::string text = complaint_about("kill -9 $$");
  EXPECT_NE(text.find("signal 9"), std::string::npos) << text;
  expect_no_children();
}

TEST(Peer, that_hangs_is_ended_with_all_that_it_started) {
  PeerCommand command = answering("sleep 1000 & sleep 1000");
  command.answer_timeout = milliseconds(200);
  {
    Peer peer(command);
    const std::string text = complaint([&] { peer.ask("work"); });
    EXPECT_NE(text.find("within 200 ms"), std::string::npos) << text;
    EXPECT_EQ(complaint([&] { peer.ask("work"); }), text) << "the second time at once";
  }
  expect_no_children();
}

TEST(Peer, that_never_is_ready_is_ended) {
  PeerCommand command = shell("sleep 1000");
  command.start_timeout = milliseconds(200);
  const std::string text = complaint([&] { Peer{command}; });
  EXPECT_NE(text.find("ready within 200 ms"), std::string::npos) << text;
  expect_no_children();
}

TEST(Peer, that_does_not_go_is_made_to) {
  const auto start = std::chrono::steady_clock::now();
  { Peer peer(shell("trap '' TERM HUP PIPE; echo ready; exec <&-; sleep 1000")); }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  expect_no_children();
}

TEST(Peer, that_greets_with_something_else_is_quoted) {
  const std::string text = complaint([] { Peer(shell("echo hello")); });
  EXPECT_NE(text.find("'hello'"), std::string::npos) << text;
}

TEST(Peer, that_talks_nonsense_is_quoted) {
  for (const char* answer : {"fast", "1e-3 s", "nan", "inf", "-0.001", "0", "0x1p-10", "''"}) {
    const std::string text = complaint_about("echo " + std::string(answer));
    EXPECT_NE(text.find("the seconds of 'work'"), std::string::npos) << answer << ": " << text;
  }
}

TEST(Peer, that_talks_without_end_is_stopped) {
  const std::string text = complaint_about("exec yes no | tr -d '\\n'");
  EXPECT_NE(text.find("a line without an end"), std::string::npos) << text;
  expect_no_children();
}

TEST(Peer, that_prints_control_characters_makes_a_message_of_one_line) {
  const std::string text = complaint_about("printf 'a\\001\\033[31mb\\n'");
  EXPECT_NE(text.find("'a[31mb'"), std::string::npos) << text;
}

TEST(Peer, that_claims_more_time_than_passed_lies) {
  const std::string text = complaint_about("echo 1000");
  EXPECT_NE(text.find("that passed"), std::string::npos) << text;
}

TEST(Peer, that_claims_less_time_than_is_possible_lies) {
  Peer peer(answering("echo 0.001"));
  EXPECT_DOUBLE_EQ(peer.ask("work", {.least_seconds = 0.001}), 0.001);
  const std::string text = complaint([&] { peer.ask("work", {.least_seconds = 0.0011}); });
  EXPECT_NE(text.find("the least that 'work' can take"), std::string::npos) << text;
}

TEST(Peer, that_answers_twice_is_out_of_step_and_said_to_be) {
  Peer peer(answering("echo 0.001; echo 0.001"));
  const std::string text = complaint([&] {
    for (int i = 0; i < 1000; ++i) peer.ask("work");  // an answer is left over each time
  });
  EXPECT_NE(text.find("silence"), std::string::npos) << text;
}

TEST(Peer, that_cannot_says_why) {
  const std::string text = complaint_about("echo cannot allocate that much");
  EXPECT_NE(text.find("cannot allocate that much"), std::string::npos) << text;
}

TEST(TorchPeer, is_asked_in_nine_words_and_its_source_is_whole) {
  EXPECT_EQ(torch_request({.head_dim = 64, .heads = 8, .tokens = 16, .queries = 2},
                          {.kv_heads = 4, .how = "3"}),
            "forward f32 full 8 4 2 16 64 3");
  EXPECT_TRUE(torch_peer_source().ends_with("Cpu())\n"));
}

}  // namespace
}  // namespace ringlab::bench
