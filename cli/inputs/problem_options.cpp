#include "cli/inputs/problem_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/inputs/file_input.h"
#include "cli/inputs/random_input.h"
#include "cli/inputs/run_options.h"
#include "cli/report/human.h"
#include "property_tests/case.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/mask_text.h"
#include "reference/core/overflow.h"
#include "reference/io/text_input.h"

namespace ringlab::cli {
namespace {

// The K/V heads of the defaults fit to their number of heads only.
std::int64_t default_kv_heads(std::int64_t heads, const InputDefaults& defaults) {
  if (defaults.kv_heads != 0 && heads == defaults.heads) return defaults.kv_heads;
  return heads % 2 == 0 ? heads / 2 : heads;
}

// Sizes of the inputs that are made here: of --text, of --random and of the built-in one.
struct MadeSizes : io::TextOptions {
  std::optional<std::int64_t> queries = {};  // the last ones
};

MadeSizes take_sizes(Arguments& arguments, const InputDefaults& defaults,
                     std::optional<DType> dtype) {
  MadeSizes sizes;
  sizes.max_tokens = take_whole(arguments, "tokens", defaults.tokens);
  sizes.q_heads = take_whole(arguments, "heads", defaults.heads);
  sizes.kv_heads = take_whole(arguments, "kv-heads", default_kv_heads(sizes.q_heads, defaults));
  sizes.head_dim = take_whole(arguments, "head-dim", defaults.head_dim);
  sizes.v_dim = sizes.head_dim;
  sizes.seed = arguments.take_unsigned("seed", 1);
  sizes.dtype = dtype.value_or(defaults.dtype);
  if (sizes.q_heads % sizes.kv_heads != 0) {
    throw_usage_error({"--kv-heads", fmt::format("a divisor of --heads {}", sizes.q_heads),
                       fmt::format("{}", sizes.kv_heads), ""});
  }
  return sizes;
}

Shape shape_of(const MadeSizes& sizes, std::int64_t tokens) {
  const std::int64_t queries = std::min(sizes.queries.value_or(tokens), tokens);
  return {1, sizes.q_heads, sizes.kv_heads, queries, tokens, sizes.head_dim, sizes.v_dim};
}

Tensor<double> last_tokens(const Tensor<double>& all, std::int64_t count) {
  Extents extents = all.extents();
  const std::int64_t left_out = extents.tokens - count;
  extents.tokens = count;
  Tensor<double> last(extents);
  for_each_index(extents, [&](auto b, auto h, auto t, auto c) {
    last(b, h, t, c) = all(b, h, left_out + t, c);
  });
  return last;
}

LoadedInput from_text(const std::string& path, const MadeSizes& sizes) {
  io::TextInput text = io::text_input(path, sizes);
  LoadedInput loaded;
  loaded.problem = text.problem;
  loaded.seed = sizes.seed;
  loaded.tensors = std::move(text.tensors);
  loaded.origin = fmt::format("{}: {} of {} bytes, one token each, seed {}", path, text.tokens,
                              text.file_bytes, sizes.seed);
  if (text.tokens < sizes.max_tokens) {
    loaded.notes.push_back(fmt::format("the text has {} bytes, so {} tokens instead of {}",
                                       text.file_bytes, text.tokens, sizes.max_tokens));
  }
  loaded.problem.shape = shape_of(sizes, text.tokens);
  loaded.tensors.q = last_tokens(loaded.tensors.q, loaded.problem.shape.q_tokens);
  return loaded;
}

LoadedInput from_seed(const MadeSizes& sizes) {
  verify::Case made;
  made.seed = sizes.seed;
  made.shape = shape_of(sizes, sizes.max_tokens);
  made.dtype = sizes.dtype;
  LoadedInput loaded;
  loaded.problem = verify::make_problem(made);
  loaded.seed = sizes.seed;
  loaded.tensors = verify::make_tensors(made);
  loaded.origin = fmt::format("built in: standard normal, seed {}", sizes.seed);
  return loaded;
}

// Random input as whole tensors; without tensors for `by_rows`, where the caller makes the rows.
LoadedInput from_rows(const MadeSizes& sizes, bool by_rows) {
  LoadedInput loaded;
  loaded.problem.shape = shape_of(sizes, sizes.max_tokens);
  loaded.problem.dtype = sizes.dtype;
  loaded.problem.scale = default_scale(sizes.head_dim);
  loaded.seed = sizes.seed;
  loaded.random = true;
  loaded.by_rows = by_rows;
  loaded.origin = fmt::format("random rows, standard normal, seed {}", sizes.seed);
  if (by_rows) return loaded;
  const RandomInput random{loaded.problem, sizes.seed};
  const Positions all = Positions::all(sizes.max_tokens);
  loaded.tensors = {
      random.doubles(verify::RandomTensor::q, Positions::all(loaded.problem.shape.q_tokens)),
      random.doubles(verify::RandomTensor::k, all), random.doubles(verify::RandomTensor::v, all)};
  return loaded;
}

// Adds a note if scores may overflow. Rows made one by one are absent here, and never that large.
void note_overflow(LoadedInput& loaded) {
  const AttentionTensors& tensors = loaded.tensors;
  std::string note =
      overflow_note(loaded.problem, largest_norm(tensors.q.view()), largest_norm(tensors.k.view()));
  if (!note.empty()) loaded.notes.push_back(std::move(note));
}

Tensor<double> dout_of(const LoadedInput& loaded) {
  const RandomInput random{loaded.problem, loaded.seed};
  return random.doubles(verify::RandomTensor::dout, Positions::all(loaded.problem.shape.q_tokens));
}

Tensor<double> drawn_dout(const Problem& problem, std::uint64_t seed) {
  verify::Case made;
  made.seed = seed;
  made.shape = problem.shape;
  made.dtype = problem.dtype;
  return verify::make_dout(made);
}

Json shape_json(const Extents& e) { return {e.batch, e.heads, e.tokens, e.channels}; }

LoadedInput load_unmasked(Arguments& arguments, const InputDefaults& defaults) {
  const std::optional<DType> dtype = take_dtype(arguments);
  const std::optional<std::string> file = arguments.take_text("input");
  const std::optional<std::string> text = arguments.take_text("text");
  const bool random = arguments.take_switch("random");
  if ((file && (text || random)) || (text && random)) {
    throw_usage_error({random ? "--random" : "--text", "one source of q, k, v",
                       file ? "--input too" : "--text too", "Leave one of them out."});
  }
  if (file) return file_input(*file, dtype, defaults.gradients);
  if (!text && !random && !defaults.built_in) {
    throw_usage_error({"input", "--input FILE, --text FILE or --random", "none of them",
                       "Any text will do, for example --text README.md."});
  }
  MadeSizes sizes = take_sizes(arguments, defaults, dtype);
  if (arguments.given("queries")) {
    sizes.queries = arguments.take_integer("queries", 1, 1, sizes.max_tokens);
  }
  if (text) {
    std::error_code unreadable;  // reported by the reader
    const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(*text, unreadable));
    if (!unreadable) check_fits_memory(shape_of(sizes, std::min(sizes.max_tokens, bytes)));
    return from_text(*text, sizes);
  }
  const Shape shape = shape_of(sizes, sizes.max_tokens);
  if (!(random && defaults.by_rows)) check_fits_memory(shape);
  return random ? from_rows(sizes, defaults.by_rows) : from_seed(sizes);
}

}  // namespace

std::optional<DType> take_dtype(Arguments& arguments) {
  const std::optional<std::string> name = arguments.take_text("dtype");
  if (!name) return {};
  return parse_dtype(*name);
}

ProblemWish take_problem_wish(Arguments& arguments, const std::string& default_mask) {
  ProblemWish wish{
      .mask = parse_mask(arguments.take_text("mask").value_or(default_mask), read_bit_mask),
      .scale = {},
      .modifiers = {}};
  if (arguments.given("scale")) wish.scale = take_number(arguments, "scale", 1);
  wish.modifiers = take_modifiers(arguments);
  return wish;
}

void apply_wish(const ProblemWish& wish, Problem& problem) {
  if (wish.scale) problem.scale = *wish.scale;
  problem.mask = wish.mask.bind(problem.shape.q_tokens, problem.shape.kv_tokens);
  problem.modifiers = modifiers_for(wish.modifiers, problem.shape.q_heads);
  check_problem(problem);
}

LoadedInput load_input(Arguments& arguments, const InputDefaults& defaults) {
  const ProblemWish wish = take_problem_wish(arguments, defaults.mask);
  LoadedInput loaded = load_unmasked(arguments, defaults);
  const bool is_drawn = defaults.gradients == Gradients::of_input ||
                        defaults.gradients == Gradients::if_there_or_drawn;
  if (is_drawn && !loaded.dout && !loaded.by_rows) {
    loaded.dout = loaded.random ? dout_of(loaded) : drawn_dout(loaded.problem, loaded.seed);
  }
  apply_wish(wish, loaded.problem);
  note_overflow(loaded);
  return loaded;
}

Problem take_problem(Arguments& arguments, const InputDefaults& defaults) {
  const Mask mask = parse_mask(arguments.take_text("mask").value_or(defaults.mask), read_bit_mask);
  const MadeSizes sizes = take_sizes(arguments, defaults, take_dtype(arguments));
  Problem problem;
  problem.shape = shape_of(sizes, sizes.max_tokens);
  problem.dtype = sizes.dtype;
  problem.scale = default_scale(sizes.head_dim);
  problem.mask = mask.bind(sizes.max_tokens, sizes.max_tokens);
  check_problem(problem);
  return problem;
}

void describe_input(const LoadedInput& loaded, Json& configuration) {
  const Shape& shape = loaded.problem.shape;
  configuration["input"] = loaded.origin;
  configuration["q"] = shape_json(shape.q());
  configuration["k"] = shape_json(shape.k());
  configuration["v"] = shape_json(shape.v());
  configuration["dtype"] = std::string(dtype_info(loaded.problem.dtype).name);
  configuration["mask"] = loaded.problem.mask.text();
  configuration["scale"] = loaded.problem.scale;
  configuration["modifiers"] = modifiers_text(loaded.problem.modifiers);
}

void check_fits_memory(const Shape& shape) {
  // q, k, v, out and lse as doubles at the border, and once more in shards of at most that size.
  const Extents all[] = {shape.q(), shape.k(), shape.v(), shape.out(), shape.lse()};
  double needed = 0;
  for (const Extents& extents : all) needed += 16.0 * static_cast<double>(checked_size(extents));
  check_fits_memory(shape, needed);
}

void check_fits_memory(const Shape& shape, double needed) {
  const std::int64_t bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
                             static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  if (needed <= static_cast<double>(bytes)) return;
  throw_environment_error({"memory",
                           fmt::format("tensors that fit in {}", report::human_bytes(bytes)),
                           fmt::format("q {}, k {}, which take {:.3g} GiB", text(shape.q()),
                                       text(shape.k()), needed / 0x1p30),
                           "Use fewer tokens, heads, channels or ranks."});
}

}  // namespace ringlab::cli
