#include "python/core/wishes.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "reference/core/checks.h"
#include "reference/core/mask_text.h"
#include "reference/core/modifiers.h"

namespace nb = nanobind;

namespace ringlab::python {
namespace {

using Matrix = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
constexpr std::string_view kMatrixName = "matrix";
constexpr std::int64_t kMostRanks = 4096, kMostThreads = 1024, kMostSlots = 4096;

std::size_t matrix_number(const std::string& path, std::size_t matrices) {
  std::size_t number = matrices;
  if (path.starts_with(kMatrixName)) {
    std::from_chars(path.data() + kMatrixName.size(), path.data() + path.size(), number);
  }
  if (number < matrices) return number;
  throw_usage_error({.where = "mask",
                     .expected = "a mask that needs no file",
                     .actual = "\"file:" + path + "\"",
                     .hint = "Pass the matrix itself, an array of booleans (q_tokens, kv_tokens)"});
}

BitMask bits_of(const Matrix& matrix) {
  return {static_cast<std::int64_t>(matrix.shape(0)), static_cast<std::int64_t>(matrix.shape(1)),
          std::vector<std::uint8_t>(matrix.data(), matrix.data() + matrix.size()), "matrix"};
}

std::vector<double> per_head(const Wishes& wishes, const char* name, std::int64_t heads) {
  std::vector<double> numbers =
      wishes.take<std::vector<double>>(name).value_or(std::vector<double>{});
  if (numbers.size() == 1) numbers.assign(static_cast<std::size_t>(heads), numbers.front());
  return numbers;
}

bool wants_default_slopes(const Wishes& wishes) {
  if (!wishes.given("alibi") || !nb::isinstance<nb::str>(wishes.object("alibi"))) return false;
  const auto word = nb::cast<std::string>(wishes.object("alibi"));
  if (word == "default") return true;
  throw_usage_error({.where = "alibi",
                     .expected = "\"default\", or one slope per query head",
                     .actual = "\"" + word + "\"",
                     .hint = ""});
}

Modifiers modifiers_from(const Wishes& wishes, std::int64_t heads) {
  Modifiers modifiers;
  modifiers.softcap = wishes.take<double>("softcap").value_or(0);
  modifiers.alibi_slopes =
      wants_default_slopes(wishes) ? default_alibi_slopes(heads) : per_head(wishes, "alibi", heads);
  modifiers.sinks = per_head(wishes, "sinks", heads);
  modifiers.dropout = wishes.take<double>("dropout").value_or(0);
  if (modifiers.dropout > 0) {
    modifiers.dropout_seed = wishes.take<std::uint64_t>("dropout_seed").value_or(1);
  }
  return modifiers;
}

int count_from(const Wishes& wishes, const char* name, std::int64_t otherwise, std::int64_t most) {
  const std::int64_t count = wishes.take<std::int64_t>(name).value_or(otherwise);
  check_range(name, count, 1, most);
  return static_cast<int>(count);
}

WireFormat wire_from(const std::string& word) {
  if (const auto wire = kind_named<WireFormat, wire_word>(word)) return *wire;
  throw_usage_error({.where = "wire",
                     .expected = "exact, f32, bf16 or fp8",
                     .actual = "\"" + word + "\"",
                     .hint = ""});
}

double timeout_from(const Wishes& wishes) {
  const double timeout_s = wishes.take<double>("timeout_s").value_or(RunOptions{}.timeout_s);
  if (timeout_s > 0 && timeout_s <= 1e9) return timeout_s;
  throw_usage_error({.where = "timeout_s",
                     .expected = "seconds above 0, at most 1e9",
                     .actual = fmt::format("{}", timeout_s),
                     .hint = ""});
}

}  // namespace

Mask mask_from(const Wishes& wishes, const Shape& shape) {
  const auto matrices =
      wishes.take<std::vector<Matrix>>("matrices").value_or(std::vector<Matrix>{});
  const Mask mask =
      parse_mask(wishes.take<std::string>("mask").value_or("full"), [&](const std::string& path) {
        return bits_of(matrices[matrix_number(path, matrices.size())]);
      });
  return mask.bind(shape.q_tokens, shape.kv_tokens);
}

Problem problem_from(const Wishes& wishes, const Shape& shape, DType dtype) {
  Problem problem{.shape = shape, .dtype = dtype, .scale = 1, .mask = {}};
  check_problem({.shape = shape,
                 .dtype = dtype,
                 .scale = 1,
                 .mask = Mask().bind(shape.q_tokens, shape.kv_tokens)});
  problem.scale = wishes.take<double>("scale").value_or(default_scale(shape.head_dim));
  problem.mask = mask_from(wishes, shape);
  problem.modifiers = modifiers_from(wishes, shape.q_heads);
  check_problem(problem);
  return problem;
}

RunOptions options_from(const Wishes& wishes) {
  RunOptions options;
  options.ranks = count_from(wishes, "ranks", 1, kMostRanks);
  options.slots = count_from(wishes, "slots", options.slots, kMostSlots);
  const std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  options.threads =
      count_from(wishes, "threads", std::max<std::int64_t>(1, cores / options.ranks), kMostThreads);
  if (wishes.given("layout")) options.layout = parse_layout(*wishes.take<std::string>("layout"));
  if (wishes.given("schedule")) {
    const ScheduleSpec schedule = parse_schedule(*wishes.take<std::string>("schedule"));
    options.schedule = schedule.kind;
    options.node_ranks = schedule.node_ranks;
  }
  if (wishes.given("wire")) options.wire = wire_from(*wishes.take<std::string>("wire"));
  options.timeout_s = timeout_from(wishes);
  return options;
}

}  // namespace ringlab::python
