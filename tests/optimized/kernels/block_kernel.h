// The block kernels that must keep one contract, as test parameters.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/optimized/kernels/kernel_case.h"

namespace ringlab {

struct GradientOptions {
  bool deterministic = false;
  std::uint64_t seed = 0;
};

/// Cases that are tried together.
struct CaseGroup {
  std::string name;
  std::vector<KernelCase> cases;
};

/// A kernel of one dtype, called for all chunks of a trial. `seed` draws what may change no result:
/// the order of threads, the grid.
struct BlockKernel {
  std::string name;
  DType dtype = DType::bf16;
  /// Null where there is no such pass.
  std::function<AttentionOutput(const KernelTrial&, std::uint64_t seed)> forward = {};
  /// The given output is differentiated: lse and delta are of it.
  std::function<AttentionGradients(const KernelTrial&, const AttentionOutput&,
                                   const GradientOptions&)>
      backward = {};
  std::function<NumericsProfile(const KernelTrial&)> profile = {};
  std::vector<CaseGroup> groups = {};
  std::vector<bool> orders = {false, true};  ///< of gradients: any, deterministic
  /// Cases of which one token is made no number. The bits of sums may not depend on an order here.
  std::vector<KernelCase> spoilt = {};
  /// A tile whose values are no numbers is computed once more: the bits of its other rows differ.
  bool spoilt_tiles_change_bits = false;
  bool weighs_any_score = false;          ///< equal scores of any size have equal weights
  std::vector<KernelCase> repeated = {};  ///< cases that have the same bits for every seed
  std::uint64_t repetitions = 4;
  bool orders_are_drawn = false;  ///< gradients that are not deterministic differ from seed to seed
  /// Called before a test and after it: empty, or why it is skipped, and what has gone wrong.
  std::function<std::string()> begin = {}, end = {};
};
inline void PrintTo(const BlockKernel& kernel, std::ostream* out) { *out << kernel.name; }

/// The kernels of the program under test.
std::vector<BlockKernel> every_block_kernel();

/// Numbers around which a kernel changes what it does: ends of tiles, of blocks of keys, widths.
struct Edges {
  unsigned random = 12;  ///< cases, of which every fourth is `widest`, the others up to 64 channels
  std::int64_t widest = 64;
  std::vector<std::int64_t> queries, keys;            ///< each with each, of 16 channels
  std::vector<std::int64_t> wide_queries, wide_keys;  ///< the same of 128 channels
  std::vector<std::int64_t> rising;  ///< numbers of keys whose scores rise from block to block
  std::int64_t most_channels = 256;
  std::int64_t keys_of_widths = 97;  ///< more than a block of keys
  std::int64_t masked = 130;         ///< tokens: several tiles and blocks of keys
  std::int64_t empty_rows = 130;     ///< queries: whole tiles, and a part of one, see nothing
};
/// The cases that every kernel must pass.
std::vector<CaseGroup> contract_cases(const Edges& edges);
/// The case with each of the masks.
CaseGroup masked(const KernelCase& c, const std::vector<std::string>& masks);

/// Empty, or what is wrong with a pass that the kernel has.
std::string check(const BlockKernel& kernel, const KernelCase& c, std::uint64_t seed);

/// Time of all passes of the case, with what brings tensors to the kernel and back.
double seconds(const BlockKernel& kernel, const KernelCase& c);

/// A number that is none, in a token of the first batch and head.
struct Spoiler {
  enum class Where { q, k, v, dout } where;
  std::int64_t token;
  double bad;
};
/// Empty, or where it shows though it is not seen, or does not show though it is. Infinities of K
/// may lead to weights of 0, and need not show.
std::string check_spoilt(const BlockKernel& kernel, const KernelCase& c, const Spoiler& spoiler,
                         std::uint64_t seed);

struct SpoiltCase {
  KernelCase c;
  Spoiler spoiler;
};
/// A search for a mistake, with seeds 0 … seeds - 1: all cases with one seed before the
/// next seed, and what is spoilt after the first.
struct Hunt {
  std::vector<KernelCase> cases;
  std::uint64_t seeds;
  std::vector<SpoiltCase> spoilt = {};
};
/// Empty, or how the first case that shows it shows that the kernel is wrong, by its numbers or by
/// an exception.
std::string find_mistake(const BlockKernel& kernel, const Hunt& hunt);

}  // namespace ringlab
