// Keys that count too rarely or too often, in the accumulator, the row sum or both.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "property_tests/diagnosis/formula/sums.h"
#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// True for a key at a place of a piece that has so many keys.
using AtPlace = bool (*)(std::size_t place, std::size_t keys);
bool is_first(std::size_t place, std::size_t) { return place == 0; }
bool is_last(std::size_t place, std::size_t keys) { return place + 1 == keys; }
bool is_first_of_several(std::size_t place, std::size_t keys) { return place == 0 && keys > 1; }
bool is_last_of_several(std::size_t place, std::size_t keys) {
  return place + 1 == keys && keys > 1;
}

/// Some keys of each query: [query · keys + key].
using Chosen = std::vector<std::uint8_t>;
using Choice = std::function<Chosen(const Model&)>;

/// Lists of keys of a query, in the order in which they are looked at.
using KeyLists = std::function<std::vector<std::vector<std::int64_t>>(const Model&, std::int64_t)>;

Choice at_places(const KeyLists& lists, AtPlace chosen) {
  return [=](const Model& model) {
    Chosen keys(model.key_read.size());
    for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
      for (const auto& list : lists(model, i)) {
        for (std::size_t place = 0; place < list.size(); ++place) {
          if (chosen(place, list.size())) keys[model.pair(i, list[place])] = 1;
        }
      }
    }
    return keys;
  };
}

KeyLists keys_of_pieces(KeyOrder order, Piece piece) {
  return [=](const Model& model, std::int64_t i) { return key_pieces(model, i, order, piece); };
}

/// The keys that a query sees.
std::vector<std::vector<std::int64_t>> keys_seen(const Model& model, std::int64_t i) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
    if (model.trial.problem.mask.allows(i, j)) keys.push_back(j);
  }
  return {keys};
}

/// All keys, in the order in which a loop over chunks goes.
KeyLists keys_of_loop(KeyOrder order) {
  return [=](const Model& model, std::int64_t i) {
    std::vector<std::int64_t> keys;
    for (const auto& key : key_pieces(model, i, order, Piece::key)) keys.push_back(key.front());
    return std::vector<std::vector<std::int64_t>>{keys};
  };
}

Choice of_chunks(bool (*chosen)(int rank, int owner)) {
  return [=](const Model& model) {
    Chosen keys(model.key_read.size());
    for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
      for (std::int64_t j = 0; j < model.shape().kv_tokens; ++j) {
        keys[model.pair(i, j)] = chosen(model.rank_of_query(i), model.rank_of_key(j));
      }
    }
    return keys;
  };
}

struct Times {
  const char* id;
  const char* words;
  double times;
};
constexpr Times kLost{"lost", "is not counted", 0};
constexpr Times kDoubled{"doubled", "counts twice", 2};

struct EditWords {
  std::string id, text;
  int terms = 1;
};

void add_edit(std::vector<Hypothesis>& all, const EditWords& words, const Choice& choice,
              const Sums& in, const Times& times) {
  const std::string where = in.acc && in.sum ? "" : std::string(" in ") + in.words;
  all.push_back(by_model({"counts." + words.id + "_" + times.id + "_in_" + in.id,
                          words.text + " " + times.words + where, words.terms},
                         [=](Model& model) {
                           const Chosen chosen = choice(model);
                           for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
                             if (!chosen[model.pair(i, j)]) return;
                             if (in.acc) model.in_acc(b, h, i, j) *= times.times;
                             if (in.sum) model.in_sum(b, h, i, j) *= times.times;
                           });
                         }));
}

void add_choice(std::vector<Hypothesis>& all, const EditWords& words, const Choice& choice,
                const std::vector<Sums>& sums) {
  for (const Sums& in : sums) {
    for (const Times& times : {kLost, kDoubled}) add_edit(all, words, choice, in, times);
  }
}

/// Counts keys twice that the last tile shares with the one before, since it is moved back to be whole.
void move_last_tile_back(Model& model, std::int64_t tile) {
  const std::int64_t keys = model.shape().kv_tokens, whole = keys / tile * tile;
  if (keys < tile) return;
  count_pairs(model, [&](auto, auto j) { return j >= keys - tile && j < whole ? 2.0 : 1.0; });
}

/// Counts the places of the last tile that hold no key, as keys whose score and value are 0: in all
/// rows, or in those that see a key of that tile.
enum class Padded { all_rows, rows_of_the_tile };
void count_padding(Model& model, std::int64_t tile, std::int64_t padding, Padded padded) {
  constexpr double kLeastScore = -80;  // below it a weight relative to the maximum may overflow
  const std::int64_t keys = model.shape().kv_tokens;
  std::vector<double>& sinks = model.trial.problem.modifiers.sinks;
  const bool has_sinks = !sinks.empty();  // the one place that there is has other scores then
  const Mask mask = model.trial.problem.mask;
  std::vector<bool> is_wild(static_cast<std::size_t>(model.shape().q_tokens), has_sinks);
  if (!has_sinks) {
    sinks.assign(static_cast<std::size_t>(model.shape().q_heads), 0);
    model.sink_counts = Tensor<double>(model.shape().lse());
  }
  for_each_index(model.shape().lse(), [&](auto b, auto h, auto i, auto) {
    double top = kNoScore;
    bool meets = padded == Padded::all_rows;
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!mask.allows(i, j)) continue;
      top = std::max(top, model.score(b, h, i, j));
      meets |= j >= keys / tile * tile;
    }
    if (!has_sinks && meets) model.sink_counts(b, h, i, 0) = static_cast<double>(padding);
    if (top < kLeastScore) is_wild[static_cast<std::size_t>(i)] = true;
  });
  count_pairs(model,
              [&](auto i, auto) { return is_wild[static_cast<std::size_t>(i)] ? kWild : 1.0; });
}

void add_kernel_tiles(std::vector<Hypothesis>& all) {
  all.push_back(by_model({"softmax.one_more_score", "the row sum has one score of 0 too many", 2},
                         [](Model& m) { count_padding(m, 1, 1, Padded::all_rows); }));
  for (const std::int64_t tile : kKernelTiles) {
    all.push_back(by_model({"counts.last_tile_moved_back",
                            "the last tile is moved back to be whole: keys of the one before count "
                            "twice",
                            2},
                           [=](Model& m) { move_last_tile_back(m, tile); }));
    for (const Padded padded : {Padded::all_rows, Padded::rows_of_the_tile}) {
      all.push_back(
          by_model({"counts.padding",
                    "places of the last tile that hold no key count, with a score of 0", 2},
                   [=](Model& m) {
                     count_padding(m, tile, (tile - m.shape().kv_tokens % tile) % tile, padded);
                   }));
    }
  }
}

}  // namespace

std::vector<Hypothesis> count_edits() {
  std::vector<Hypothesis> all;
  add_kernel_tiles(all);
  for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
    for (const auto& [piece, name] :
         {std::pair{Piece::tile, "tile"}, std::pair{Piece::chunk, "chunk"}}) {
      const std::string id = name, words = std::string("key of each ") + name;
      for (const AtPlace first : {is_first, is_first_of_several}) {
        add_choice(all, {"first_of_each_" + id, "the first " + words, 2},
                   at_places(keys_of_pieces(order, piece), first), {kAcc, kSum, kBoth});
      }
      for (const AtPlace last : {is_last, is_last_of_several}) {
        add_choice(all, {"last_of_each_" + id, "the last " + words, 2},
                   at_places(keys_of_pieces(order, piece), last), {kAcc, kSum, kBoth});
      }
    }
  }
  for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
    for (const auto& [end, chosen] :
         {std::pair<const char*, AtPlace>{"first", is_first}, {"last", is_last}}) {
      const EditWords words{std::string(end) + "_of_the_loop",
                            std::string("the ") + end + " key of the loop over keys"};
      add_choice(all, words, at_places(keys_of_loop(order), chosen), {kAcc, kSum});
      add_edit(all, words, at_places(keys_of_loop(order), chosen), kBoth, kDoubled);
    }
  }
  // Keys that both sums lose or double are named in mask_mistakes.cpp and ring_mistakes.cpp.
  for (const AtPlace first : {is_first, is_first_of_several}) {
    add_choice(all, {"first_seen", "the first key that a query sees"}, at_places(keys_seen, first),
               {kAcc, kSum});
  }
  for (const AtPlace last : {is_last, is_last_of_several}) {
    add_choice(all, {"last_seen", "the last key that a query sees"}, at_places(keys_seen, last),
               {kAcc, kSum});
  }
  add_choice(all, {"own_chunk", "the own chunk"},
             of_chunks([](int rank, int owner) { return owner == rank; }), {kAcc, kSum});
  add_choice(all, {"other_chunks", "chunks of other ranks"},
             of_chunks([](int rank, int owner) { return owner != rank; }), {kAcc, kSum});
  return all;
}

}  // namespace ringlab::verify
