#include "reference/core/options/option_table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "reference/core/error.h"
#include "reference/core/options/near_word.h"

namespace ringlab {
namespace {

using enum OptionGroup;
using std::string_view;

constexpr double kAny = std::numeric_limits<double>::max();
constexpr double kMostTokens = 0x1p40;
constexpr double kMostOfTokens = 65536;  // heads, and channels of a head
constexpr double kMostModifier = 0x1p64;
constexpr double kMostRanks = 4096, kMostThreads = 4096, kMostSlots = 4096;
constexpr double kMostOfTile = 1024;  // a tile's queries are threads of a block on devices
constexpr double kMostMultiprocessors = 1024;
constexpr double kLeastSeconds = 1e-6, kMostSeconds = 1e9;

constexpr string_view kMade = "with --text, --random or the built-in input, not with --input";
constexpr string_view kOnDevices = "with --device cuda";

// Enumerators are numbered in the order of their words.
template <auto Member>
constexpr ChoiceField choice_of(std::span<const string_view> words) {
  using Value = std::remove_cvref_t<decltype(std::declval<RunOptions>().*Member)>;
  return {
      .words = words,
      .get = [](const RunOptions& options) { return static_cast<std::size_t>(options.*Member); },
      .set = [](RunOptions& options,
                std::size_t choice) { options.*Member = static_cast<Value>(choice); }};
}

constexpr std::array<string_view, 3> kLayouts = {"contiguous", "striped", "zigzag"};
constexpr std::array<string_view, 2> kDirections = {"next", "previous"};
constexpr std::array<string_view, 4> kWires = {"exact", "f32", "bf16", "fp8"};
static_assert(kWires.size() == kWireFormats.size());
constexpr std::array<string_view, 2> kIntegrities = {"headers", "full"};
constexpr std::array<string_view, 4> kTransports = {"threads", "simulated", "mpi", "nccl"};
constexpr std::array<string_view, 2> kDevices = {"cpu", "cuda"};

bool is_simulated(const RunOptions& o) { return o.transport == TransportKind::simulated; }
// The others hold all chunks.
bool has_slots(const RunOptions& o) { return !schedule_traits(o.schedule).holds_all; }
bool is_on_devices(const RunOptions& o) { return o.device == DeviceKind::cuda; }
// Simulated ranks have a clock of their own, which devices do not follow.
bool has_deadline(const RunOptions& o) { return !is_simulated(o) || is_on_devices(o); }

const RunOption kOptions[] = {
    {{problem, "input", "PATH",
      "q, k, v from a .safetensors or .npz file, or from PATH/{q,k,v}.npy"},
     {}},
    {{problem, "text", "FILE", "make q, k, v from a text: one token per byte"}, {}},
    {{problem, "random", "",
      "make q, k, v: standard normal numbers, every row alone from the seed"},
     {}},
    {{problem, "tokens", "N", "tokens to make, or to take from the start of the text"},
     {.otherwise = "1024", .applies = kMade, .least = 1, .most = kMostTokens}},
    {{problem, "queries", "N", "queries to make, or to take from the end of the tokens"},
     {.otherwise = "one for each token", .applies = kMade, .least = 1, .most = kMostTokens}},
    {{problem, "heads", "H", "query heads to make"},
     {.otherwise = "4", .applies = kMade, .least = 1, .most = kMostOfTokens}},
    {{problem, "kv-heads", "H", "key/value heads to make"},
     {.otherwise = "half of --heads where it is even, else as many",
      .applies = kMade,
      .least = 1,
      .most = kMostOfTokens}},
    {{problem, "head-dim", "D", "channels per head to make"},
     {.otherwise = "32", .applies = kMade, .least = 1, .most = kMostOfTokens}},
    {{problem, "seed", "S", "seed of everything random; - reads it from standard input"},
     {.otherwise = "1"}},
    {{problem, "dtype", "TYPE", "f64, f32, f16 or bf16"},
     {.otherwise = "that of the input; f32 for texts"}},
    {{problem, "mask", "MASK",
      "full, causal, window:L,R, documents:LEN,LEN,…, prefix:N, file:M.npy (docs/formats.md); "
      "joined "
      "by + for their intersection"},
     {.otherwise = "full"}},
    {{problem, "scale", "X", "factor on the scores"},
     {.otherwise = "1/sqrt(head_dim)", .least = -kAny, .most = kAny}},
    {{problem, "softcap", "X", "soft-capping: scores become X tanh(score / X)"},
     {.otherwise = "none", .most = kMostModifier, .needs = Feature::softcap}},
    {{problem, "alibi", "S,S,...",
      "ALiBi: slope times distance taken off each score; one slope per query head, one for all, or "
      "default for the customary ones"},
     {.otherwise = "none",
      .least = -kMostModifier,
      .most = kMostModifier,
      .needs = Feature::alibi}},
    {{problem, "sinks", "X,X,...",
      "a score without a value in every row's softmax; one per query head, or one for all"},
     {.otherwise = "none",
      .least = -kMostModifier,
      .most = kMostModifier,
      .needs = Feature::sinks}},
    {{problem, "dropout", "P", "drop this share of the weights, scale the others by 1 / (1 - P)"},
     {.otherwise = "none", .most = 1, .needs = Feature::dropout}},
    {{problem, "dropout-seed", "S", "which weights are dropped"},
     {.otherwise = "1", .applies = "with --dropout", .needs = Feature::dropout}},

    {{results, "output", "PATH",
      "write o and lse (and dq, dk, dv) to a .safetensors file, or to PATH/{o,lse,…}.npy"},
     {}},
    {{results, "output-shards", "HOW", "merged: one result for all ranks; apart: one for each"},
     {.otherwise = "merged", .applies = "with --transport mpi and --output"}},

    {{run, "ranks", "P", "number of ranks"},
     {.least = 1, .most = kMostRanks, .field = &RunOptions::ranks}},
    {{run, "layout", "LAYOUT", "which tokens each rank holds"},
     {.field = choice_of<&RunOptions::layout>(kLayouts)}},
    {{run, "direction", "WAY", "where rings send their chunks"},
     {.field = choice_of<&RunOptions::direction>(kDirections)}},
    {{run, "schedule", "NAME", "broadcast, allgather, ring, bidirectional or double:W"},
     {.field = ScheduleField{}, .needs = Feature::schedules}},
    {{run, "slots", "S", "chunks a rank can hold besides its own, per direction"},
     {.least = 1,
      .most = kMostSlots,
      .field = &RunOptions::slots,
      .needs = Feature::slots,
      .has_effect = has_slots}},
    {{run, "wire", "FORMAT", "K and V between ranks"},
     {.field = choice_of<&RunOptions::wire>(kWires), .needs = Feature::wires}},
    {{run, "integrity", "MODE", "of messages; full: each has a checksum"},
     {.field = choice_of<&RunOptions::integrity>(kIntegrities), .needs = Feature::checksums}},
    {{run, "transport", "KIND",
      "simulated: one rank at a time, random delays; mpi: started by mpirun; nccl: the same with a "
      "device each, or with --meet"},
     {.field = choice_of<&RunOptions::transport>(kTransports), .needs = Feature::messages}},
    {{run, "delay-seed", "S", "of the simulated delays"},
     {.applies = "with --transport simulated",
      .field = &RunOptions::delay_seed,
      .needs = Feature::messages,
      .has_effect = is_simulated}},
    {{run, "timeout", "S",
      "seconds a rank may wait for a message; on devices, for all that they do, or each kernel of "
      "stages that are no ring on streams; plugins: for each call"},
     {.otherwise = "60; plugins: 10",
      .applies = "with --transport threads, mpi or nccl, or --device cuda",
      .least = kLeastSeconds,
      .most = kMostSeconds,
      .field = &RunOptions::timeout_s,
      .has_effect = has_deadline}},
    {{run, "device", "DEVICE", "what ranks compute on"},
     {.field = choice_of<&RunOptions::device>(kDevices)}},
    {{run, "threads", "N", "threads of each rank"},
     {.otherwise = "optimized: cores / ranks; with mpi: 1",
      .least = 1,
      .most = kMostThreads,
      .field = &RunOptions::threads,
      .needs = Feature::threads}},
    {{run, "tile-queries", "N", "rows of a query tile"},
     {.otherwise = "32; optimized: 192",
      .least = 1,
      .most = kMostOfTile,
      .field = &RunOptions::tile_queries,
      .needs = Feature::tiles}},
    {{run, "tile-keys", "N", "keys of a key/value tile"},
     {.otherwise = "32; optimized: 128",
      .least = 1,
      .most = kMostOfTile,
      .field = &RunOptions::tile_keys,
      .needs = Feature::tiles}},

    {{job, "rank", "R", "this process, of --ranks P that meet in a folder: 0 … P - 1"},
     {.applies = "with --transport nccl and --meet"}},
    {{job, "meet", "FOLDER",
      "where ranks find each other without mpirun: the same for all, which see it"},
     {.applies = "with --transport nccl and --rank"}},

    {{devices, "graph", "", "capture the run on devices as a CUDA graph, and launch that"},
     {.applies = kOnDevices,
      .field = &RunOptions::as_graph,
      .needs = Feature::graphs,
      .has_effect = is_on_devices}},
    {{devices, "free-sms", "N",
      "multiprocessors that the forward kernel for Hopper leaves to others"},
     {.applies = kOnDevices,
      .most = kMostMultiprocessors,
      .field = &RunOptions::free_multiprocessors,
      .needs = Feature::free_multiprocessors,
      .has_effect = is_on_devices}},
    {{devices, "deterministic", "on|off",
      "gradients of the same bits from run to run, which takes longer"},
     {.applies = kOnDevices,
      .field = &RunOptions::deterministic,
      .needs = Feature::gradient_order,
      .has_effect = is_on_devices}},

    {{checks, "backward", "",
      "gradients too: with --input, of the tensor do in it; else of a random one"},
     {.needs = Feature::gradients}},
    {{checks, "check", "", "compare with the fp64 reference; exit 1 when wrong"}, {}},
    {{checks, "check-rows", "N",
      "compare o and lse of N query rows only: the first, the last, those at the borders of "
      "chunks, "
      "and more in between; of all heads, one at a time"},
     {.least = 1, .most = kMostTokens}},
    {{checks, "exact", "",
      "round every element of o and lse of reference correctly to the dtype, the one right "
      "answer; "
      "gradients from intervals"},
     {}},
    {{checks, "rounds", "R",
      "run once more than R times: the time is the median of all but the first, whose memory they "
      "use"},
     {.least = 1, .most = 10000}},
    {{checks, "trace", "FILE", "write what each rank did when, as JSON; see `ringlab trace`"},
     {.needs = Feature::traces}},
};

std::string limit_text(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  if (static_cast<double>(whole) == number && number < 0x1p53) return std::to_string(whole);
  return std::to_string(number);  // 0.000001
}

std::string listed(std::span<const string_view> words) {
  std::string text(words.front());
  for (std::size_t i = 1; i < words.size(); ++i) {
    text += (i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
  }
  return text;
}

std::string default_of(const RunOption& option) {
  if (!option.otherwise.empty()) return std::string(option.otherwise);
  const RunOptions defaults;
  if (!word_of(option, defaults).empty()) return word_of(option, defaults);
  if (const auto* whole = std::get_if<int RunOptions::*>(&option.field)) {
    return std::to_string(defaults.**whole);
  }
  const auto* seed = std::get_if<std::uint64_t RunOptions::*>(&option.field);
  return seed != nullptr ? std::to_string(defaults.**seed) : "";
}

}  // namespace

std::span<const RunOption> run_options() { return kOptions; }

const RunOption& run_option(std::string_view word) {
  const auto* found = std::ranges::find(kOptions, word, &RunOption::word);
  assert(found != std::end(kOptions));
  return *found;
}

std::string name_of(const RunOption& option) {
  std::string name(option.word);
  std::ranges::replace(name, '-', '_');
  const bool is_time = std::holds_alternative<double RunOptions::*>(option.field);
  return is_time ? name + "_s" : name;
}

std::string help_of(const RunOption& option, std::string_view otherwise) {
  std::string help;
  if (const auto* choice = std::get_if<ChoiceField>(&option.field)) {
    help = listed(choice->words) + ": ";
  }
  help += option.help;
  const bool is_whole = std::holds_alternative<int RunOptions::*>(option.field) ||
                        std::holds_alternative<std::int64_t RunOptions::*>(option.field);
  if (is_whole) help += ", " + limit_text(option.least) + " … " + limit_text(option.most);
  const std::string text = otherwise.empty() ? default_of(option) : std::string(otherwise);
  return text.empty() ? help : help + " (" + text + ")";
}

void check_limit(const RunOption& option, double value) {
  if (value >= option.least && value <= option.most) return;
  throw_usage_error({.where = name_of(option),
                     .expected = limit_text(option.least) + " to " + limit_text(option.most),
                     .actual = limit_text(value)});
}

void check_limits(const RunOptions& options) {
  for (const RunOption& option : kOptions) {
    const bool is_limited = option.most > option.least;
    std::visit(
        [&]<class Field>(Field field) {
          if constexpr (std::is_member_object_pointer_v<Field>) {
            if (is_limited) check_limit(option, static_cast<double>(options.*field));
          }
        },
        option.field);
  }
}

void set_word(const RunOption& option, const std::string& word, RunOptions& options) {
  if (const auto* choice = std::get_if<ChoiceField>(&option.field)) {
    const auto found = std::ranges::find(choice->words, word);
    if (found == choice->words.end()) {
      throw_usage_error({.where = name_of(option),
                         .expected = "one of " + listed(choice->words),
                         .actual = "\"" + word + "\"",
                         .hint = did_you_mean(word, {choice->words.begin(), choice->words.end()})});
    }
    return choice->set(options, static_cast<std::size_t>(found - choice->words.begin()));
  }
  const ScheduleSpec schedule = parse_schedule(word);
  options.schedule = schedule.kind;
  options.node_ranks = schedule.node_ranks;
}

std::string word_of(const RunOption& option, const RunOptions& options) {
  if (const auto* choice = std::get_if<ChoiceField>(&option.field)) {
    return std::string(choice->words[choice->get(options)]);
  }
  if (std::holds_alternative<ScheduleField>(option.field)) {
    return schedule_name(schedule_spec(options));
  }
  const auto* is = std::get_if<bool RunOptions::*>(&option.field);
  if (is == nullptr || option.value.empty()) return "";
  return options.**is ? "on" : "off";
}

}  // namespace ringlab
