// A case: the small descriptor from which all tensors of one test are made, and its replay token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "property_tests/case_mask.h"
#include "property_tests/case_modifiers.h"
#include "reference/core/run.h"

namespace ringlab::verify {

/// Distributions of q, k and v. The laws of the exact probes (uniform, dyadic, subset, retrieval:
/// verification probes U, Y, S, R) make tensors of their own.
enum class Family {
  normal,         ///< standard normal, distinct per head
  uniform,        ///< [-1, 1]
  small_ints,     ///< integers in [-4, 4], many ties
  peaked,         ///< one key per row dominates by tens of nats
  late_maximum,   ///< scores rise along the keys: every tile raises the maximum
  early_maximum,  ///< scores fall along the keys
  huge_gaps,      ///< rows and blocks hundreds of nats apart
  common_shift,   ///< all scores of a row near one large value
  signed_zeros,   ///< many ±0
  subnormal,      ///< tiny and subnormal values
  constant_v,     ///< equal values per head
  // For long rows of planned cases, in which a key that is lost or read twice shows.
  one_channel,  ///< the value of a key has one channel that is not 0, between 1 and 2 in size
  heavy_key,    ///< one key of a head, mostly beside a tile or a power of two, outweighs the others
  cancelling,   ///< products of q and k beyond the range of f16 add up to scores of ordinary size
};
constexpr std::string_view family_name(Family family) {
  switch (family) {
    case Family::normal:
      return "normal";
    case Family::uniform:
      return "uniform";
    case Family::small_ints:
      return "small_ints";
    case Family::peaked:
      return "peaked";
    case Family::late_maximum:
      return "late_maximum";
    case Family::early_maximum:
      return "early_maximum";
    case Family::huge_gaps:
      return "huge_gaps";
    case Family::common_shift:
      return "common_shift";
    case Family::signed_zeros:
      return "signed_zeros";
    case Family::subnormal:
      return "subnormal";
    case Family::constant_v:
      return "constant_v";
    case Family::one_channel:
      return "one_channel";
    case Family::heavy_key:
      return "heavy_key";
    case Family::cancelling:
      return "cancelling";
  }
  return "";
}
inline constexpr int kFamilies = static_cast<int>(count_kinds<Family, family_name>());
/// The families of random cases, the first ones.
inline constexpr int kDrawnFamilies = static_cast<int>(Family::one_channel);

/// The factor on the scores.
enum class ScaleKind {
  rsqrt,     ///< 1/sqrt(head_dim)
  unit,      ///< 1
  negative,  ///< -1/sqrt(head_dim): the least product has the largest weight
  zero,      ///< all weights of a row are equal
};
constexpr std::string_view scale_name(ScaleKind scale) {
  switch (scale) {
    case ScaleKind::rsqrt:
      return "rsqrt";
    case ScaleKind::unit:
      return "unit";
    case ScaleKind::negative:
      return "negative";
    case ScaleKind::zero:
      return "zero";
  }
  return "";
}

/// Everything that determines one test. Fields shrink independently; seeds do not shrink.
struct Case {
  std::uint64_t seed = 1;
  Shape shape;
  DType dtype = DType::f32;
  ScaleKind scale = ScaleKind::rsqrt;
  CaseMask mask = {};  ///< fits the shape
  LayoutKind layout = LayoutKind::contiguous;
  int ranks = 1;
  Family family = Family::normal;
  TransportKind transport = TransportKind::threads;
  std::uint64_t delay_seed = 0;
  RingDirection direction = RingDirection::next;
  bool rendezvous = false;  ///< zero-buffer sends
  std::int64_t tile_queries = 4;
  std::int64_t tile_keys = 4;
  ScheduleKind schedule = ScheduleKind::ring;
  int node_ranks = 1;  ///< of ScheduleKind::double_ring
  int slots = 2;       ///< chunks that a rank can hold besides its own
  int threads = 1;     ///< of each rank, for subjects that honour them
  CaseModifiers modifiers = {};
  friend bool operator==(const Case&, const Case&) = default;
};

/// The most pairs in the bit matrices of a replay token: each pair's bit is drawn by itself.
inline constexpr std::int64_t kMostDrawnPairs = 1 << 20;
/// The replay token: one word without shell metacharacters; from_token(to_token(c)) == c. Malformed
/// tokens are usage errors that name the field. Example:
/// b1.h2.g1.q7.k9.d3.v2.r3.f32.unit.zigzag.next.peaked.threads.buffered.n0.x4.y4.double:2.c3.
/// causal.s123, with modifiers …causal.with:cap8,5-alibi-sinks-drop30.s123, with more threads than
/// one …c3.t4.causal.s123
std::string to_token(const Case& c);
Case from_token(const std::string& token);
/// The case in words: "2 ranks, causal, q (1, 2, 7, 3), …".
std::string describe(const Case& c);
/// The nearest valid case: heads that divide, documents that sum to the keys, limits kept.
Case fitted(Case c);

double scale_of(ScaleKind scale, std::int64_t head_dim);
Problem make_problem(const Case& c);
RunOptions make_options(const Case& c);
/// True when some query sees no key at all.
bool has_an_empty_row(const Problem& problem);
/// Draws q, k and v, deterministic in c on every machine (own generator, no std:: distributions);
/// values are exactly representable in c.dtype.
AttentionTensors make_tensors(const Case& c);
/// The gradient dO of the loss, in the extents of out: integers for small_ints, else normal
/// numbers; in three cases of ten much larger or smaller, as of a loss that was scaled.
Tensor<double> make_dout(const Case& c);

}  // namespace ringlab::verify
