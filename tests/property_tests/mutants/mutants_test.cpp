#include "property_tests/mutants/mutants.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "optimized/cpu/bf16/bf16_dot.h"
#include "property_tests/mutants/planted_kernels.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"
#include "tests/property_tests/mutants/find_mutant.h"

namespace ringlab::mutants {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

verify::LawVerdict verdict_of(const verify::Subject& subject, const std::string& law) {
  verify::VerifyOptions options;
  options.cases_per_law = 60;
  return verify::verify_law(subject, verify::find_law(law), options);
}

TEST(Mutants, there_are_at_least_fifty_and_each_has_a_name_of_its_own) {
  std::set<std::string> ids;
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_TRUE(ids.insert(mutant.info.id).second) << mutant.info.id;
  }
  EXPECT_GE(ids.size(), 50u);
}

TEST(Mutants, each_says_what_it_breaks_asks_a_question_and_names_an_ancestor) {
  for (const Mutant& mutant : all_mutants()) {
    SCOPED_TRACE(mutant.info.id);
    EXPECT_FALSE(mutant.info.breaks.empty());
    EXPECT_NE(mutant.info.question.find('?'), std::string::npos);
    EXPECT_FALSE(mutant.info.ancestor.empty());
    EXPECT_EQ(mutant.subject.name, "mutant:" + mutant.info.id);
    EXPECT_FALSE(mutant.subject.can.dtypes.empty());
  }
}

TEST(Mutants, every_mistake_of_every_stage_is_planted) {
  std::set<std::string> planted;
  for (const Mutant& mutant : all_mutants()) planted.insert(mutant.info.id);
  const std::filesystem::path stages = std::filesystem::path(RINGLAB_SOURCE_DIR) / "stages";
  int mistakes = 0;
  for (const auto& folder : std::filesystem::directory_iterator(stages)) {
    std::istringstream lines(text_of(folder.path() / "mistakes.toml"));
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("id = \"", 0) != 0) continue;
      ++mistakes;
      EXPECT_TRUE(planted.contains(line.substr(6, line.size() - 7))) << line;
    }
  }
  EXPECT_GE(mistakes, 25);
}

TEST(Mutants, with_distances_in_16_bits_are_found_by_far_sizes) {
  if (!can_run_planted_kernels()) GTEST_SKIP() << "this processor cannot run planted kernels";
  const Mutant& wrapped = find_mutant("kernel_alibi_distance_in_16_bits");
  EXPECT_TRUE(verdict_of(wrapped.subject, "far_sizes").failure);
}

TEST(Mutants, every_mistake_of_the_kernels_is_planted) {
  if (!can_run_planted_kernels()) GTEST_SKIP() << "this processor cannot run them";
  std::istringstream lines(text_of(std::filesystem::path(RINGLAB_SOURCE_DIR) / "property_tests" /
                                   "mutants" / "kernel_mistakes.toml"));
  const bool has_bf16_products = cpu::bf16_dot::available();
  int mistakes = 0;
  std::string id;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("id = \"", 0) == 0) id = line.substr(6, line.size() - 7);
    if (line.rfind("pass = \"", 0) != 0) continue;
    const bool of_bf16 = line.rfind("pass = \"bf16_", 0) == 0 || line == "pass = \"amx\"";
    if (of_bf16 && !has_bf16_products) continue;
    ++mistakes;
    EXPECT_EQ(find_mutant(id).info.stage, "optimized");
  }
  EXPECT_GE(mistakes, 12);
}

TEST(Mutants, only_rows_of_many_keys_show_a_slice_that_is_added_twice) {
  if (!can_run_planted_kernels()) GTEST_SKIP() << "this processor cannot run them";
  const verify::Subject& doubled = find_mutant("kernel_later_slices_added_twice").subject;
  EXPECT_TRUE(verdict_of(doubled, "many_keys").failure);
  EXPECT_FALSE(verdict_of(doubled, "gradients_equal_reference").failure);
}

TEST(Mutants, hidden_keys_beside_seen_ones_show_where_a_few_queries_are_decoded) {
  if (!can_run_planted_kernels()) GTEST_SKIP() << "this processor cannot run them";
  const verify::Subject& beyond = find_mutant("kernel_few_maximum_beyond_the_keys").subject;
  for (const char* law : {"P29", "P34"}) EXPECT_TRUE(verdict_of(beyond, law).failure) << law;
  for (const char* law : {"equals_reference", "many_keys"}) {
    EXPECT_FALSE(verdict_of(beyond, law).failure) << law;
  }
}

TEST(Mutants, hundreds_of_queries_show_a_tile_of_queries_that_is_forgotten) {
  if (!can_run_planted_kernels()) GTEST_SKIP() << "this processor cannot run them";
  if (!cpu::bf16_dot::available()) GTEST_SKIP() << "no bf16 products here";
  const Mutant& forgetful = find_mutant("kernel_bf16_last_tile_of_a_key_forgotten");
  EXPECT_TRUE(verdict_of(forgetful.subject, "many_queries").failure);
}

TEST(Mutants, each_is_judged_by_the_numerics_of_the_correct_stage) {
  Problem problem;
  problem.shape = {.q_tokens = 9, .kv_tokens = 9, .head_dim = 2, .v_dim = 2};
  problem.mask = problem.mask.bind(9, 9);
  const RunOptions options;
  for (const Mutant& mutant : all_mutants()) {
    const auto correct = verify::find_subject(mutant.info.stage).profile(problem, options);
    EXPECT_EQ(mutant.subject.profile(problem, options).max_rescales, correct.max_rescales)
        << mutant.info.id;
  }
}

TEST(Mutants, one_runs_only_the_dtypes_it_is_compiled_for) {
  Problem problem;
  problem.shape = {.q_tokens = 1, .kv_tokens = 1, .head_dim = 1, .v_dim = 1};
  problem.dtype = DType::f64;
  problem.mask = problem.mask.bind(1, 1);
  const Tensor<double> ones({1, 1, 1, 1}, 1.0);
  const AttentionInput input{problem, ones.view(), ones.view(), ones.view()};
  EXPECT_THROW(find_mutant("ring_one_hop_short").subject.run(input, {}), Error);
}

TEST(Mutants, only_the_memory_law_finds_a_ring_that_keeps_every_chunk) {
  const verify::Subject& hoarder = find_mutant("ring_keeps_every_chunk").subject;
  EXPECT_TRUE(verdict_of(hoarder, "P72").failure);
  EXPECT_FALSE(verdict_of(hoarder, "equals_reference").failure);
}

TEST(Mutants, a_send_buffer_reused_too_early_shows_under_delays) {
  EXPECT_TRUE(verdict_of(find_mutant("ring_send_buffer_reused").subject, "P65").failure);
}

TEST(Mutants, a_missing_barrier_shows_in_the_order_of_the_threads) {
  EXPECT_TRUE(verdict_of(find_mutant("flash_blocks_missing_barrier").subject, "P70").failure);
}

TEST(Mutants, a_scaled_query_of_the_caller_is_seen_in_his_memory) {
  EXPECT_TRUE(verdict_of(find_mutant("query_scaled_in_place").subject, "P39").failure);
}

TEST(Mutants, strides_that_only_the_backward_pass_ignores_show_in_its_own_law) {
  for (const char* id : {"gradient_strides_ignored", "key_strides_ignored_backwards"}) {
    const verify::Subject& subject = find_mutant(id).subject;
    EXPECT_TRUE(verdict_of(subject, "P38-gradients").failure) << id;
    for (const char* law : {"P38", "P39", "gradients_equal_reference", "many_queries"}) {
      EXPECT_FALSE(verdict_of(subject, law).failure) << id << ", " << law;
    }
  }
}

TEST(Mutants, offsets_in_31_bits_show_where_strides_are_that_long) {
  const verify::Subject& subject = find_mutant("offsets_in_31_bits").subject;
  EXPECT_TRUE(verdict_of(subject, "far_strides").failure);
  for (const char* law : {"P38", "equals_reference", "many_keys"}) {
    EXPECT_FALSE(verdict_of(subject, law).failure) << law;
  }
}

TEST(Mutants, a_third_tile_that_the_backward_pass_skips_shows_where_there_are_three_of_both) {
  const verify::Subject& subject = find_mutant("third_tile_skipped_backwards").subject;
  EXPECT_TRUE(verdict_of(subject, "many_tiles").failure);
  for (const char* law : {"many_keys", "many_queries", "every_row", "gradients_equal_reference"}) {
    EXPECT_FALSE(verdict_of(subject, law).failure) << law;
  }
}

TEST(Mutants, whole_heads_that_no_kernel_computes_show_where_heads_are_whole) {
  const verify::Subject& subject = find_mutant("gradients_of_whole_heads_forgotten").subject;
  EXPECT_TRUE(verdict_of(subject, "whole_heads").failure);
  for (const char* law : {"many_keys", "many_queries", "many_tiles", "gradients_equal_reference"}) {
    EXPECT_FALSE(verdict_of(subject, law).failure) << law;
  }
}

TEST(Mutants, one_stale_row_in_thousands_shows_where_every_row_is_compared) {
  const verify::Subject& subject = find_mutant("one_stale_row_in_thousands").subject;
  EXPECT_TRUE(verdict_of(subject, "every_row").failure);
  for (const char* law : {"many_keys", "many_queries", "many_tiles", "equals_reference"}) {
    EXPECT_FALSE(verdict_of(subject, law).failure) << law;
  }
}

TEST(Mutants, what_is_counted_in_too_few_bits_shows_where_there_is_more) {
  const verify::Subject& keys = find_mutant("keys_counted_in_16_bits").subject;
  EXPECT_TRUE(verdict_of(keys, "far_positions").failure);
  const verify::Subject& windows = find_mutant("window_ends_in_32_bits").subject;
  EXPECT_TRUE(verdict_of(windows, "P33-wide").failure);
  for (const char* law : {"equals_reference", "many_keys", "many_tiles", "P33", "P33-narrow"}) {
    EXPECT_FALSE(verdict_of(keys, law).failure) << law;
    EXPECT_FALSE(verdict_of(windows, law).failure) << law;
  }
}

TEST(Mutants, the_page_of_the_documentation_lists_every_one) {
  const std::string page =
      text_of(std::filesystem::path(RINGLAB_SOURCE_DIR) / "docs" / "mutants.md");
  for (const Mutant& mutant : all_mutants()) {
    EXPECT_NE(page.find("`" + mutant.info.id + "`"), std::string::npos)
        << mutant.info.id << " is missing: kill_matrix --full --markdown docs/mutants.md";
  }
}

}  // namespace
}  // namespace ringlab::mutants
