// Files of machines: what they have to have, and what is said of those that have not.
#include "reference/model/machine_file.h"

#include <gtest/gtest.h>

#include <set>

#include "reference/core/error.h"

namespace ringlab::model {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::logic_error("no " + what);
  return text.replace(at, what.size(), by);
}

/// With a figure that few machines have.
std::string text_of(std::string_view name) {
  for (const MachineText& file : machine_texts()) {
    if (file.name != name) continue;
    return replaced(
        std::string(file.text), "\"merge_bytes\"",
        "\"transfer_share\": {\"value\": 0.5, \"source\": \"a test\"}, \"merge_bytes\"");
  }
  throw std::logic_error("no such machine");
}

/// What is said of a file in which `what` is replaced.
std::string refusal(const std::string& what, const std::string& by) {
  try {
    machine_of_json(replaced(text_of("h800"), what, by), "m.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "";
}

/// The same of a number in place of a figure's.
std::string refusal_of_figure(const std::string& figure, const std::string& number) {
  const std::string text = text_of("h800"), begin = "\"" + figure + "\": {\"value\": ";
  const std::size_t at = text.find(begin) + begin.size();
  return refusal(text.substr(at - begin.size(), text.find(',', at) - at + begin.size()),
                 begin + number);
}

TEST(MachineFiles, of_the_repository_have_their_names_and_are_all_different) {
  std::set<std::string> names;
  for (const MachineText& file : machine_texts()) {
    EXPECT_EQ(machine_of_json(file.text, "file").name, file.name);
    EXPECT_TRUE(names.insert(std::string(file.name)).second);
  }
  EXPECT_EQ(known_machines().size(), names.size());
}

TEST(MachineFiles, are_refused_with_the_figure_that_is_wrong) {
  const std::vector<std::pair<std::pair<std::string, std::string>, std::string>> cases = {
      {{"\"schema\": 1", "\"schema\": 2"}, "m.json: schema: expected 1, found 2"},
      {{"\"memory_gb\"", "\"memory_gib\""}, "m.json: expected \"memory_gb\", found none"},
      {{"\"value\": 80,", "\"value\": \"80\","}, "m.json: memory_gb: value: expected a number"},
      {{"\"value\": 80,", "\"value\": -80,"},
       "m.json: memory_gb: value: expected a number above 0, up to 1e30, found -80"},
      {{"\"ranks\": 8", "\"ranks\": 0"}, "m.json: node: ranks: expected a whole number"},
      {{"\"ranks\": 8", "\"ranks\": 2.5"}, "m.json: node: ranks: expected a whole number"},
      {{"\"switched\"", "\"tangled\""},
       "m.json: node: wiring: expected switched, direct or shared"},
      {{"\"dtype\": \"bf16\"", "\"dtype\": \"int3\""}, "m.json: attention: dtype: expected a type"},
      {{"\"forward_tflops\": 370", "\"forward_tflops\": 0"},
       "m.json: attention: forward_tflops: expected a number above 0, up to 1e30, found 0"},
      {{"\"mask\": \"causal\"", "\"mask\": \"full\""},
       "attention: expected a speed for each kind once, found bf16 and head_dim 128 twice"},
      {{"\"mask\": \"causal\"", "\"mask\": \"prefix\""}, "mask: expected full or causal"},
      {{"\"link_share\": {\"value\": 0.8", "\"link_share\": {\"value\": 1.8"}, "expected a share"},
      {{"\"merge_bytes\"", "\"merge_byte\""},
       "expected keys that machines have, found \"merge_byte\""},
      {{"\"source\": \"assumed\"", "\"from\": \"assumed\""}, "expected \"source\", found none"},
      {{"{", "{\"schema\": 1,"}, "every key once"},
      {{"}", ""}, "m.json: expected a JSON machine"},
  };
  for (const auto& [edit, said] : cases) {
    const std::string found = refusal(edit.first, edit.second);
    EXPECT_NE(found.find(said), std::string::npos) << edit.second << ": " << found;
  }
}

/// Every figure that a file can have, with a number that it cannot have.
TEST(MachineFiles, have_no_figure_that_makes_no_sense) {
  const std::string positive = "expected a number above 0, up to 1e30, found ";
  const std::string not_negative = "expected a number from 0 up to 1e30, found ";
  const std::string share = "expected a share above 0, 1 at most, found ";
  const std::vector<std::pair<std::string, std::string>> figures = {
      {"product_tflops", positive},  {"memory_gb", positive},
      {"memory_gb_per_s", positive}, {"gb_per_s", positive},
      {"block_us", not_negative},    {"latency_us", not_negative},
      {"merge_bytes", not_negative}, {"link_share", share},
      {"product_share", share},      {"transfer_share", "expected a share from 0 to 1, found "}};
  for (const auto& [figure, expected] : figures) {
    std::vector<std::string> wrong = {"-1.5", "1e+31", "1e+300"};
    if (expected == positive || expected == share) wrong.emplace_back("0");
    for (const std::string& number : wrong) {
      const std::string found = refusal_of_figure(figure, number);
      EXPECT_NE(found.find(figure + ": value: " + expected + number), std::string::npos) << found;
      EXPECT_NE(found.find("docs/formats.md"), std::string::npos) << found;
    }
    EXPECT_NE(refusal_of_figure(figure, "1e999"), "") << figure;  // infinite
    EXPECT_NE(refusal_of_figure(figure, "null"), "") << figure;
  }
  for (const std::string figure : {"block_us", "latency_us", "merge_bytes", "transfer_share"}) {
    EXPECT_EQ(refusal_of_figure(figure, "0"), "");
  }
}

TEST(MachineFiles, that_are_not_there_are_input_errors) {
  EXPECT_THROW(read_machine("no_such_machine.json"), Error);
}

}  // namespace
}  // namespace ringlab::model
