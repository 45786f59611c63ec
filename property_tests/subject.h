// Anything that computes attention and can be checked: a stage, the engine, a mutant, a plugin.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/numerics.h"
#include "reference/core/options/option_table.h"
#include "reference/core/run.h"

namespace ringlab::ring {
enum class AttentionOf;
}

namespace ringlab::verify {

/// A run asked for what a subject cannot do: no verdict, run_law() discards the case.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A foreign implementation refuses a case that it claims to take: no verdict on the case, which is
/// counted.
struct Refused : Unsupported {
  using Unsupported::Unsupported;
};

/// Endings of a call: only one that answered can be compared.
enum class Ending { answered, threw, crashed, timed_out };

/// A subject in a process of its own has crashed, or gave no answer in time.
class SubjectLost : public Error {
 public:
  SubjectLost(Ending ending, ErrorParts parts)
      : Error(ErrorKind::environment, std::move(parts)), ending_(ending) {}
  Ending ending() const { return ending_; }

 private:
  Ending ending_;
};

/// Masks that a subject takes, besides no mask. Masks that are no intervals need
/// Capabilities::bit_masks, too.
struct MaskAbilities {
  std::array<bool, std::variant_size_v<MaskTerm>> kinds = all();  ///< in the order of MaskTerm
  bool intersections = true;                                      ///< of several masks it takes

  template <class Term>
  bool& of() {
    return kinds[MaskTerm(Term{}).index()];
  }
  bool takes(const MaskTerm& term) const { return kinds[term.index()]; }
  static constexpr decltype(kinds) all() {
    decltype(kinds) every{};
    every.fill(true);
    return every;
  }
};

/// Score modifiers that a subject honours, of Problem::modifiers.
class ModifierAbilities {
 public:
  constexpr bool knows(ModifierKind kind) const { return known_[static_cast<std::size_t>(kind)]; }
  constexpr void set(ModifierKind kind, bool known) {
    known_[static_cast<std::size_t>(kind)] = known;
  }
  bool any() const { return *this != ModifierAbilities(); }
  friend bool operator==(const ModifierAbilities&, const ModifierAbilities&) = default;

 private:
  std::array<bool, kModifierKinds.size()> known_{};
};
inline constexpr ModifierAbilities kAllModifiers = [] {
  ModifierAbilities all;
  for (const ModifierKind kind : kModifierKinds) all.set(kind, true);
  return all;
}();

struct Capabilities {
  std::vector<DType> dtypes;
  bool many_ranks = true;         ///< honours RunOptions::ranks, layout, transport
  bool counts_traffic = true;     ///< RunResult::ranks is filled in
  bool masked_may_be_nan = true;  ///< never lets a masked key or value reach the result
  bool backward = false;          ///< gives gradients when AttentionInput::dout is set
  bool schedules = false;         ///< honours RunOptions::schedule, node_ranks and slots
  /// The order in which its ranks meet chunks, where it has one of its own.
  ScheduleKind schedule = ScheduleKind::ring;
  bool queries_travel = false;  ///< ranks compute rows of others
  bool ring_traffic = false;    ///< K/V travel neighbour to neighbour: closed forms apply
  bool prefetches = false;  ///< honours RunOptions::slots, beside the own chunk, on the plain ring
  bool skips_empty_blocks = false;
  bool threads = false;  ///< honours RunOptions::threads
  bool traces = false;   ///< keeps RankStats::events when RunOptions::trace is set
  bool cuda = false;     ///< honours DeviceKind::cuda, in builds that have it
  bool cpu = true;       ///< honours DeviceKind::cpu
  bool messages = true;  ///< ranks send messages: honours RunOptions::transport, delay_seed
  bool tiles = true;     ///< honours RunOptions::tile_queries and tile_keys
  bool graphs = false;   ///< honours RunOptions::as_graph and free_multiprocessors, on devices
  bool gradient_order = false;          ///< honours RunOptions::deterministic, on devices
  bool bit_masks = true;                ///< takes masks that are no intervals of keys
  bool deterministic = true;            ///< same bits from run to run
  bool deterministic_gradients = true;  ///< of gradients, too, where results have them
  /// Keys appended at the end leave every earlier partial sum as it was. false for kernels that
  /// start at the last key, as some do for causal attention.
  bool sums_keys_in_order = true;
  /// A row has the same bits wherever it stands and whatever is computed beside it. false for
  /// kernels that cut their sums by the number of rows, as libraries of matrix products do.
  bool same_bits_per_row = true;
  /// The row sum divides once, when all is summed up. false where weights are divided before they
  /// meet V: then not even a mean of integers is exact.
  bool divides_last = true;
  /// A power of a number next to 0 is exactly 1, and so is the weight of a best key. false where
  /// approximate powers are promised, which may be a step off there as anywhere else, and where
  /// fused products leave the rounding error of a scaled score.
  bool powers_next_to_0_are_1 = true;
  /// A row keeps its bits beside NaN and infinities that it does not see. false for kernels that
  /// then compute it again, in another order: it stays within its bounds.
  bool same_bits_beside_nan = true;
  ModifierAbilities modifiers = {};

  // Abilities that foreign implementations may lack; all other subjects have them.
  bool foreign = false;        ///< made by foreign_subject(): throws Unsupported by itself
  bool lse = true;             ///< gives the log-sum-exp
  bool grouped_heads = true;   ///< more query heads than K/V heads
  bool rectangular = true;     ///< q_tokens and kv_tokens that differ
  bool other_v_dim = true;     ///< a v_dim that is not head_dim
  bool no_tokens = true;       ///< zero batches, queries or keys
  bool empty_rows = true;      ///< gives 0 and -inf for queries that see no key
  bool any_scale = true;       ///< else 1/sqrt(head_dim) only
  bool few_shapes = false;     ///< compiles for every shape: its cases have one of a few
  bool strided_inputs = true;  ///< reads views in any memory order; others are given dense copies
  MaskAbilities masks = {};
  std::int64_t max_head_dim = std::numeric_limits<std::int64_t>::max();  ///< of v_dim, too
  std::int64_t head_dim_multiple = 1;                                    ///< of v_dim, too
};

/// True when a subject with these abilities honours the options that need the feature.
bool honours(const Capabilities& can, Feature feature);

/// The first obstacle in this problem for a subject with these abilities, as the end of a sentence
/// that starts with its name ("takes no mask of bits"); empty when it can take the problem.
std::string obstacle(const Capabilities& can, const Problem& problem);

/// The place of a run's ranks: a kind of device, and one process or a process for each.
struct Place {
  DeviceKind device = DeviceKind::cpu;
  TransportKind transport = TransportKind::threads;

  /// True when the ranks are processes: mpi carries between CPUs, nccl between devices.
  bool is_job() const {
    return transport == TransportKind::mpi || transport == TransportKind::nccl;
  }
};

/// Names and values of the kernels, copies and the like that a run uses.
using RunFacts = std::vector<std::pair<std::string, std::string>>;

struct Subject {
  std::string name;   ///< "ring", "broadcast", "mutant:ring_one_hop_short"
  std::string title;  ///< one line for tables
  Capabilities can;
  std::function<RunResult(const AttentionInput&, const RunOptions&)> run;
  std::function<NumericsProfile(const Problem&, const RunOptions&)> profile;
  int tile_queries = 32;  ///< tiles that it is fastest with
  int tile_keys = 32;
  /// Throws an environment error where a need besides a device is missing; may be empty.
  std::function<void()> require = {};
  /// Abilities of the subject on devices, where they are fewer than on the CPU.
  std::optional<Capabilities> can_on_devices = {};
  /// Usage error for a run on devices that it does not take on any machine; may be empty.
  std::function<void(const Problem&, const RunOptions&, Pass last_pass)> check_on_devices = {};
  /// Says what the subject uses on devices, which have to be there: kernels, copies. May be empty.
  std::function<RunFacts(const Problem&, const RunOptions&)> describe_on_devices = {};
  /// Carriers between ranks that are processes, each on rows of its own: for the ring engine only.
  std::vector<TransportKind> carriers = {};
  ring::AttentionOf attention = {};  ///< whose block kernels these ranks call
  bool makes_rows = false;           ///< runs where each rank makes its rows and nobody has all
  /// Stated traffic and memory of `rank` on CPUs; empty where the subject states none.
  std::function<StatedCosts(const Problem&, const RunOptions&, int rank)> costs = {};
  /// The name in replay tokens where that is another: "libmine.so@1f3c…", by its content.
  std::string id = {};
  /// The stage that it was written as, "ring", where its name does not say that.
  std::string stage = {};
  /// The end of what its last run wrote to standard output and error, for a subject in a process of
  /// its own. May be empty.
  std::function<std::string()> printed = {};

  const std::string& stage_or_name() const { return stage.empty() ? name : stage; }
  const Capabilities& can_on(DeviceKind device) const {
    return device == DeviceKind::cuda && can_on_devices ? *can_on_devices : can;
  }
  Capabilities can_at(const Place& place) const;
  bool runs_on(TransportKind carrier) const;
};

/// The expectation, for an error message, where the option has no effect on this subject: "a
/// subject that has gradients"; empty where it has one.
std::string why_without_effect(const Subject& subject, const RunOption& option, const Place& place);

/// The subject with every run and promise on `device`: the laws make options of their own.
Subject on_device(Subject subject, DeviceKind device);

/// The subject with RunOptions::deterministic off in every run: the bits of its gradients are not
/// promised, those of o and lse are.
Subject with_gradients_in_any_order(Subject subject);

/// The stages as subjects, in order, and the ring engine as the last one.
std::vector<Subject> all_subjects();
/// Kernels of vendors as subjects.
std::vector<Subject> vendor_subjects();
/// The subject of this name or stage number ("ring", "05", "05_ring"), the vendors' and the
/// reference among them; otherwise a usage error that names known ones.
Subject find_subject(const std::string& name);

}  // namespace ringlab::verify
