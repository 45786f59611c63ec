#include "reference/core/options/option_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "reference/core/error.h"

namespace ringlab {
namespace {

TEST(OptionTable, every_word_and_every_name_is_there_once) {
  std::set<std::string> words, names;
  for (const RunOption& option : run_options()) {
    EXPECT_TRUE(words.emplace(option.word).second) << option.word;
    EXPECT_TRUE(names.insert(name_of(option)).second) << option.word;
    EXPECT_EQ(&run_option(option.word), &option);
  }
}

TEST(OptionTable, defaults_are_within_the_limits) { EXPECT_NO_THROW(check_limits({})); }

TEST(OptionTable, what_is_beyond_the_limits_is_refused_by_its_name) {
  const auto refused = [](const RunOptions& options, const std::string& name) {
    try {
      check_limits(options);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(error.parts().where, name);
    }
  };
  refused({.ranks = 0}, "ranks");
  refused({.ranks = 4097}, "ranks");
  refused({.slots = 4097}, "slots");
  refused({.timeout_s = 0}, "timeout_s");
  refused({.timeout_s = 2e9}, "timeout_s");
  refused({.threads = 4097}, "threads");
  refused({.tile_queries = 1025}, "tile_queries");
  refused({.tile_keys = 0}, "tile_keys");
}

TEST(OptionTable, words_of_a_list_are_read_back_as_they_were_set) {
  for (const RunOption& option : run_options()) {
    const auto* choice = std::get_if<ChoiceField>(&option.field);
    if (choice == nullptr) continue;
    for (const std::string_view word : choice->words) {
      RunOptions options;
      set_word(option, std::string(word), options);
      EXPECT_EQ(word_of(option, options), word);
    }
    RunOptions options;
    EXPECT_THROW(set_word(option, "sideways", options), Error);
  }
  RunOptions options;
  set_word(run_option("schedule"), "double:3", options);
  EXPECT_EQ(options.node_ranks, 3);
  EXPECT_EQ(word_of(run_option("schedule"), options), "double:3");
}

TEST(OptionTable, help_says_limits_and_defaults) {
  EXPECT_EQ(help_of(run_option("ranks")), "number of ranks, 1 … 4096 (1)");
  EXPECT_EQ(help_of(run_option("layout")),
            "contiguous, striped or zigzag: which tokens each rank holds (contiguous)");
  EXPECT_EQ(help_of(run_option("head-dim"), "128"), "channels per head to make (128)");
}

}  // namespace
}  // namespace ringlab
