// Every option of `ringlab run` that could make ranks of a job compute, check or write different
// things is agreed on: where two ranks are given different words, both are told both values.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/run/job.h"
#include "optimized/transport/in_process.h"
#include "reference/io/tensor_file.h"
#include "tests/temporary_folder.h"

namespace ringlab::cli {

/// Those of this program.
const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = {run_command()};
  return commands;
}
std::string_view program_name() { return "ringlab"; }

namespace {

using Words = std::vector<std::string>;

constexpr int kRanks = 2;

/// A rank of threads in place of a process.
class ThreadSession final : public JobSession {
 public:
  explicit ThreadSession(int rank) : rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return kRanks; }
  Communicator& network() override { throw std::logic_error("nobody is met while words are read"); }
  void check_others(const std::string&) override {}
  void finish() override {}
  void outlast(int, const std::string&, const std::function<bool()>&) override {}
  void abort(const std::string&) noexcept override {}

 private:
  int rank_;
};

struct Rank {
  Arguments arguments;
  RunPlan plan;
};

Rank rank_of(int rank, const Words& words) {
  Words all = {"optimized", "--transport", "mpi"};
  all.insert(all.end(), words.begin(), words.end());
  Arguments arguments(all_commands().front(), all);
  ThreadSession session(rank);
  arguments.take_text("json");
  RunPlan plan = take_run_plan(arguments, &session);
  return {std::move(arguments), std::move(plan)};
}

/// What the ranks say of their difference, which is the same on both; empty when they agree.
std::string said_by(const std::vector<Rank>& ranks) {
  std::vector<std::string> said(kRanks);
  run_threads(kRanks, {}, [&](Communicator& network) {
    const auto mine = static_cast<std::size_t>(network.rank());
    try {
      agree_on_job(ranks[mine].arguments, ranks[mine].plan, network);
    } catch (const RankError& error) {
      said[mine] = error.failure().reason;
    }
  });
  EXPECT_EQ(said[0], said[1]);
  return said[0];
}

std::string said_by(const Words& first, const Words& second, const Words& both) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    Words words = both;
    const Words& own = rank == 0 ? first : second;
    words.insert(words.end(), own.begin(), own.end());
    ranks.push_back(rank_of(rank, words));
  }
  return said_by(ranks);
}

/// Words of rank 0 and of rank 1, and what both are told.
struct Difference {
  std::string option;
  Words first, second;
  std::string said;  // a regular expression
  Words both = {"--random", "--tokens", "16", "--heads", "4", "--kv-heads", "2"};
};

/// An option that may differ, and why.
struct Harmless {
  std::string option;
  Words first, second;
  std::string reason;
  Words both = {"--random", "--tokens", "16"};
};

/// An option that no job of --transport mpi has, so that the rank that is given it says so.
struct Refused {
  std::string option;
  Words words;
};

class JobAgreement : public ::testing::Test {
 protected:
  std::string tensors(const std::string& name, double value) {
    const io::FileTensor tensor{
        .dtype = DType::f32, .is_byte = false, .shape = {1, 1, 2, 1}, .values = {1, value}};
    io::write_tensors(folder_ / name, {{"q", tensor}, {"k", tensor}, {"v", tensor}});
    return folder_ / name;
  }
  std::string text(const std::string& name, const std::string& contents) {
    io::write_file(folder_ / name, contents);
    return folder_ / name;
  }
  std::string place(const std::string& name) { return folder_ / name; }
  std::vector<Difference> differences() {
    std::vector<Difference> rows = differences_of_the_problem();
    for (Difference& row : differences_of_the_run()) rows.push_back(std::move(row));
    return rows;
  }
  std::vector<Difference> differences_of_the_problem() {
    return {
        {"input",
         {"--input", tensors("a.safetensors", 1)},
         {"--input", tensors("b.safetensors", 2)},
         "input is a file of bytes [0-9a-f]{16} on rank 0 and a file of bytes [0-9a-f]{16} on rank "
         "1",
         {}},
        {"text",
         {"--text", text("a", "one text")},
         {"--text", text("b", "another.")},
         "input is a text that makes [0-9a-f]{16} on rank 0 and a text that makes [0-9a-f]{16} on",
         {}},
        {"random",
         {"--random"},
         {"--text", text("c", std::string(16, 'x'))},
         "input is random rows on rank 0 and a text that makes [0-9a-f]{16} on rank 1",
         {"--tokens", "16"}},
        {"tokens",
         {"--tokens", "16"},
         {"--tokens", "17"},
         R"(q is \(1, 4, 16, 32\) on rank 0 and \(1, 4, 17, 32\) on rank 1)",
         {"--random"}},
        {"queries",
         {"--queries", "3"},
         {"--queries", "4"},
         R"(q is \(1, 4, 3, 32\) on rank 0 and \(1, 4, 4, 32\) on rank 1)",
         {"--random", "--tokens", "16"}},
        {"heads",
         {"--heads", "2"},
         {"--heads", "4"},
         R"(q is \(1, 2, 16, 32\) on rank 0 and \(1, 4, 16, 32\) on rank 1)",
         {"--random", "--tokens", "16"}},
        {"kv-heads",
         {"--kv-heads", "1"},
         {"--kv-heads", "4"},
         R"(k is \(1, 1, 16, 32\) on rank 0 and \(1, 4, 16, 32\) on rank 1)",
         {"--random", "--tokens", "16"}},
        {"head-dim",
         {"--head-dim", "8"},
         {},
         R"(q is \(1, 4, 16, 8\) on rank 0 and \(1, 4, 16, 32\) on rank 1)"},
        {"seed", {}, {"--seed", "2"}, "seed is 1 on rank 0 and 2 on rank 1"},
        {"dtype", {"--dtype", "f64"}, {}, "dtype is f64 on rank 0 and f32 on rank 1"},
        {"mask", {}, {"--mask", "causal"}, "mask is full on rank 0 and causal on rank 1"},
        {"scale",
         {"--scale", "0.5"},
         {"--scale", "0.25"},
         "scale is 0.5 on rank 0 and 0.25 on rank 1"},
        {"softcap", {}, {"--softcap", "20"}, "modifiers is none on rank 0 and .*20.* on rank 1"},
        {"alibi",
         {"--alibi", "0.5"},
         {"--alibi", "0.25"},
         "modifiers is .*0.5.* on rank 0 and .*0.25.* on rank 1"},
        {"sinks", {"--sinks", "1"}, {}, "modifiers is .*1.* on rank 0 and none on rank 1"},
        {"dropout",
         {"--dropout", "0.5"},
         {"--dropout", "0.25"},
         "modifiers is .*0.5.* on rank 0 and .*0.25.* on rank 1"},
        {"dropout-seed",
         {"--dropout-seed", "7"},
         {},
         "modifiers is .*7.* on rank 0 and .* on rank 1",
         {"--random", "--tokens", "16", "--dropout", "0.5"}},
    };
  }
  std::vector<Difference> differences_of_the_run() {
    return {
        {"output",
         {"--output", place("o")},
         {},
         "--output is .*/o on rank 0 and not given on rank 1"},
        {"output-shards",
         {"--output-shards", "apart"},
         {},
         "--output-shards is apart on rank 0 and not given on rank 1",
         {"--random", "--tokens", "16", "--output", place("o")}},
        {"layout",
         {},
         {"--layout", "zigzag"},
         "layout of queries is contiguous on rank 0 and zigzag on rank 1"},
        {"direction",
         {"--direction", "previous"},
         {},
         "direction is previous on rank 0 and next on rank 1"},
        {"schedule",
         {},
         {"--schedule", "bidirectional"},
         "schedule is ring on rank 0 and bidirectional on rank 1"},
        {"slots", {"--slots", "3"}, {"--slots", "4"}, "slots is 3 on rank 0 and 4 on rank 1"},
        {"wire", {}, {"--wire", "bf16"}, "wire is exact on rank 0 and bf16 on rank 1"},
        {"integrity",
         {"--integrity", "full"},
         {},
         "integrity is full on rank 0 and headers on rank 1"},
        {"timeout", {"--timeout", "20"}, {}, "--timeout is 20 on rank 0 and not given on rank 1"},
        {"tile-queries",
         {"--tile-queries", "16"},
         {"--tile-queries", "8"},
         "tile-queries is 16 on rank 0 and 8 on rank 1"},
        {"tile-keys", {}, {"--tile-keys", "16"}, "tile-keys is [0-9]+ on rank 0 and 16 on rank 1"},
        {"backward", {"--backward"}, {}, "gradients is wanted on rank 0 and not wanted on rank 1"},
        {"check", {}, {"--check"}, "--check is not given on rank 0 and given on rank 1"},
        {"check-rows",
         {"--check-rows", "2"},
         {"--check-rows", "3"},
         "--check-rows is 2 on rank 0 and 3 on rank 1"},
        {"rounds", {"--rounds", "2"}, {}, "--rounds is 2 on rank 0 and not given on rank 1"},
        {"trace",
         {},
         {"--trace", place("t.json")},
         "--trace is not given on rank 0 and .*t.json on rank 1"},
        {"json",
         {"--json", place("a.json")},
         {"--json", place("b.json")},
         "--json is .*a.json on rank 0 and .*b.json on rank 1"},
    };
  }

  std::vector<Harmless> harmless() {
    return {
        {"input",
         {"--input", tensors("c.safetensors", 1)},
         {"--input", tensors("d.safetensors", 1)},
         "ranks on several machines have their own copies; the bytes are compared",
         {}},
        {"text",
         {"--text", text("d", "a text")},
         {"--text", text("e", "a text")},
         "the same; what is made of it is compared",
         {}},
        {"ranks", {"--ranks", "2"}, {}, "more or fewer than the job has are refused"},
        {"threads",
         {"--threads", "1"},
         {"--threads", "2"},
         "results are the same bits with any number"},
    };
  }

  static std::vector<Refused> refused() {
    return {{"ranks", {"--ranks", "3"}},       {"delay-seed", {"--delay-seed", "2"}},
            {"device", {"--device", "cuda"}},  {"rank", {"--rank", "1"}},
            {"meet", {"--meet", "folder"}},    {"graph", {"--graph"}},
            {"free-sms", {"--free-sms", "2"}}, {"deterministic", {"--deterministic", "on"}},
            {"auto", {"--auto", "laptop"}},    {"exact", {"--exact"}}};
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(JobAgreement, differing_options_are_named_with_both_values_and_their_ranks) {
  for (const Difference& row : differences()) {
    const std::string said = said_by(row.first, row.second, row.both);
    EXPECT_TRUE(std::regex_search(said, std::regex(row.said)))
        << "--" << row.option << ": " << (said.empty() ? "nothing said" : said);
  }
}

TEST_F(JobAgreement, options_that_may_differ_are_few_and_each_has_a_reason) {
  const std::vector<Harmless> rows = harmless();
  EXPECT_LE(rows.size(), 4u);
  for (const Harmless& row : rows) {
    EXPECT_EQ(said_by(row.first, row.second, row.both), "") << "--" << row.option;
    EXPECT_FALSE(row.reason.empty()) << "--" << row.option;
  }
}

TEST_F(JobAgreement, what_no_job_of_processors_has_is_refused_by_the_rank_that_is_given_it) {
  for (const Refused& row : refused()) {
    Words words = {"--random", "--tokens", "16"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    try {
      rank_of(1, words);
      ADD_FAILURE() << "--" << row.option << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.option), std::string::npos) << error.what();
    }
  }
}

// What jobs on devices have besides: plans of such a job, which no machine without them can take.
TEST_F(JobAgreement, options_of_devices_are_named_too) {
  struct OfDevices {
    std::string said;
    void (*set)(RunOptions&);
  };
  const std::vector<OfDevices> rows = {
      {"graph is off on rank 0 and on on rank 1", [](RunOptions& o) { o.as_graph = true; }},
      {"free-sms is 0 on rank 0 and 8 on rank 1",
       [](RunOptions& o) { o.free_multiprocessors = 8; }},
      {"deterministic is on on rank 0 and off on rank 1",
       [](RunOptions& o) { o.deterministic = false; }},
      {"device is cpu on rank 0 and cuda on rank 1",
       [](RunOptions& o) { o.device = DeviceKind::cuda; }},
      {"delay-seed is 0 on rank 0 and 5 on rank 1", [](RunOptions& o) { o.delay_seed = 5; }}};
  for (const OfDevices& row : rows) {
    std::vector<Rank> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(rank_of(rank, {"--random", "--tokens", "16"}));
      ranks.back().plan.place.transport = TransportKind::nccl;
    }
    row.set(ranks.back().plan.options);
    EXPECT_NE(said_by(ranks).find(row.said), std::string::npos) << row.said << "\n"
                                                                << said_by(ranks);
  }
}

// Whoever has another --transport, or none, is no rank of the job: the others say who did not come
// (cli.mpi).
TEST_F(JobAgreement, every_option_of_a_run_is_in_one_of_these_lists) {
  std::set<std::string> listed = {"transport"};
  for (const Difference& row : differences()) listed.insert(row.option);
  for (const Refused& row : refused()) listed.insert(row.option);
  for (const Harmless& row : harmless()) listed.insert(row.option);
  std::set<std::string> all;
  for (const OptionSpec& option : run_command().options) all.insert(option.name);
  EXPECT_EQ(listed, all);
  for (const Difference& row : differences()) {
    const std::string word = "--" + row.option;
    const auto gives = [&](const Words& words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    EXPECT_TRUE(gives(row.first) || gives(row.second)) << word;
  }
}

TEST_F(JobAgreement, ranks_of_the_same_words_agree) {
  EXPECT_EQ(said_by({}, {}, {"--random", "--tokens", "16", "--backward", "--mask", "causal"}), "");
}

}  // namespace
}  // namespace ringlab::cli
