#include "cli/inputs/shard_input.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "cli/inputs/file_input.h"
#include "cli/inputs/modifier_options.h"
#include "reference/core/error.h"
#include "reference/core/mask_text.h"
#include "reference/core/shards.h"
#include "reference/io/tensor_rows.h"

namespace ringlab::cli {
namespace {

using Sources = std::map<std::string, io::RowSource>;

struct RankLayouts {
  Positions queries, keys;
};

RankLayouts layouts_of(const Problem& problem, const RunOptions& options, int rank) {
  const Shape& shape = problem.shape;
  return {make_layout(options, shape.q_tokens, options.q_layout).positions(rank),
          make_layout(options, shape.kv_tokens, options.kv_layout).positions(rank)};
}

void check_extent(const char* what, std::int64_t expected, std::int64_t actual) {
  if (expected == actual) return;
  throw_input_error({"q, k, v", fmt::format("equal {}", what),
                     fmt::format("{} and {}", expected, actual),
                     "Shapes are (batch, heads, tokens, channels)."});
}

Shape shape_of(const Sources& sources) {
  const Extents &q = sources.at("q").extents, &k = sources.at("k").extents,
                &v = sources.at("v").extents;
  check_extent("batch of q and k", q.batch, k.batch);
  check_extent("batch of k and v", k.batch, v.batch);
  check_extent("heads of k and v", k.heads, v.heads);
  check_extent("tokens of k and v", k.tokens, v.tokens);
  check_extent("head_dim of q and k", q.channels, k.channels);
  return {q.batch, q.heads, k.heads, q.tokens, k.tokens, q.channels, v.channels};
}

Sources open_sources(const std::string& path, bool gradients) {
  std::set<std::string> wanted = {"q", "k", "v"};
  if (gradients) wanted.insert("do");
  Sources sources = io::open_rows(path, wanted);
  for (const std::string& name : wanted) {
    if (!sources.contains(name)) {
      throw_input_error({path, fmt::format("a tensor {}", name), "none", ""});
    }
  }
  if (gradients && sources.at("do").extents != shape_of(sources).out()) {
    throw_input_error({path, "do in the extents of o", "others", ""});
  }
  return sources;
}

DType widest(const Sources& sources) {
  std::vector<DType> dtypes;
  for (const auto& [name, source] : sources) {
    if (name != "do") dtypes.push_back(source.stored.type.dtype);
  }
  return common_dtype(dtypes);
}

// The value, rounded; input error with its place in the whole tensor when that is impossible.
void round_rows(const std::string& name, Tensor<double>& rows, const Positions& positions,
                DType dtype) {
  const std::vector<std::int64_t> tokens = positions.to_list();
  double* value = rows.values().data();
  for_each_index(rows.extents(), [&](auto b, auto h, auto t, auto c) {
    const double rounded = round_to(dtype, *value);
    if (!std::isfinite(rounded)) {
      throw_input_error({fmt::format("tensor {} at [{}, {}, {}, {}]", name, b, h,
                                     tokens[static_cast<std::size_t>(t)], c),
                         fmt::format("a finite number that {} can hold", dtype_info(dtype).name),
                         fmt::format("{}", *value), ""});
    }
    *value++ = rounded;
  });
}

void take_problem(Arguments& arguments, Problem& problem) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const Mask mask = parse_mask(arguments.take_text("mask").value_or("full"), read_bit_mask);
  problem.scale = default_scale(problem.shape.head_dim);
  if (arguments.given("scale")) problem.scale = arguments.take_real("scale", 1, -kMost, kMost);
  problem.mask = mask.bind(problem.shape.q_tokens, problem.shape.kv_tokens);
  problem.modifiers = modifiers_for(take_modifiers(arguments), problem.shape.q_heads);
  check_problem(problem);
}

RankInput read_rank(Arguments& arguments, const RunOptions& options, const RankInputWish& wish) {
  const std::string path = *arguments.take_text("input");
  const std::optional<std::string> dtype = arguments.take_text("dtype");
  const Sources sources = open_sources(path, wish.gradients);
  RankInput input;
  input.problem.dtype = dtype ? parse_dtype(*dtype) : widest(sources);
  with_element_type(input.problem.dtype, [](auto) {});  // refuses those attention does not take
  input.problem.shape = shape_of(sources);
  take_problem(arguments, input.problem);
  const RankLayouts layouts = layouts_of(input.problem, options, wish.rank);
  const auto rows = [&](const std::string& name, const Positions& positions) {
    Tensor<double> read = io::read_rows(sources.at(name), positions);
    round_rows(name, read, positions, input.problem.dtype);
    return read;
  };
  input.q = rows("q", layouts.queries);
  input.k = rows("k", layouts.keys);
  input.v = rows("v", layouts.keys);
  if (wish.gradients) input.dout = rows("do", layouts.queries);
  input.origin = path + ", each rank its rows";
  input.dimensions = sources.at("q").stored.shape.size();
  return input;
}

RankInput make_rank(const LoadedInput& loaded, const RunOptions& options,
                    const RankInputWish& wish) {
  using verify::RandomTensor;
  RankInput input;
  input.problem = loaded.problem;
  input.origin = loaded.origin + ", each rank its rows";
  input.random = {loaded.problem, loaded.seed};
  const RankLayouts layouts = layouts_of(input.problem, options, wish.rank);
  input.q = input.random->doubles(RandomTensor::q, layouts.queries);
  input.k = input.random->doubles(RandomTensor::k, layouts.keys);
  input.v = input.random->doubles(RandomTensor::v, layouts.keys);
  if (wish.gradients) input.dout = input.random->doubles(RandomTensor::dout, layouts.queries);
  return input;
}

}  // namespace

ring::RankRows<double> RankInput::shard() const {
  ring::RankRows<double> shard{q.view(), k.view(), v.view()};
  if (dout) shard.dout = dout->view();
  return shard;
}

RankInput load_rank_input(Arguments& arguments, const RunOptions& options,
                          const RankInputWish& wish) {
  if (arguments.given("random") && !arguments.given("input") && !wish.whole_if_random) {
    return make_rank(load_input(arguments, {.gradients = wish.gradients, .by_rows = true}), options,
                     wish);
  }
  const bool from_file = arguments.given("input") && !arguments.given("text");
  if (from_file && !wish.whole) return read_rank(arguments, options, wish);
  RankInput input;
  input.whole = load_input(arguments, {.gradients = wish.gradients});
  const LoadedInput& whole = *input.whole;
  input.problem = whole.problem;
  input.origin = whole.origin;
  input.dimensions = whole.dimensions;
  const RankLayouts layouts = layouts_of(input.problem, options, wish.rank);
  input.q = shard_of<double>(whole.tensors.q.view(), layouts.queries);
  input.k = shard_of<double>(whole.tensors.k.view(), layouts.keys);
  input.v = shard_of<double>(whole.tensors.v.view(), layouts.keys);
  if (whole.dout) input.dout = shard_of<double>(whole.dout->view(), layouts.queries);
  return input;
}

}  // namespace ringlab::cli
