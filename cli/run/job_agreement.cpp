// Facts that the ranks of a job have to have in common, as texts.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/inputs/run_options.h"
#include "cli/line/build_info.h"
#include "cli/run/job.h"
#include "optimized/cpu/vectors.h"
#include "optimized/ring/agreement.h"
#include "optimized/ring/host/message.h"
#include "reference/io/input_file.h"

namespace ringlab::cli {
namespace {

using ring::Fact;
using ring::Facts;
using std::string_view;

// Options for a rank's input, number and threads, which may differ: results are the same bits.
constexpr std::array<string_view, 5> kMayDiffer = {"input", "text", "rank", "meet", "threads"};
// Options that are compared by the values that follow from them, given or not.
constexpr std::array<string_view, 3> kComparedAsValues = {"random", "seed", "backward"};

bool is_compared_by_word(const RunOption& option) {
  if (std::ranges::count(kMayDiffer, option.word) > 0) return false;
  if (std::ranges::count(kComparedAsValues, option.word) > 0) return false;
  const bool of_engine = !std::holds_alternative<std::monostate>(option.field);
  return (!of_engine && option.group != OptionGroup::problem) || option.word == "timeout";
}

void add_options(const Arguments& arguments, Facts& facts) {
  const auto add = [&](const std::string& word) {
    if (!arguments.given(word)) return;
    const std::string text = arguments.text(word);
    facts.push_back({"--" + word, text.empty() ? "given" : text});
  };
  for (const RunOption& option : run_options()) {
    if (is_compared_by_word(option)) add(std::string(option.word));
  }
  add(json_option().name);
}

std::string sum_text(std::uint64_t sum) { return fmt::format("{:016x}", sum); }

std::vector<std::filesystem::path> input_files(const Arguments& arguments) {
  const std::filesystem::path path = arguments.text("input");
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const char* name : {"q.npy", "k.npy", "v.npy", "do.npy"}) {
    if (std::filesystem::exists(path / name)) files.push_back(path / name);
  }
  return files;
}

// A text that is equal on all ranks that read the same files of the same file system.
std::string identity_of(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const std::filesystem::path& file : files) {
    struct stat found {};
    if (::stat(file.c_str(), &found) != 0) {
      throw_input_error({file.string(), "a file", std::generic_category().message(errno), ""});
    }
    text += fmt::format("{} {} {}.{};", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                        found.st_mtim.tv_nsec);
  }
  return text;
}

std::uint64_t sum_of(const std::vector<std::filesystem::path>& files) {
  constexpr std::int64_t kPiece = 1 << 24;
  std::uint64_t sum = 0;
  for (const std::filesystem::path& path : files) {
    const io::InputFile file(path);
    for (std::int64_t at = 0; at < file.size(); at += kPiece) {
      const auto bytes = file.read_at(at, std::min(kPiece, file.size() - at));
      sum = ring::checksum(bytes) ^ (sum * 3);
    }
  }
  return sum;
}

std::uint64_t sum_of(const AttentionTensors& tensors) {
  std::uint64_t sum = 0;
  for (const Tensor<double>* tensor : {&tensors.q, &tensors.k, &tensors.v}) {
    sum = ring::checksum(std::as_bytes(std::span(tensor->values()))) ^ (sum * 3);
  }
  return sum;
}

// Files are read as a whole only where ranks read different ones, such as copies on machines.
std::string input_text(const Arguments& arguments, const LoadedInput& loaded,
                       Communicator& network) {
  const bool from_file = arguments.given("input");
  const auto files = from_file ? input_files(arguments) : std::vector<std::filesystem::path>();
  const bool one_file = ring::all_say(identity_of(files), network);
  if (from_file) return one_file ? "one file" : "a file of bytes " + sum_text(sum_of(files));
  if (loaded.random) return "random rows";
  return "a text that makes " + sum_text(sum_of(loaded.tensors));
}

}  // namespace

void agree_on_job(const Arguments& arguments, const RunPlan& plan, Communicator& network) {
  const BuildInfo build = build_info();
  Facts facts = {
      {"build",
       fmt::format("{}, {}, {}, {}", build.version, build.compiler, build.build_type, build.flags)},
      {"build-id", build.id.empty() ? "none, only the build's words are compared" : build.id},
      {"subject", plan.subject.name}};
  const bool on_processors = plan.place.transport == TransportKind::mpi;
  if (on_processors) facts.push_back({"vectors", cpu::vectors_in_use()});
  const bool from_file = arguments.given("input");
  if (!from_file) facts.push_back({"seed", fmt::format("{}", plan.input.loaded.seed)});
  facts.push_back({"input", input_text(arguments, plan.input.loaded, network)});
  add_options(arguments, facts);
  for (Fact& fact : ring::facts_of(plan.problem(), plan.options, plan.last_pass())) {
    facts.push_back(std::move(fact));
  }
  ring::agree(facts, network);
}

}  // namespace ringlab::cli
