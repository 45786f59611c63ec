#include "cli/inputs/shard_input.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "cli/inputs/file_input.h"
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

NamedShape named(const io::RowSource& source) { return {source.extents, source.stored.shape}; }
Shape shape_of(const Sources& sources) {
  return cli::shape_of(named(sources.at("q")), named(sources.at("k")), named(sources.at("v")));
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

// Rounds the values; input error with the place in the whole tensor when that is impossible.
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

RankInput read_rank(Arguments& arguments, const RunOptions& options, const RankInputWish& wish) {
  const std::string path = *arguments.take_text("input");
  const std::optional<DType> dtype = take_dtype(arguments);
  const Sources sources = open_sources(path, wish.gradients);
  RankInput input;
  Problem& problem = input.loaded.problem;
  problem.dtype = dtype.value_or(widest(sources));
  problem.shape = shape_of(sources);
  problem.scale = default_scale(problem.shape.head_dim);
  apply_wish(take_problem_wish(arguments), problem);
  const RankLayouts layouts = layouts_of(problem, options, wish.rank);
  const auto rows = [&](const std::string& name, const Positions& positions) {
    Tensor<double> read = io::read_rows(sources.at(name), positions);
    round_rows(name, read, positions, problem.dtype);
    return read;
  };
  input.mine = {rows("q", layouts.queries), rows("k", layouts.keys), rows("v", layouts.keys)};
  if (wish.gradients) input.dout = rows("do", layouts.queries);
  input.loaded.origin = path + ", each rank its rows";
  input.loaded.dimensions = sources.at("q").stored.shape.size();
  return input;
}

void make_rows(RankInput& input, const RankLayouts& layouts, const RankInputWish& wish) {
  using verify::RandomTensor;
  const RandomInput random = input.random();
  input.mine = {random.doubles(RandomTensor::q, layouts.queries),
                random.doubles(RandomTensor::k, layouts.keys),
                random.doubles(RandomTensor::v, layouts.keys)};
  if (wish.gradients) input.dout = random.doubles(RandomTensor::dout, layouts.queries);
  input.loaded.origin += ", each rank its rows";
}

void cut_rows(RankInput& input, const RankLayouts& layouts) {
  const LoadedInput& whole = input.loaded;
  input.mine = {shard_of<double>(whole.tensors.q.view(), layouts.queries),
                shard_of<double>(whole.tensors.k.view(), layouts.keys),
                shard_of<double>(whole.tensors.v.view(), layouts.keys)};
  if (whole.dout) input.dout = shard_of<double>(whole.dout->view(), layouts.queries);
}

}  // namespace

ring::RankRows<double> RankInput::shard() const {
  ring::RankRows<double> shard{mine.q.view(), mine.k.view(), mine.v.view()};
  if (dout) shard.dout = dout->view();
  return shard;
}

RankInput load_rank_input(Arguments& arguments, const RunOptions& options,
                          const RankInputWish& wish) {
  const bool from_file = arguments.given("input") && !arguments.given("text");
  if (from_file && !wish.whole && !arguments.given("random")) {
    return read_rank(arguments, options, wish);
  }
  RankInput input{.loaded = load_input(arguments, {.gradients = wish.gradients ? Gradients::of_input
                                                                               : Gradients::none,
                                                   .by_rows = !wish.whole_if_random})};
  const RankLayouts layouts = layouts_of(input.loaded.problem, options, wish.rank);
  input.loaded.by_rows ? make_rows(input, layouts, wish) : cut_rows(input, layouts);
  return input;
}

}  // namespace ringlab::cli
