#include "property_tests/generators/cases.h"

#include <algorithm>
#include <array>

namespace ringlab::verify {
namespace {

/// Short sequences mostly: mistakes at edges show in a few tokens, and a case stays readable.
std::int64_t random_tokens(Draws& draws) {
  const std::int64_t kind = draws.below(100);
  if (kind < 5) return 0;
  if (kind < 12) return 1;
  if (kind < 60) return draws.between(2, 9);
  if (kind < 90) return draws.between(10, 30);
  return draws.between(31, 70);
}

int random_ranks(Draws& draws) {
  const std::int64_t kind = draws.below(10);
  if (kind < 2) return 1;
  return static_cast<int>(kind < 7 ? draws.between(2, 4) : draws.between(5, 9));
}

/// A window whose sides may be 0, unlimited, or wider than the sequence.
std::string random_window(Draws& draws, std::int64_t tokens) {
  const auto limit = [&] {
    return draws.chance(20) ? std::string("inf") : std::to_string(draws.below(tokens + 1));
  };
  const std::string left = limit();
  return "window:" + left + "," + limit();
}

/// Documents that cover all tokens; some are empty, and the last one always is.
std::string random_documents(Draws& draws, std::int64_t tokens) {
  std::string text = "documents:";
  std::int64_t left = tokens;
  while (left > 0) {
    const std::int64_t length =
        draws.chance(10) ? 0 : draws.between(1, std::max(left / 2, left % 7));
    const std::int64_t taken = std::min(left, length);
    text += std::to_string(taken) + ",";
    left -= taken;
  }
  return text + "0";
}

/// A term of any kind, alike often; bit matrices are the only ones that are no interval.
std::string random_mask_term(Draws& draws, const Shape& shape) {
  switch (draws.below(10)) {
    case 0:
    case 1:
      return "causal";
    case 2:
    case 3:
      return random_window(draws, shape.kv_tokens);
    case 4:
    case 5:
      return random_documents(draws, shape.kv_tokens);
    case 6:
    case 7:
      return "prefix:" + std::to_string(draws.below(shape.kv_tokens + 2));
    default:
      return "bits:" + std::to_string(draws.below(1000));
  }
}

/// Full and causal masks most, since all subjects take them; intersections of two terms at times.
std::string random_mask(Draws& draws, const Shape& shape) {
  const std::int64_t kind = draws.below(100);
  if (kind < 25) return "full";
  if (kind < 45) return "causal";
  const std::string term = random_mask_term(draws, shape);
  return kind < 80 ? term : term + "+" + random_mask_term(draws, shape);
}

Shape random_shape(Draws& draws) {
  Shape s;
  s.batch = draws.chance(75) ? 1 : draws.between(2, 3);
  s.kv_heads = draws.chance(55) ? 1 : draws.between(2, 3);
  s.q_heads = s.kv_heads * (draws.chance(60) ? 1 : draws.between(2, 3));
  s.q_tokens = random_tokens(draws);
  s.kv_tokens = draws.chance(60) ? s.q_tokens : random_tokens(draws);
  s.head_dim = draws.between(1, 9);
  s.v_dim = draws.chance(40) ? s.head_dim : draws.between(1, 9);
  return s;
}

/// Moves a length to a multiple of a tile or of the ranks, or one off it: where tails go wrong.
void move_next_to_a_boundary(Draws& draws, Case& c) {
  const std::int64_t unit = draws.chance(50) ? c.tile_keys : c.ranks;
  const std::int64_t tokens = c.shape.kv_tokens / unit * unit + draws.between(-1, 1);
  if (c.shape.q_tokens == c.shape.kv_tokens) c.shape.q_tokens = tokens;
  c.shape.kv_tokens = tokens;
}

/// f32 most: it is what every subject computes in.
DType random_dtype(Draws& draws) {
  constexpr std::array<DType, 10> kDTypes = {DType::f32,  DType::f32, DType::f32, DType::f32,
                                             DType::f32,  DType::f64, DType::f64, DType::bf16,
                                             DType::bf16, DType::f16};
  return kDTypes[static_cast<std::size_t>(draws.below(10))];
}

/// The plain ring in half of the cases: everything else is compared with it.
std::string random_schedule(Draws& draws) {
  if (draws.chance(50)) return "ring";
  const std::int64_t kind = draws.below(4);
  if (kind == 0) return "broadcast";
  if (kind == 1) return "allgather";
  if (kind == 2) return "bidirectional";
  return "double:" + std::to_string(draws.between(1, 4));
}

/// Modifiers in two cases of five, and in most of those several: each alone is easy, and mistakes
/// live where two meet.
CaseModifiers random_modifiers(Draws& draws) {
  CaseModifiers modifiers;
  if (!draws.chance(40)) return modifiers;
  if (draws.chance(50)) modifiers.softcap = static_cast<int>(draws.between(1, 30));
  modifiers.alibi = draws.chance(50);
  modifiers.sinks = draws.chance(50);
  if (draws.chance(50)) modifiers.dropout_percent = static_cast<int>(draws.between(1, 90));
  return modifiers;
}

/// Gives one case in four tiles as large as kernels want them, and one in ten heads that take
/// several registers: what goes wrong at the edge of a vector does not show below it.
void take_kernel_sizes(Draws& draws, Case& c) {
  constexpr std::array<std::int64_t, 6> kTiles = {16, 24, 48, 64, 128, 192};
  constexpr std::array<std::int64_t, 5> kChannels = {12, 16, 17, 25, 33};
  const auto one_of = [&](const auto& sizes) {
    return sizes[static_cast<std::size_t>(draws.below(std::ssize(sizes)))];
  };
  if (draws.chance(25)) c.tile_queries = one_of(kTiles);
  if (draws.chance(25)) c.tile_keys = one_of(kTiles);
  if (draws.chance(10)) c.shape.head_dim = one_of(kChannels);
  if (draws.chance(10)) c.shape.v_dim = one_of(kChannels);
}

std::string first_word(const std::string& term) { return term.substr(0, term.find(':')); }

/// The channels rounded up to what the subject takes, and cut to its widest head.
std::int64_t limited_channels(std::int64_t channels, const Capabilities& can) {
  const std::int64_t unit = can.head_dim_multiple;
  const std::int64_t most = can.max_head_dim / unit * unit;
  return std::min((channels + unit - 1) / unit * unit, most);
}

/// The shape with what the subject lacks taken out: groups, empty sequences, other lengths or
/// widths.
Shape limited_shape(Shape s, const Capabilities& can) {
  if (!can.grouped_heads) s.q_heads = s.kv_heads;
  if (!can.no_tokens) {
    s.q_tokens = std::max<std::int64_t>(1, s.q_tokens);
    s.kv_tokens = std::max<std::int64_t>(1, s.kv_tokens);
  }
  if (!can.rectangular) s.q_tokens = s.kv_tokens;
  s.head_dim = limited_channels(s.head_dim, can);
  s.v_dim = can.other_v_dim ? limited_channels(s.v_dim, can) : s.head_dim;
  return s;
}

/// The terms that the subject takes; the first of them where it takes no intersections.
std::string limited_mask(const std::string& mask, const Capabilities& can) {
  const auto takes = [&can](const std::string& word) {
    const MaskAbilities& masks = can.masks;
    if (word == "causal") return masks.causal;
    if (word == "window") return masks.window;
    if (word == "documents") return masks.documents;
    if (word == "prefix") return masks.prefix;
    return true;
  };
  std::string kept;
  for (std::size_t begin = 0; begin <= mask.size();) {
    const std::size_t end = std::min(mask.find('+', begin), mask.size());
    const std::string term = mask.substr(begin, end - begin);
    begin = end + 1;
    if (!takes(first_word(term))) continue;
    if (!kept.empty() && !can.masks.intersections) break;
    kept += (kept.empty() ? "" : "+") + term;
  }
  return kept.empty() ? "full" : kept;
}

CaseModifiers limited_modifiers(CaseModifiers modifiers, const ModifierAbilities& can) {
  if (!can.softcap) modifiers.softcap = 0;
  if (!can.alibi) modifiers.alibi = false;
  if (!can.sinks) modifiers.sinks = false;
  if (!can.dropout) modifiers.dropout_percent = 0;
  return modifiers;
}

/// The case in the shape and with the mask that the subject can take.
Case limited_problem(Case c, const Capabilities& can) {
  const Case before = c;
  c.shape = limited_shape(c.shape, can);
  c.mask = limited_mask(c.mask, can);
  if (!can.any_scale) c.unit_scale = false;
  return c == before ? c : fitted(c);
}

}  // namespace

// The order of the draws is part of every token that names a seed: a draw more or less makes other
// cases of all seeds.
Case random_case(Draws& draws) {
  Case c;
  c.seed = static_cast<std::uint64_t>(draws.between(1, kCaseSeeds - 1));
  c.shape = random_shape(draws);
  c.dtype = random_dtype(draws);
  c.ranks = random_ranks(draws);
  c.tile_queries = draws.between(1, 9);
  c.tile_keys = draws.between(1, 9);
  if (draws.chance(30)) move_next_to_a_boundary(draws, c);
  c = fitted(c);
  c.unit_scale = draws.chance(30);
  c.mask = random_mask(draws, c.shape);
  c.layout = static_cast<LayoutKind>(draws.below(3));
  c.family = static_cast<Family>(draws.below(kFamilies));
  if (draws.chance(70)) {  // unkinder than threads, and cheaper
    c.transport = TransportKind::simulated;
    c.delay_seed = static_cast<std::uint64_t>(draws.below(1000));
  }
  c.direction = draws.chance(30) ? RingDirection::previous : RingDirection::next;
  c.rendezvous = draws.chance(20);
  c.schedule = random_schedule(draws);
  c.slots = static_cast<int>(draws.between(1, 3));
  c.modifiers = random_modifiers(draws);
  take_kernel_sizes(draws, c);
  return fitted(c);
}

Case limited_to(Case c, const Capabilities& can) {
  const bool known = std::find(can.dtypes.begin(), can.dtypes.end(), c.dtype) != can.dtypes.end();
  if (!known && !can.dtypes.empty()) c.dtype = can.dtypes[c.seed % can.dtypes.size()];
  if (!can.many_ranks) c.ranks = 1;
  c.modifiers = limited_modifiers(c.modifiers, can.modifiers);
  if (!can.bit_masks && c.mask.find("bits:") != std::string::npos) c.mask = "causal";
  if (!can.schedules) c.schedule = "ring";
  if (!can.schedules && !can.prefetches) c.slots = 2;
  return limited_problem(std::move(c), can);
}

namespace {

void add_classes_of_shapes(const Case& c, std::vector<std::string>& classes) {
  const Shape& s = c.shape;
  if (s.q_heads != s.kv_heads) classes.emplace_back("grouped heads");
  if (s.q_tokens != s.kv_tokens) classes.emplace_back("rectangular");
  if (s.v_dim != s.head_dim) classes.emplace_back("v_dim is not head_dim");
  if (s.q_tokens == 0 || s.kv_tokens == 0) classes.emplace_back("no tokens");
  if (has_an_empty_row(make_problem(c))) classes.emplace_back("rows that see nothing");
  if (s.kv_tokens > c.tile_keys && s.kv_tokens % c.tile_keys != 0) {
    classes.emplace_back("tile tails");
  }
  if (c.tile_queries > 9 || c.tile_keys > 9) classes.emplace_back("tiles as kernels have them");
  if (s.head_dim > 9 || s.v_dim > 9) classes.emplace_back("wide heads");
}

void add_classes_of_rings(const Case& c, std::vector<std::string>& classes) {
  const std::int64_t tokens = std::max(c.shape.q_tokens, c.shape.kv_tokens);
  classes.emplace_back(c.transport == TransportKind::threads ? "transport threads"
                                                             : "transport simulated");
  classes.push_back("schedule " + first_word(c.schedule));
  classes.push_back("slots " + std::to_string(c.slots));
  if (c.direction == RingDirection::previous) classes.emplace_back("backwards round the ring");
  if (c.ranks > tokens) classes.emplace_back("more ranks than tokens");
  if (c.ranks > 1 && tokens % c.ranks != 0) classes.emplace_back("ranks do not divide tokens");
  if (c.ranks == 1) classes.emplace_back("one rank");
  if (c.rendezvous) classes.emplace_back("rendezvous sends");
}

void add_classes_of_modifiers(const Case& c, std::vector<std::string>& classes) {
  if (c.modifiers.softcap != 0) classes.emplace_back("soft-capping");
  if (c.modifiers.alibi) classes.emplace_back("ALiBi");
  if (c.modifiers.sinks) classes.emplace_back("sinks");
  if (c.modifiers.dropout_percent != 0) classes.emplace_back("dropout");
}

}  // namespace

std::vector<std::string> classes_of(const Case& c) {
  const bool intersection = c.mask.find('+') != std::string::npos;
  std::vector<std::string> classes = {
      "layout " + std::string(layout_name(c.layout)),
      "values " + std::string(family_name(c.family)),
      "dtype " + std::string(dtype_info(c.dtype).name),
      "mask " + (intersection ? std::string("intersection") : first_word(c.mask))};
  add_classes_of_rings(c, classes);
  add_classes_of_shapes(c, classes);
  if (c.unit_scale) classes.emplace_back("scale 1");
  add_classes_of_modifiers(c, classes);
  return classes;
}

}  // namespace ringlab::verify
