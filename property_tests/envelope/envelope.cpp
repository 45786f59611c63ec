#include "property_tests/envelope/envelope.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "property_tests/case.h"
#include "property_tests/foreign_subject.h"

namespace ringlab::verify {
namespace {

std::string joined(const std::vector<std::string>& words, const char* none) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "+") + word;
  return text.empty() ? none : text;
}

/// The kinds of the terms, each once: "causal+window".
std::string mask_kinds_of(const Mask& mask) {
  std::set<std::pair<std::size_t, std::string>> kinds;
  for (const MaskTerm& term : mask.terms()) {
    kinds.emplace(term.index(), term.index() + 1 == std::variant_size_v<MaskTerm>
                                    ? "matrix"
                                    : std::string(mask_word(term)));
  }
  std::vector<std::string> words;
  for (const auto& [index, word] : kinds) words.push_back(word);
  return joined(words, "full");
}

std::string modifiers_of(const Modifiers& modifiers) {
  std::vector<std::string> words;
  for (const ModifierKind kind : kModifierKinds) {
    if (modifiers.has(kind)) words.emplace_back(modifier_word(kind));
  }
  return joined(words, "none");
}

std::string scale_of(const Problem& problem) {
  if (problem.scale == 0) return "0";
  if (problem.scale < 0) return "negative";
  return problem.scale == default_scale(problem.shape.head_dim) ? "1/sqrt(head_dim)" : "other";
}

struct Step {
  std::int64_t extent, stride;
};

std::vector<Step> steps_of(const TensorView<const double>& view) {
  const Extents& e = view.extents;
  const Strides& s = view.strides;
  std::vector<Step> steps;
  for (const Step step : {Step{e.batch, s.batch}, Step{e.heads, s.head}, Step{e.tokens, s.token},
                          Step{e.channels, s.channel}}) {
    if (step.extent > 1) steps.push_back(step);
  }
  return steps;
}

/// The memory order in words: "dense", "another order", "with gaps", "repeated" or "backwards".
std::string strides_of(const TensorView<const double>& view) {
  std::vector<Step> steps = steps_of(view);
  if (view.extents.size() == 0) return "dense";
  const auto any = [&](auto is) { return std::any_of(steps.begin(), steps.end(), is); };
  if (any([](const Step& step) { return step.stride == 0; })) return "repeated";
  if (any([](const Step& step) { return step.stride < 0; })) return "backwards";
  const auto outer_first = [](const Step& a, const Step& b) { return a.stride > b.stride; };
  const bool is_in_order = std::is_sorted(steps.begin(), steps.end(), outer_first);
  std::sort(steps.begin(), steps.end(), outer_first);
  std::int64_t compact = 1;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->stride != compact) return "with gaps";
    compact *= step->extent;
  }
  return is_in_order ? "dense" : "another order";
}

std::int64_t span_of(const TensorView<const double>& view) {
  std::int64_t span = view.extents.size() == 0 ? 0 : 1;
  for (const Step& step : steps_of(view)) span += (step.extent - 1) * std::abs(step.stride);
  return span;
}

/// One call, as the subject reads it.
PassEnvelope envelope_of(const Capabilities& can, const AttentionInput& input,
                         const RunOptions& options) {
  PassEnvelope one{.calls = 1, .sizes = {}, .kinds = {}};
  AttentionInput read = input;
  read.problem = as_read(can, input.problem);
  one.meetings.add(classes_of_call(can, read, options));
  const Problem& problem = read.problem;
  const Shape& s = problem.shape;
  const auto size = [&](const char* name, std::int64_t value) {
    one.sizes[name].add({value, value});
  };
  size("batch", s.batch);
  size("q_heads", s.q_heads);
  size("kv_heads", s.kv_heads);
  size("group", s.q_heads / std::max<std::int64_t>(1, s.kv_heads));
  size("q_tokens", s.q_tokens);
  size("kv_tokens", s.kv_tokens);
  size("head_dim", s.head_dim);
  size("v_dim", s.v_dim);
  size("ranks", options.ranks);
  size("threads", can.has(Ability::threads) ? options.threads : 1);
  one.kinds["mask"][mask_kinds_of(problem.mask)] = 1;
  one.kinds["dtype"][std::string(dtype_info(problem.dtype).name)] = 1;
  one.kinds["scale"][scale_of(problem)] = 1;
  one.kinds["modifiers"][modifiers_of(problem.modifiers)] = 1;
  one.kinds["lengths"][s.q_tokens == s.kv_tokens ? "equal" : "different"] = 1;
  one.kinds["widths"][s.head_dim == s.v_dim ? "equal" : "different"] = 1;
  one.kinds["rows"][has_an_empty_row(problem) ? "some see nothing" : "all see a key"] = 1;
  const auto tensor = [&](const char* name, const TensorView<const double>& view) {
    one.kinds[std::string("strides of ") + name]
             [can.has(Ability::strided_inputs) ? strides_of(view) : "dense"] = 1;
    size("span", can.has(Ability::strided_inputs) ? span_of(view) : view.extents.size());
  };
  tensor("q", input.q);
  tensor("k", input.k);
  tensor("v", input.v);
  if (input.dout) tensor("dout", *input.dout);
  return one;
}

}  // namespace

void SizeRange::add(const SizeRange& other) {
  least = std::min(least, other.least);
  most = std::max(most, other.most);
}

void PassEnvelope::add(const PassEnvelope& other) {
  calls += other.calls;
  for (const auto& [name, range] : other.sizes) sizes[name].add(range);
  meetings.add(other.meetings);
  for (const auto& [kind, words] : other.kinds) {
    for (const auto& [word, count] : words) kinds[kind][word] += count;
  }
}

bool PassEnvelope::has(const std::string& kind, const std::string& word) const {
  const auto words = kinds.find(kind);
  return words != kinds.end() && words->second.count(word) != 0;
}

std::int64_t PassEnvelope::most(const std::string& size) const {
  const auto found = sizes.find(size);
  return found == sizes.end() ? 0 : found->second.most;
}

void Envelope::add(const Envelope& other) {
  forward.add(other.forward);
  gradients.add(other.gradients);
}

/// Notes under a lock, for laws may call from several threads.
struct Recorder::Notes {
  std::mutex mutex;
  Envelope seen;
};

Recorder::Recorder(const Subject& subject) : notes_(std::make_shared<Notes>()), subject_(subject) {
  subject_.run = [notes = notes_, run = subject.run, can = subject.can](const AttentionInput& input,
                                                                        const RunOptions& options) {
    RunResult result = run(input, options);
    const PassEnvelope one = envelope_of(can, input, options);
    const std::lock_guard lock(notes->mutex);
    (input.dout ? notes->seen.gradients : notes->seen.forward).add(one);
    return result;
  };
}

Envelope Recorder::take() {
  const std::lock_guard lock(notes_->mutex);
  return std::exchange(notes_->seen, {});
}

}  // namespace ringlab::verify
