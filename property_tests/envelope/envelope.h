// Sizes, masks, strides and more of the problems that reached a subject.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "property_tests/joint/meetings.h"
#include "property_tests/subject.h"

namespace ringlab::verify {

/// The least and the greatest of a size; nothing was seen while least > most.
struct SizeRange {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  void add(const SizeRange& other);
  bool empty() const { return least > most; }
};

/// The problems of one kind of call.
struct PassEnvelope {
  std::int64_t calls = 0;
  /// Sizes: "batch", "q_heads", "kv_heads", "group" (query heads per K/V head), "q_tokens",
  /// "kv_tokens", "head_dim", "v_dim", "ranks", "threads" (of a rank), "span": elements from the
  /// first to the last of a tensor.
  std::map<std::string, SizeRange> sizes;
  /// Calls by kind and word: "mask" → "causal+window" → 12; "dtype", "scale", "modifiers", "rows",
  /// "lengths" (of queries and keys), "widths" (of head_dim and v_dim), "strides of q" … "of dout".
  std::map<std::string, std::map<std::string, std::int64_t>> kinds;

  /// The pairs of classes that these calls had.
  Meetings meetings = {};

  void add(const PassEnvelope& other);
  bool has(const std::string& kind, const std::string& word) const;
  /// The greatest of a size; 0 where there was none.
  std::int64_t most(const std::string& size) const;
};

struct Envelope {
  PassEnvelope forward;    ///< calls that asked for o and lse
  PassEnvelope gradients;  ///< calls that asked for gradients, too
  void add(const Envelope& other);
};

/// Takes note of the problems that a subject is asked, as far as it reads them: strides are dense
/// where inputs are made so, a matrix of bits is the plainer mask that stands for it.
class Recorder {
 public:
  explicit Recorder(const Subject& subject);
  /// The subject, with its calls recorded.
  const Subject& subject() const { return subject_; }
  /// The envelope of the calls since take() was last called.
  Envelope take();

 private:
  struct Notes;
  std::shared_ptr<Notes> notes_;
  Subject subject_;
};

/// Claims of a subject with these abilities that no call of the envelope had: "mask prefix",
/// "gradients: strides of dout", "head_dim 34 … 128". For an empty envelope all its claims.
std::vector<std::string> claimed_not_tried(const Capabilities& can, const Envelope& tried);

}  // namespace ringlab::verify
