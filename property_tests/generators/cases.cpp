#include "property_tests/generators/cases.h"

#include <algorithm>
#include <array>

#include "property_tests/generators/masks.h"
#include "property_tests/generators/side_draws.h"

namespace ringlab::verify {
namespace {

/// A mostly short length: mistakes at edges show in a few tokens, and a case stays readable.
std::int64_t random_tokens(Draws& draws) {
  const std::int64_t kind = draws.below(100);
  if (kind < 5) return 0;
  if (kind < 12) return 1;
  if (kind < 60) return draws.between(2, 9);
  if (kind < 90) return draws.between(10, 30);
  return draws.between(31, 70);
}

/// The widest heads of most cases.
constexpr std::int64_t kMostCommonChannels = 9;
/// The widest heads of any case.
constexpr std::int64_t kMostChannels = 256;

int random_ranks(Draws& draws) {
  const std::int64_t kind = draws.below(10);
  if (kind < 2) return 1;
  return static_cast<int>(kind < 7 ? draws.between(2, 4) : draws.between(5, 9));
}

Shape random_shape(Draws& draws) {
  Shape s;
  s.batch = draws.chance(75) ? 1 : draws.between(2, 3);
  s.kv_heads = draws.chance(55) ? 1 : draws.between(2, 3);
  s.q_heads = s.kv_heads * (draws.chance(60) ? 1 : draws.between(2, 3));
  s.q_tokens = random_tokens(draws);
  s.kv_tokens = draws.chance(60) ? s.q_tokens : random_tokens(draws);
  s.head_dim = draws.between(1, kMostCommonChannels);
  s.v_dim = draws.chance(40) ? s.head_dim : draws.between(1, kMostCommonChannels);
  return s;
}

/// Moves a length to a multiple of a tile or of the ranks, or one off it: where tails go wrong.
void move_next_to_a_boundary(Draws& draws, Case& c) {
  const std::int64_t unit = draws.chance(50) ? c.tile_keys : c.ranks;
  const std::int64_t tokens = c.shape.kv_tokens / unit * unit + draws.between(-1, 1);
  if (c.shape.q_tokens == c.shape.kv_tokens) c.shape.q_tokens = tokens;
  c.shape.kv_tokens = tokens;
}

/// A random dtype, mostly f32, in which every subject computes.
DType random_dtype(Draws& draws) {
  constexpr std::array<DType, 10> kDTypes = {DType::f32,  DType::f32, DType::f32, DType::f32,
                                             DType::f32,  DType::f64, DType::f64, DType::bf16,
                                             DType::bf16, DType::f16};
  return kDTypes[static_cast<std::size_t>(draws.below(10))];
}

/// Leaves half of the cases the plain ring, and gives the others any schedule.
void draw_schedule(Draws& draws, Case& c) {
  if (draws.chance(50)) return;
  std::vector<ScheduleKind> others(kScheduleKinds.begin(), kScheduleKinds.end());
  std::erase(others, ScheduleKind::ring);
  c.schedule = others[static_cast<std::size_t>(draws.below(std::ssize(others)))];
  if (schedule_traits(c.schedule).has_nodes) c.node_ranks = static_cast<int>(draws.between(1, 4));
}

/// Modifiers in two cases of five, mostly several at once: each alone is easy, and mistakes live
/// where two meet.
CaseModifiers random_modifiers(Draws& draws) {
  CaseModifiers modifiers;
  if (!draws.chance(40)) return modifiers;
  for (const ModifierKind kind : kModifierKinds) {
    const int most = words_of(kind).most_drawn;
    if (!draws.chance(50)) continue;
    modifiers.set(kind, most > 1 ? static_cast<double>(draws.between(1, most)) : 1);
  }
  return modifiers;
}

/// Gives one case in four tiles as large as kernels want them, and one in ten heads that take
/// several registers: mistakes at the edge of a vector do not show below it.
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

/// A width up to kMostChannels, at or beside a multiple of what kernels cut heads into.
std::int64_t channels_at_a_boundary(Draws& draws) {
  constexpr std::array<std::int64_t, 4> kUnits = {8, 16, 64, 128};
  const std::int64_t unit = kUnits[static_cast<std::size_t>(draws.below(std::ssize(kUnits)))];
  const std::int64_t whole = unit * draws.between(1, kMostChannels / unit);
  const std::int64_t channels = whole + draws.between(-1, 1);
  return std::min(channels, kMostChannels);
}

void shorten(Shape& s, std::int64_t most_tokens) {
  s.q_tokens = std::min(s.q_tokens, most_tokens);
  s.kv_tokens = std::min(s.kv_tokens, most_tokens);
}

/// Gives the case one to four queries behind many keys, mostly in whole tiles: for kernels that
/// then split keys among threads.
void decode(Draws& draws, Case& c) {
  constexpr std::array<std::int64_t, 4> kTiles = {48, 64, 96, 128};
  const std::int64_t tile = kTiles[static_cast<std::size_t>(draws.below(std::ssize(kTiles)))];
  Shape& s = c.shape;
  s.batch = 1;
  s.q_tokens = draws.chance(50) ? 1 : draws.between(2, 4);
  s.kv_tokens = tile * draws.between(1, 300 / tile) + (draws.chance(30) ? draws.between(-1, 1) : 0);
  c.mask = random_mask(draws, s);
}

/// Takes one case in four to one of the places where few kernels are ever tried: a scale below 0 or
/// of 0, heads as wide as kernels take them, large groups, three masks, many batches, a few queries
/// behind many keys. Sequences are short where something else is large.
void take_a_rare_region(Draws& draws, Case& c) {
  Shape& s = c.shape;
  const std::int64_t region = draws.below(100);
  if (region < 3) {
    c.scale = ScaleKind::negative;
  } else if (region < 6) {
    c.scale = ScaleKind::zero;
  } else if (region < 10) {
    s.head_dim = channels_at_a_boundary(draws);
    s.v_dim = draws.chance(50) ? s.head_dim : channels_at_a_boundary(draws);
    shorten(s, 40);
    if (draws.chance(40)) c.mask = random_window(draws, s);
  } else if (region < 14) {
    s.kv_heads = std::min<std::int64_t>(s.kv_heads, 2);
    s.q_heads = s.kv_heads * draws.between(4, 16);
    shorten(s, 24);
  } else if (region < 18) {
    c.mask = three_masks(draws, s);
  } else if (region < 21) {
    s.batch = draws.between(4, 6);
    shorten(s, 16);
  } else if (region < 25) {
    decode(draws, c);
  }
}

std::int64_t rounded_up(std::int64_t size, std::int64_t unit) {
  return (size + unit - 1) / unit * unit;
}

/// The channels rounded up to what the subject takes, and cut to its widest head. Where that makes
/// all small numbers one unit, a quarter of them become two units.
std::int64_t limited_channels(std::int64_t channels, const Capabilities& can) {
  const std::int64_t unit = can.head_dim_multiple;
  const std::int64_t most = can.max_head_dim / unit * unit;
  const bool is_rounded = channels % unit != 0;
  const std::int64_t more =
      is_rounded && unit >= kMostCommonChannels && channels % 4 == 0 ? unit : 0;
  return std::min(rounded_up(channels, unit) + more, most);
}

/// The shape without features that the subject lacks: groups, empty sequences, other lengths or
/// widths.
Shape limited_shape(Shape s, const Capabilities& can) {
  if (!can.has(Ability::grouped_heads)) s.q_heads = s.kv_heads;
  if (!can.has(Ability::no_tokens)) {
    s.q_tokens = std::max<std::int64_t>(1, s.q_tokens);
    s.kv_tokens = std::max<std::int64_t>(1, s.kv_tokens);
  }
  s.q_tokens = rounded_up(s.q_tokens, can.token_multiple);
  s.kv_tokens = rounded_up(s.kv_tokens, can.token_multiple);
  if (!can.has(Ability::rectangular)) s.q_tokens = s.kv_tokens;
  s.head_dim = limited_channels(s.head_dim, can);
  s.v_dim = can.has(Ability::other_v_dim) ? limited_channels(s.v_dim, can) : s.head_dim;
  return s;
}

CaseModifiers limited_modifiers(CaseModifiers modifiers, const ModifierAbilities& can) {
  for (const ModifierKind kind : kModifierKinds) {
    if (!can.knows(kind)) modifiers.set(kind, 0);
  }
  return modifiers;
}

/// The case with the subject's only schedule. Nodes are of 1 to 4 ranks.
Case with_own_schedule(Case c, ScheduleKind own) {
  const bool has_nodes = schedule_traits(own).has_nodes;
  if (has_nodes && c.schedule != own) c.node_ranks = static_cast<int>(1 + c.seed % 4);
  if (!has_nodes) c.node_ranks = 1;
  c.schedule = own;
  return c;
}

/// The case in the shape and with the mask that the subject can take.
Case limited_problem(Case c, const Capabilities& can) {
  const Case before = c;
  c.shape = limited_shape(c.shape, can);
  c.mask = limited_mask(c.mask, c.shape, c.seed, can);
  const bool is_above_0 = c.scale != ScaleKind::negative && c.scale != ScaleKind::zero;
  if (!can.nonpositive_scale && !is_above_0) c.scale = ScaleKind::unit;
  if (!can.has(Ability::any_scale)) c.scale = ScaleKind::rsqrt;
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
  if (draws.chance(30)) c.scale = ScaleKind::unit;
  c.mask = random_mask(draws, c.shape);
  c.layout = static_cast<LayoutKind>(draws.below(3));
  c.family = static_cast<Family>(draws.below(kDrawnFamilies));
  if (draws.chance(70)) {  // less kind than threads, and cheaper
    c.transport = TransportKind::simulated;
    c.delay_seed = static_cast<std::uint64_t>(draws.below(1000));
  }
  c.direction = draws.chance(30) ? RingDirection::previous : RingDirection::next;
  c.rendezvous = draws.chance(20);
  draw_schedule(draws, c);
  c.slots = static_cast<int>(draws.between(1, 3));
  c.modifiers = random_modifiers(draws);
  take_kernel_sizes(draws, c);
  take_a_rare_region(draws, c);
  draw_beside(c);
  return fitted(c);
}

Case with_whole_tokens(Case c, const Capabilities& can) {
  c.shape.q_tokens = rounded_up(c.shape.q_tokens, can.token_multiple);
  c.shape.kv_tokens = rounded_up(c.shape.kv_tokens, can.token_multiple);
  return fitted(std::move(c));
}

Case limited_to(Case c, const Capabilities& can) {
  const bool known = std::find(can.dtypes.begin(), can.dtypes.end(), c.dtype) != can.dtypes.end();
  if (!known && !can.dtypes.empty()) c.dtype = can.dtypes[c.seed % can.dtypes.size()];
  if (!can.has(Ability::many_ranks)) c.ranks = 1;
  if (!can.has(Ability::threads)) c.threads = 1;
  c.modifiers = limited_modifiers(c.modifiers, can.modifiers);
  if (!can.has(Ability::bit_masks) && c.mask.has_bits()) c.mask = "causal";
  if (!can.has(Ability::schedules)) c = with_own_schedule(std::move(c), can.schedule);
  if (!can.has(Ability::schedules) && !can.has(Ability::prefetches)) c.slots = 2;
  return limited_problem(std::move(c), can);
}

namespace {

void add_classes_of_shapes(const Case& c, std::vector<std::string>& classes) {
  const Shape& s = c.shape;
  if (s.batch > 3) classes.emplace_back("more than 3 batches");
  if (s.q_heads != s.kv_heads) classes.emplace_back("grouped heads");
  if (s.q_heads > 3 * s.kv_heads) classes.emplace_back("more than 3 heads in a group");
  if (s.q_tokens != s.kv_tokens) classes.emplace_back("rectangular");
  if (s.v_dim != s.head_dim) classes.emplace_back("v_dim is not head_dim");
  if (s.q_tokens == 0 || s.kv_tokens == 0) classes.emplace_back("no tokens");
  if (has_an_empty_row(make_problem(c))) classes.emplace_back("rows that see nothing");
  if (s.kv_tokens > c.tile_keys && s.kv_tokens % c.tile_keys != 0) {
    classes.emplace_back("tile tails");
  }
  if (c.tile_queries > 9 || c.tile_keys > 9) classes.emplace_back("tiles as kernels have them");
  if (std::max(s.head_dim, s.v_dim) > kMostCommonChannels) classes.emplace_back("wide heads");
  if (std::max(s.head_dim, s.v_dim) > 64) classes.emplace_back("heads above 64 channels");
}

void add_classes_of_rings(const Case& c, std::vector<std::string>& classes) {
  const std::int64_t tokens = std::max(c.shape.q_tokens, c.shape.kv_tokens);
  classes.emplace_back(c.transport == TransportKind::threads ? "transport threads"
                                                             : "transport simulated");
  classes.push_back("schedule " + std::string(schedule_word(c.schedule)));
  classes.push_back("slots " + std::to_string(c.slots));
  if (c.direction == RingDirection::previous) classes.emplace_back("backwards round the ring");
  if (c.ranks > tokens) classes.emplace_back("more ranks than tokens");
  if (c.ranks > 1 && tokens % c.ranks != 0) classes.emplace_back("ranks do not divide tokens");
  if (c.ranks == 1) classes.emplace_back("one rank");
  if (c.rendezvous) classes.emplace_back("rendezvous sends");
}

void add_class_of_scale(ScaleKind scale, std::vector<std::string>& classes) {
  if (scale == ScaleKind::unit) classes.emplace_back("scale 1");
  if (scale == ScaleKind::negative) classes.emplace_back("scale below 0");
  if (scale == ScaleKind::zero) classes.emplace_back("scale 0");
}

std::string_view class_of(const CaseMask& mask) {
  if (mask.terms().empty()) return "full";
  return mask.terms().size() > 1 ? "intersection" : word_of(mask.terms().front());
}

}  // namespace

std::vector<std::string> classes_of(const Case& c) {
  std::vector<std::string> classes = {"layout " + std::string(layout_name(c.layout)),
                                      "values " + std::string(family_name(c.family)),
                                      "dtype " + std::string(dtype_info(c.dtype).name),
                                      "mask " + std::string(class_of(c.mask))};
  if (c.mask.terms().size() > 2) classes.emplace_back("three masks");
  add_classes_of_rings(c, classes);
  add_classes_of_shapes(c, classes);
  add_class_of_scale(c.scale, classes);
  for (const ModifierKind kind : kModifierKinds) {
    if (c.modifiers.level(kind) != 0) classes.emplace_back(modifier_title(kind));
  }
  return classes;
}

std::map<std::string, double> drawn_shares(const Capabilities& can) {
  constexpr int kDrawn = 1000;
  std::map<std::string, double> shares;
  for (std::uint64_t seed = 0; seed < kDrawn; ++seed) {
    Draws draws(seed);
    for (const std::string& name : classes_of(limited_to(random_case(draws), can))) {
      shares[name] += 1.0 / kDrawn;
    }
  }
  return shares;
}

}  // namespace ringlab::verify
