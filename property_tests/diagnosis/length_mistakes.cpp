// Mistakes of lengths: keys that a loop leaves out at either end.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// The order in which a loop over all keys goes: by position, or through chunks.
enum class Loop { by_position, by_owner, by_hop };
constexpr Loop kLoops[] = {Loop::by_position, Loop::by_owner, Loop::by_hop};

/// Hides keys outside of turns [begin, end) of such a loop, as loops over whole tiles do.
void keep_turns(Model& model, Loop loop, std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> turns(model.key_read.size());
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    std::int64_t turn = 0;
    const KeyOrder order = loop == Loop::by_hop ? KeyOrder::by_hop : KeyOrder::by_owner;
    for (const auto& key : key_pieces(model, i, order, Piece::key)) {
      turns[model.pair(i, key.front())] = turn++;
    }
  }
  count_pairs(model, [&](auto i, auto j) {
    const std::int64_t turn = loop == Loop::by_position ? j : turns[model.pair(i, j)];
    return turn >= begin && turn < end ? 1.0 : 0.0;
  });
}

/// Keeps keys of the turns [begin, end) that `turns` gives for a number of keys.
using Turns = std::function<std::pair<std::int64_t, std::int64_t>(const RunOptions&, std::int64_t)>;
void add_turns(std::vector<Hypothesis>& all, const Suspect& suspect, const Turns& turns) {
  for (const Loop loop : kLoops) {
    all.push_back(by_model(suspect, [=](Model& model) {
      const auto [begin, end] = turns(model.trial.options, model.shape().kv_tokens);
      keep_turns(model, loop, begin, end);
    }));
  }
}

void add_rounded_length(std::vector<Hypothesis>& all, const Suspect& suspect,
                        const std::function<std::int64_t(const RunOptions&)>& unit) {
  add_turns(all, suspect, [=](const RunOptions& options, std::int64_t keys) {
    const std::int64_t whole = unit(options);
    return std::pair{std::int64_t{0}, keys / whole * whole};
  });
}

/// Drops the last visible keys of a query that do not fill a vector, but for rows that see no more
/// than `kept` keys, which a kernel may take another way.
void drop_tails(Model& model, std::int64_t vector, std::int64_t kept) {
  const Mask mask = model.trial.problem.mask;
  count_pairs(model, [&](auto i, auto j) {
    const KeyInterval seen = mask.interval(i);
    const std::int64_t tail = seen.size() > kept ? seen.size() % vector : 0;
    return j < seen.end - tail ? 1.0 : 0.0;
  });
}

/// Drops the last tile of the keys of a row that are whole tiles, as loops do that count a tail.
void drop_last_whole_tile(Model& model, std::int64_t tile) {
  const Mask mask = model.trial.problem.mask;
  count_pairs(model, [&](auto i, auto j) {
    const KeyInterval seen = mask.interval(i);
    const bool is_whole = seen.size() > tile && seen.size() % tile == 0;
    return is_whole && j >= seen.end - tile ? 0.0 : 1.0;
  });
}

}  // namespace

std::vector<Hypothesis> length_mistakes() {
  std::vector<Hypothesis> all;
  for (const std::int64_t tile : {16, 32, 48, 64, 128}) {
    all.push_back(by_model({"mask.whole_tile_of_" + std::to_string(tile) + "_dropped",
                            "of a row's visible keys that fill tiles of " + std::to_string(tile) +
                                " without a rest, the last tile is dropped"},
                           [=](Model& model) { drop_last_whole_tile(model, tile); }));
  }
  for (const std::int64_t vector : {4, 8, 16, 32, 64, 128}) {
    for (const std::int64_t kept : {std::int64_t{0}, vector}) {
      all.push_back(by_model({"mask.tail_of_" + std::to_string(vector) + "_dropped",
                              "visible keys of a row that do not fill a vector of " +
                                  std::to_string(vector) + " are dropped"},
                             [=](Model& model) { drop_tails(model, vector, kept); }));
    }
  }
  add_rounded_length(
      all, {"mask.length_rounded_to_2p", "keys after the last multiple of 2P are dropped"},
      [](const RunOptions& o) { return std::int64_t{2} * o.ranks; });
  add_rounded_length(all,
                     {"mask.length_rounded_to_p", "keys after the last multiple of P are dropped"},
                     [](const RunOptions& o) { return std::int64_t{o.ranks}; });
  for (const std::int64_t vector : {2, 4, 8, 16, 32, 64, 128}) {
    add_rounded_length(
        all,
        {"mask.length_rounded_to_" + std::to_string(vector),
         "keys after the last multiple of " + std::to_string(vector) + " are dropped"},
        [=](const RunOptions&) { return vector; });
  }
  add_turns(all, {"mask.last_key_dropped", "the last key is never seen"},
            [](const RunOptions&, std::int64_t keys) {
              return std::pair{std::int64_t{0}, keys - 1};
            });
  add_turns(all, {"mask.first_token_dropped", "the first key is never seen"},
            [](const RunOptions&, std::int64_t keys) {
              return std::pair{std::int64_t{1}, keys};
            });
  all.push_back(by_model(
      {"mask.tail_tile_dropped", "keys after the last whole tile are dropped"}, [](Model& model) {
        const auto tile = model.trial.options.tile_keys;
        for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
          const auto pieces = key_pieces(model, i, KeyOrder::by_owner, Piece::tile);
          const auto& last = pieces.back();
          if (std::ssize(last) == tile) return;
          if (std::ranges::count(last, j) == 0) return;
          model.in_acc(b, h, i, j) = model.in_sum(b, h, i, j) = 0;
        });
      }));
  return all;
}

}  // namespace ringlab::verify
