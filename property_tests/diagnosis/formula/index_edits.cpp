// Rows that are read at another place of a tile or chunk than their own.
#include <string>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

enum class Read { keys, values };

/// The place in a piece of `keys` keys that is read in place of `place`.
using PlaceRead = std::size_t (*)(std::size_t place, std::size_t keys);
std::size_t from_the_end(std::size_t place, std::size_t keys) { return keys - 1 - place; }
std::size_t first_of_all(std::size_t, std::size_t) { return 0; }
std::size_t the_next(std::size_t place, std::size_t keys) { return (place + 1) % keys; }

void read_places(Model& model, KeyOrder order, Piece piece, Read read, PlaceRead place_read) {
  std::vector<std::int64_t>& rows = read == Read::keys ? model.key_read : model.value_read;
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    for (const auto& part : key_pieces(model, i, order, piece)) {
      for (std::size_t at = 0; at < part.size(); ++at) {
        rows[model.pair(i, part[at])] = part[place_read(at, part.size())];
      }
    }
  }
  score_again(model);
}

/// Rows of all tiles read from the first tile of their chunk, or, where chunks are gathered, of all.
void read_first_tile(Model& model, KeyOrder order, bool keys, bool values) {
  const auto tile = static_cast<std::size_t>(model.trial.options.tile_keys);
  for (std::int64_t i = 0; i < model.shape().q_tokens; ++i) {
    std::vector<std::vector<std::int64_t>> chunks = key_pieces(model, i, order, Piece::chunk);
    if (order == KeyOrder::by_owner) {
      std::vector<std::int64_t> all;
      for (const auto& chunk : chunks) all.insert(all.end(), chunk.begin(), chunk.end());
      chunks = {all};
    }
    for (const auto& chunk : chunks) {
      for (std::size_t at = 0; at < chunk.size(); ++at) {
        const std::size_t pair = model.pair(i, chunk[at]);
        if (keys) model.key_read[pair] = chunk[at % tile];
        if (values) model.value_read[pair] = chunk[at % tile];
      }
    }
  }
  score_again(model);
}

void add_first_tiles(std::vector<Hypothesis>& all) {
  struct Of {
    const char *id, *words;
    bool keys, values;
  };
  for (const Of& of : {Of{"k", "k", true, false}, Of{"v", "v", false, true},
                       Of{"k_and_v", "k and v", true, true}}) {
    for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
      all.push_back(by_model({std::string("index.") + of.id + "_of_the_first_tile",
                              std::string("every tile reads ") + of.words + " of the first one", 2},
                             [=](Model& m) { read_first_tile(m, order, of.keys, of.values); }));
    }
  }
}

/// Row r of a piece read from its element r on, as without the factor d in x + r · d.
Tensor<double> with_rows_one_apart(const Tensor<double>& x,
                                   const std::vector<std::vector<std::int64_t>>& pieces) {
  Tensor<double> read = x;
  const std::int64_t d = x.extents().channels;
  for (const auto& piece : pieces) {
    for (std::int64_t at = 0; at < std::ssize(piece); ++at) {
      for_each_index({x.extents().batch, x.extents().heads, 1, d},
                     [&](auto b, auto h, auto, auto c) {
                       const std::int64_t element = at + c, row = element / d;
                       read(b, h, piece[static_cast<std::size_t>(at)], c) =
                           x(b, h, piece[static_cast<std::size_t>(row)], element % d);
                     });
    }
  }
  return read;
}

void read_one_apart(Model& model, KeyOrder order, Piece piece, Read read) {
  if (model.shape().q_tokens == 0) return;  // nobody reads
  Tensor<double>& rows = read == Read::keys ? model.trial.data.k : model.trial.data.v;
  rows = with_rows_one_apart(rows, key_pieces(model, 0, order, piece));
  score_again(model);
}

bool is_of_own_rank(const Model& model, std::int64_t i, std::int64_t j) {
  return !is_of_another_rank(model, i, j);
}
bool comes_last(const Model& model, std::int64_t i, std::int64_t j) {
  return is_of_another_rank(model, i, j) && model.hop(i, j) + 1 == model.hops(i);
}

/// Chunks that an edit is about.
struct SomeChunks {
  const char *id, *words;
  bool (*are_meant)(const Model&, std::int64_t, std::int64_t);
};

/// Zeros in place of rows that never came: their memory is as it was given out.
void add_zeros(std::vector<Hypothesis>& all) {
  const ElementMap zero = [](double, auto...) { return 0.0; };
  const ElementMap same = [](double x, auto...) { return x; };
  for (const SomeChunks& chunks :
       {SomeChunks{"own", "the own chunk", is_of_own_rank},
        SomeChunks{"others", "the chunks of other ranks", is_of_another_rank},
        SomeChunks{"last", "the chunk that comes last", comes_last}}) {
    const auto add = [&](const std::string& of, const char* suffix, const ElementMap& k,
                         const ElementMap& v) {
      all.push_back(by_model(
          {std::string("index.zeros_for_") + chunks.id + suffix,
           of + " of " + chunks.words + " are zeros: they never came to where they are read", 2},
          [=](Model& model) { read_copies(model, k, v, chunks.are_meant); }));
    };
    add("k and v", "", zero, zero);
    add("k", "_k", zero, same);
    add("v", "_v", same, zero);
  }
}

/// Rows of all heads written to the first one: the last head's stay there, and the others are zeros.
void add_all_to_the_first_head(std::vector<Hypothesis>& all) {
  for (const SomeChunks& chunks :
       {SomeChunks{"own", "the own chunk", is_of_own_rank},
        SomeChunks{"others", "the chunks of other ranks", is_of_another_rank}}) {
    all.push_back(by_model({std::string("index.heads_on_top_for_") + chunks.id,
                            std::string("k and v of all heads of ") + chunks.words +
                                " are put where those of head 0 belong",
                            2},
                           [=](Model& model) {
                             const AttentionTensors data = model.trial.data;
                             const auto on_top = [](const Tensor<double>& x) {
                               return [&x](double, auto b, auto h, auto t, auto c) {
                                 const Extents& e = x.extents();
                                 return b == 0 && h == 0 ? x(e.batch - 1, e.heads - 1, t, c) : 0.0;
                               };
                             };
                             read_copies(model, on_top(data.k), on_top(data.v), chunks.are_meant);
                           }));
  }
}

/// Gathered chunks that all land at the tokens of rank 0: the last one stays there, and the places of
/// others are zeros.
void gather_on_top(Model& model) {
  const Chunks chunks(key_layout(model));
  const AttentionTensors data = model.trial.data;
  const auto on_top = [&](const Tensor<double>& x) {
    return mapped(x, [&](double, auto b, auto h, auto t, auto c) {
      double kept = 0;
      if (model.rank_of_key(t) > 0) return kept;
      for (const auto& chunk : chunks.tokens) {
        if (chunks.row_of(t) < chunk.size()) kept = x(b, h, chunk[chunks.row_of(t)], c);
      }
      return kept;
    });
  };
  model.trial.data.k = on_top(data.k);
  model.trial.data.v = on_top(data.v);
  score_again(model);
}

/// Keys sent or read where values belong, and the other way round, where both are as wide.
void add_exchanged(std::vector<Hypothesis>& all) {
  for (const SomeChunks& chunks :
       {SomeChunks{"", "", [](const Model&, std::int64_t, std::int64_t) { return true; }},
        SomeChunks{"_of_others", " in chunks of other ranks", is_of_another_rank}}) {
    for (const Read read : {Read::values, Read::keys}) {
      const bool of_values = read == Read::values;
      all.push_back(by_model(
          {std::string(of_values ? "index.keys_for_values" : "index.values_for_keys") + chunks.id,
           std::string(of_values ? "keys stand where values belong"
                                 : "values stand where keys belong") +
               chunks.words},
          [=](Model& model) {
            const Tensor<double> k = model.trial.data.k, v = model.trial.data.v;
            const bool fits = k.extents() == v.extents();
            if (!fits) count_pairs(model, [](auto, auto) { return kWild; });
            const auto of = [fits](const Tensor<double>& x, bool is_other) {
              return [&x, is_it = fits && is_other](double own, auto b, auto h, auto t, auto c) {
                return is_it ? x(b, h, t, c) : own;
              };
            };
            read_copies(model, of(v, !of_values), of(k, of_values), chunks.are_meant);
          }));
    }
  }
}

}  // namespace

std::vector<Hypothesis> index_edits() {
  std::vector<Hypothesis> all;
  all.push_back(by_model({"index.chunks_on_top_of_the_first",
                          "all gathered chunks are put where that of rank 0 belongs", 2},
                         gather_on_top));
  add_exchanged(all);
  add_all_to_the_first_head(all);
  add_zeros(all);
  add_first_tiles(all);
  for (const Read read : {Read::keys, Read::values}) {
    const std::string of = read == Read::keys ? "k" : "v";
    for (const Piece piece : {Piece::tile, Piece::chunk}) {
      const std::string part = piece == Piece::tile ? "tile" : "chunk";
      const std::string in = " of a " + part, id = "index." + of + "_";
      for (const KeyOrder order : {KeyOrder::by_owner, KeyOrder::by_hop}) {
        const auto add = [&](const std::string& what, const std::string& words, PlaceRead place) {
          all.push_back(
              by_model({id + what + "_" + part, "rows of " + of + in + " are read " + words, 2},
                       [=](Model& m) { read_places(m, order, piece, read, place); }));
        };
        add("reversed_in_a", "from its end", from_the_end);
        add("first_row_of_a", "from its first row", first_of_all);
        add("next_row_in_a", "one row further on", the_next);
        if (piece == Piece::chunk) continue;  // stride_edits.cpp
        all.push_back(
            by_model({id + "rows_one_apart_in_a_tile",
                      "row r of a tile of " + of + " is read from element r on, not r · d", 2},
                     [=](Model& m) { read_one_apart(m, order, piece, read); }));
      }
    }
  }
  return all;
}

}  // namespace ringlab::verify
