// Rows of q, k and v that are read at another address: row r of head h begins at element
// h · (distance of heads) + r · (distance of rows).
#include <algorithm>
#include <string>
#include <utility>

#include "property_tests/diagnosis/hypotheses.h"
#include "property_tests/diagnosis/order.h"

namespace ringlab::verify {
namespace {

/// The sizes that a distance may be made of: those of the array, and those of its sibling, which is
/// v for k, k for v, and the array of keys for q.
struct Sizes {
  std::int64_t rows, channels, other_rows, other_channels;
};
/// The address of a row: the head is the one whose rows are wanted, or that of the query.
struct Address {
  std::int64_t of_heads, of_rows;
  bool by_query_head = false;
};
struct StrideEdit {
  const char *id, *words;
  Address (*address)(const Sizes&);
};

const std::vector<StrideEdit>& stride_edits_of_arrays() {
  static const std::vector<StrideEdit> all = {
      {"rows_one_apart", "row r of {} is read from element r on, not r times the channels",
       [](const Sizes& s) {
         return Address{s.rows * s.channels, 1};
       }},
      {"rows_as_of_the_other", "rows of {} are read as far apart as rows of another width are",
       [](const Sizes& s) {
         return Address{s.rows * s.channels, s.other_channels};
       }},
      {"rows_one_apart", "row r of {} is read from element r on, not r times the channels",
       [](const Sizes& s) {
         return Address{s.rows, 1};
       }},
      {"rows_as_of_the_other", "rows of {} are read as far apart as rows of another width are",
       [](const Sizes& s) {
         return Address{s.rows * s.other_channels, s.other_channels};
       }},
      {"head_0_for_all", "head 0 of {} is read for all heads",
       [](const Sizes& s) {
         return Address{0, s.channels};
       }},
      {"heads_rows_apart", "head h of {} is read from element h times the rows on, channels aside",
       [](const Sizes& s) {
         return Address{s.rows, s.channels};
       }},
      {"heads_channels_apart",
       "head h of {} is read from element h times the channels on, rows aside",
       [](const Sizes& s) {
         return Address{s.channels, s.channels};
       }},
      {"heads_as_of_other_rows",
       "heads of {} are read as far apart as if queries and keys had the number of each other",
       [](const Sizes& s) {
         return Address{s.other_rows * s.channels, s.channels};
       }},
      {"heads_as_of_the_other", "heads of {} are read as far apart as those of another width are",
       [](const Sizes& s) {
         return Address{s.rows * s.other_channels, s.channels};
       }},
      {"heads_without_group", "head h of {} is read for query head h, whatever heads share it",
       [](const Sizes& s) {
         return Address{s.rows * s.channels, s.channels, true};
       }}};
  return all;
}

/// Arrays (heads, rows, channels) that lie by themselves, as the tokens of their rows.
using Arrays = std::vector<std::vector<std::int64_t>>;

enum class StridedInput { queries, keys, values };

/// The rows of x as they are read for each query head, and those that lie outside their array.
struct ReadRows {
  Tensor<double> rows;     ///< (batch, q_heads, tokens, channels)
  Tensor<double> unknown;  ///< (batch, q_heads, tokens, 1): not 0 where a row lies outside
};

ReadRows rows_at(const Tensor<double>& x, const Arrays& arrays, std::int64_t q_heads,
                 std::int64_t other_rows, std::int64_t other_channels, const StrideEdit& edit) {
  const Extents e = x.extents();
  ReadRows read{Tensor<double>({e.batch, q_heads, e.tokens, e.channels}),
                Tensor<double>({e.batch, q_heads, e.tokens, 1})};
  const std::int64_t group = q_heads / e.heads;
  for (const auto& tokens : arrays) {
    const std::int64_t rows = std::ssize(tokens);
    const Address at = edit.address({rows, e.channels, other_rows, other_channels});
    for_each_index({e.batch, q_heads, rows, e.channels}, [&](auto b, auto h, auto row, auto c) {
      const std::int64_t flat = b * q_heads + h, head = at.by_query_head ? flat : flat / group;
      const std::int64_t element = head * at.of_heads + row * at.of_rows + c;
      const std::int64_t there = element / (rows * e.channels);
      const std::int64_t token = tokens[static_cast<std::size_t>(row)];
      if (there >= e.batch * e.heads) {
        read.unknown(b, h, token, 0) = 1;
        return;
      }
      const std::int64_t from = element % (rows * e.channels) / e.channels;
      read.rows(b, h, token, c) = x(there / e.heads, there % e.heads,
                                    tokens[static_cast<std::size_t>(from)], element % e.channels);
    });
  }
  return read;
}

/// An array for each chunk, or one for all tokens, rank after rank.
enum class Extent { chunk, all };
Arrays arrays_of(const Layout& layout, Extent extent) {
  Arrays chunks = Chunks(layout).tokens;
  std::erase_if(chunks, [](const auto& chunk) { return chunk.empty(); });
  if (extent == Extent::chunk) return chunks;
  Arrays one(1);
  for (const auto& chunk : chunks) one[0].insert(one[0].end(), chunk.begin(), chunk.end());
  return one;
}

Prediction predict_reads(const Scene& scene, StridedInput read, Extent extent,
                         const StrideEdit& edit) {
  const Model& right = scene.right;
  const Shape shape = right.shape();
  Trial trial = scene.trial;
  AttentionTensors& data = trial.data;
  const Layout layout = read == StridedInput::queries ? query_layout(right) : key_layout(right);
  const Arrays arrays = arrays_of(layout, extent);
  const auto rows_of = [&](const Tensor<double>& x, std::int64_t other_rows, std::int64_t other) {
    return rows_at(x, arrays, shape.q_heads, other_rows, other, edit);
  };
  const auto as_it_is = [&](const Tensor<double>& x) {
    return mapped(
        Tensor<double>({shape.batch, shape.q_heads, x.extents().tokens, x.extents().channels}),
        [&](double, auto b, auto h, auto t, auto c) {
          return x(b, h / scene.trial.group(), t, c);
        });
  };
  Tensor<double>& edited = read == StridedInput::queries ? data.q
                           : read == StridedInput::keys  ? data.k
                                                         : data.v;
  ReadRows now = rows_of(edited, read == StridedInput::queries ? shape.kv_tokens : shape.q_tokens,
                         read == StridedInput::values ? shape.head_dim : shape.v_dim);
  const Tensor<double> unknown = std::move(now.unknown);
  data.k = as_it_is(data.k);
  data.v = as_it_is(data.v);
  edited = std::move(now.rows);
  trial.problem.shape.kv_heads = shape.q_heads;
  Model model = make_model(std::move(trial), scene.profile);
  for_each_pair(model, [&](auto b, auto h, auto i, auto j) {
    if (unknown(b, h, read == StridedInput::queries ? i : j, 0) == 0) return;
    model.in_acc(b, h, i, j) *= kWild;
    model.in_sum(b, h, i, j) *= kWild;
  });
  return finish(model);
}

}  // namespace

std::vector<Hypothesis> stride_edits() {
  std::vector<Hypothesis> all;
  for (const auto& [read, name] : {std::pair{StridedInput::queries, "q"},
                                   {StridedInput::keys, "k"},
                                   {StridedInput::values, "v"}}) {
    for (const StrideEdit& edit : stride_edits_of_arrays()) {
      std::string words = edit.words;
      words.replace(words.find("{}"), 2, name);
      for (const Extent extent : {Extent::chunk, Extent::all}) {
        if (read == StridedInput::queries && extent == Extent::all)
          continue;  // queries stay on their rank
        all.push_back({{std::string("index.") + name + "_" + edit.id, words},
                       [=, read = read](const Scene& scene) {
                         return predict_reads(scene, read, extent, edit);
                       }});
      }
    }
  }
  return all;
}

}  // namespace ringlab::verify
