#include "reference/attention/fast_rows.h"

#include <algorithm>

namespace ringlab {
namespace {

/// Finds the ends of the run of keys that one query after the other sees. What the query before
/// had, or one key later, is tried first.
class RunFinder {
 public:
  RunFinder(const Visibility& visible, std::int64_t offset, std::int64_t kv_tokens)
      : visible_(&visible), offset_(offset), kv_tokens_(kv_tokens) {}

  KeyInterval find(std::int64_t query) {
    // Without holes the visible keys are one run, and the key at the query's own place, counted
    // from the ends of both sequences, is in it if any is.
    const std::int64_t inside = std::max<std::int64_t>(query + offset_, 0);
    if (inside >= kv_tokens_ || !(*visible_)(query, inside)) return {};
    last_ = {find_begin(query, inside), find_end(query, inside)};
    return last_;
  }

 private:
  bool is_begin(std::int64_t query, std::int64_t key) const {
    return (*visible_)(query, key) && (key == 0 || !(*visible_)(query, key - 1));
  }
  bool is_end(std::int64_t query, std::int64_t key) const {
    return (*visible_)(query, key - 1) && (key == kv_tokens_ || !(*visible_)(query, key));
  }
  std::int64_t find_begin(std::int64_t query, std::int64_t inside) const {
    // Under most masks the run begins where the last query's did, or one later: two questions.
    for (const std::int64_t guess : {last_.begin, last_.begin + 1}) {
      if (guess <= inside && is_begin(query, guess)) return guess;
    }
    // Bisects: key `hidden` is not seen, key `seen` is, and the run begins between them.
    std::int64_t hidden = -1, seen = inside;
    while (seen - hidden > 1) {
      const std::int64_t middle = hidden + (seen - hidden) / 2;
      ((*visible_)(query, middle) ? seen : hidden) = middle;
    }
    return seen;
  }
  std::int64_t find_end(std::int64_t query, std::int64_t inside) const {
    for (const std::int64_t guess : {last_.end, last_.end + 1}) {
      if (guess > inside && guess <= kv_tokens_ && is_end(query, guess)) return guess;
    }
    std::int64_t seen = inside, hidden = kv_tokens_;
    while (hidden - seen > 1) {
      const std::int64_t middle = seen + (hidden - seen) / 2;
      ((*visible_)(query, middle) ? seen : hidden) = middle;
    }
    return hidden;
  }

  const Visibility* visible_;
  std::int64_t offset_, kv_tokens_;
  KeyInterval last_ = {};
};

}  // namespace

RowVisibility::RowVisibility(const Mask& mask, const std::vector<std::int64_t>& rows,
                             std::int64_t q_tokens, std::int64_t kv_tokens)
    : rows_(rows),
      kv_tokens_(kv_tokens),
      visible_(mask, q_tokens, kv_tokens),
      has_holes_(std::any_of(mask.terms().begin(), mask.terms().end(), may_have_holes)),
      runs_(rows.size()),
      seen_(static_cast<std::size_t>(kv_tokens)) {
  if (has_holes_) {
    scan_all_pairs();
  } else {
    // Finds the one run of keys that each row sees; with holes every pair is asked.
    find_runs(q_tokens);
    note_seen();
  }
}

void RowVisibility::find_runs(std::int64_t q_tokens) {
  RunFinder finder(visible_, kv_tokens_ - q_tokens, kv_tokens_);
  for (std::size_t slot = 0; slot < rows_.size(); ++slot) runs_[slot] = finder.find(rows_[slot]);
}

void RowVisibility::scan_all_pairs() {
  for (std::size_t slot = 0; slot < rows_.size(); ++slot) {
    KeyInterval& run = runs_[slot];
    for (std::int64_t key = 0; key < kv_tokens_; ++key) {
      if (!visible_(rows_[slot], key)) continue;
      if (run.size() == 0) run.begin = key;
      run.end = key + 1;
      seen_[static_cast<std::size_t>(key)] = 1;
    }
  }
}

// A difference array: who begins and who ends at a key, added up from the left.
void RowVisibility::note_seen() {
  std::vector<std::int64_t> change(seen_.size() + 1);  // runs that begin here less runs that end
  for (const KeyInterval& run : runs_) {
    ++change[static_cast<std::size_t>(run.begin)];
    --change[static_cast<std::size_t>(run.end)];
  }
  std::int64_t open = 0;
  for (std::size_t key = 0; key < seen_.size(); ++key) {
    open += change[key];
    seen_[key] = open > 0;
  }
}

}  // namespace ringlab
