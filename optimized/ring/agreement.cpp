#include "optimized/ring/agreement.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <utility>

#include "optimized/ring/host/message.h"
#include "optimized/transport/tell_all.h"
#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/core/options/option_table.h"

namespace ringlab::ring {
namespace {

constexpr int kTextTag = kAgreementTags - 1;  // the rounds take one tag each, from 0
// To be raised with every change that older builds would misread: headers, tags, order of messages.
constexpr std::uint32_t kMessageVersion = 3;

/// A message of all_say(): the smallest and the largest hash that its sender knows.
struct Opinion {
  std::uint32_t version = kMessageVersion;
  std::uint32_t sum = 0;  ///< checksum of all the rest
  std::uint64_t least = 0, most = 0;
};
static_assert(sizeof(Opinion) == kAgreementBytes);

template <class Number>
std::string printed(const char* format, Number value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}
// 17 digits: two doubles have the same text only where they have the same bits (NaNs apart).
std::string exact(double value) { return printed("%.17g", value); }
std::uint64_t hash_of(const std::string& text) { return checksum(std::as_bytes(std::span(text))); }
std::uint32_t sum_of(Opinion opinion) {
  opinion.sum = 0;
  return static_cast<std::uint32_t>(checksum(std::as_bytes(std::span(&opinion, 1))));
}

/// The name of the layout, which with the numbers of tokens and ranks defines it, or the tokens of
/// every rank.
std::string layout_text(const RunOptions& options, const std::optional<Layout>& given) {
  if (!given) return word_of(run_option("layout"), options);
  std::string text;
  for (int rank = 0; rank < given->ranks(); ++rank) {
    text += "rank " + std::to_string(rank) + ":";
    for (const PositionRun& run : given->positions(rank).runs()) {
      text += " " + std::to_string(run.first) + "+" + std::to_string(run.count) + "*" +
              std::to_string(run.stride);
    }
    text += "; ";
  }
  return text;
}

// Checksums of the bits: the text of a mask names the file of a matrix, whose contents may differ.
std::string bits_text(const Mask& mask) {
  std::string text;
  for (const MaskTerm& term : mask.terms()) {
    const BitMask* bits = std::get_if<BitMask>(&term);
    if (bits) text += printed("%016" PRIx64 " ", checksum(std::as_bytes(std::span(*bits->bits))));
  }
  return text;
}

/// Adds the values of all options that set a field of RunOptions, except options that may differ
/// because they change no bit of the result and no message.
void add_options(const RunOptions& options, Facts& facts) {
  for (const RunOption& option : run_options()) {
    // Layouts have facts of their own, which also cover those that are given by their tokens.
    if (option.word == "threads" || option.word == "timeout" || option.word == "layout") continue;
    // Formats by the type of the field that the option sets: a new option needs no line here.
    std::visit(
        [&]<class Field>(const Field& field) {
          if constexpr (std::is_same_v<Field, double RunOptions::*>) {
            facts.push_back({std::string(option.word), exact(options.*field)});
          } else if constexpr (std::is_same_v<Field, bool RunOptions::*>) {
            facts.push_back({std::string(option.word), options.*field ? "on" : "off"});
          } else if constexpr (std::is_member_object_pointer_v<Field>) {
            facts.push_back({std::string(option.word), std::to_string(options.*field)});
          } else if constexpr (!std::is_same_v<Field, std::monostate>) {
            facts.push_back({std::string(option.word), word_of(option, options)});
          }
        },
        option.field);
  }
}

// Names and values, each ended by a zero.
std::string packed(const Facts& facts) {
  std::string text;
  for (const Fact& fact : facts) text += fact.name + '\0' + fact.value + '\0';
  return text;
}
Facts unpacked(const std::string& text) {
  // Words end with a zero each, so an empty value is a word, too.
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size(); begin += words.back().size() + 1) {
    words.emplace_back(text, begin, text.find('\0', begin) - begin);
  }
  Facts facts;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) facts.push_back({words[i], words[i + 1]});
  return facts;
}

/// A value and the ranks that have it.
struct Group {
  std::string value;
  std::vector<std::size_t> ranks;
};

std::vector<Group> groups_of(const std::string& name, const std::vector<Facts>& of_ranks) {
  std::vector<Group> groups;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const auto fact = std::ranges::find(of_ranks[rank], name, &Fact::name);
    const std::string value = fact == of_ranks[rank].end() ? "not given" : fact->value;
    // A rank without the fact has the value "not given", and so is in another group.
    auto group = std::ranges::find(groups, value, &Group::value);
    if (group == groups.end()) group = groups.insert(group, {value, {}});
    group->ranks.push_back(rank);
  }
  return groups;
}

/// A value as errors show it: a long one is cut, with its hash, as it may differ after the cut.
std::string shown(const std::string& value) {
  constexpr std::size_t kMost = 80, kStart = 50;
  if (value.size() <= kMost) return value;
  return value.substr(0, kStart) + "… (" + printed("%016" PRIx64, hash_of(value)) + ")";
}

std::string ranks_text(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kMost = 6;
  std::string text = ranks.size() > 1 ? "ranks " : "rank ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  }
  return ranks.size() > kMost ? text + " and " + std::to_string(ranks.size() - kMost) + " more"
                              : text;
}

/// "mask is causal on rank 1 and full on ranks 0, 2".
std::string sentence(const std::string& name, const std::vector<Group>& groups) {
  std::string text = name + " is ";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool last = i + 1 == groups.size();
    text += (i == 0 ? ""
             : last ? " and "
                    : ", ") +
            shown(groups[i].value) + " on " + ranks_text(groups[i].ranks);
  }
  return text;
}

struct Disagreement {
  int suspect = -1;
  std::string text = {};
};

/// The rank that stands against all others, if there is one. Two ranks that differ blame nobody,
/// because either may be wrong; nor do three different values.
int odd_one_out(const std::vector<Group>& groups, std::size_t ranks) {
  const auto alone =
      std::ranges::find_if(groups, [](const Group& group) { return group.ranks.size() == 1; });
  const bool is_clear = ranks > 2 && groups.size() == 2 && alone != groups.end();
  return is_clear ? static_cast<int>(alone->ranks.front()) : -1;
}

/// All facts that differ. The suspect is the one rank that is alone in all of them, or nobody.
Disagreement disagreement_of(const std::vector<Facts>& of_ranks) {
  constexpr int kMostNamed = 6;
  Disagreement found;
  int differing = 0;
  std::vector<std::string> seen;
  // Goes over all ranks, as one may have facts that others lack (with an older version, say).
  for (const Facts& facts : of_ranks) {
    for (const auto& [name, value] : facts) {
      if (std::ranges::find(seen, name) != seen.end()) continue;
      seen.push_back(name);
      const std::vector<Group> groups = groups_of(name, of_ranks);
      if (groups.size() < 2) continue;
      const int odd = odd_one_out(groups, of_ranks.size());
      found.suspect = ++differing == 1 || odd == found.suspect ? odd : -1;
      if (differing > kMostNamed) continue;
      found.text += (differing > 1 ? "; " : "") + sentence(name, groups);
    }
  }
  const int left = differing - kMostNamed;
  if (left > 0) found.text += "; and " + std::to_string(left) + " more";
  return found;
}

[[noreturn]] void throw_disagreement(const std::string& mine, Communicator& network) {
  // Every rank comes here: all_say() answers alike everywhere, so gathering is collective.
  std::vector<Facts> of_ranks;
  for (const std::string& text : gather_texts(mine, kTextTag, network)) {
    of_ranks.push_back(unpacked(text));
  }
  const Disagreement found = disagreement_of(of_ranks);
  // All ranks take rank 0's text, so that they print the same sentence and blame the same rank.
  const std::string told =
      text_of_first(std::to_string(found.suspect) + " " + found.text, kTextTag, network);
  // No rank ends before all have the text: a rank that still waits would blame the rank that ended.
  try {
    all_say(told, network);
  } catch (const Error&) {  // the disagreement is thrown below
  }
  const std::size_t space = told.find(' ');
  throw RankError({.rank = network.rank(),
                   .suspect = std::stoi(told.substr(0, space)),
                   .operation = "agree with all ranks on what is computed and written",
                   .reason = "that " + told.substr(space + 1)});
}

}  // namespace

Facts facts_of(const Problem& problem, const RunOptions& options, Pass last_pass) {
  const Shape& s = problem.shape;
  Facts facts = {{"version of the messages", std::to_string(kMessageVersion)},
                 {"q", text(s.q())},
                 {"k", text(s.k())},
                 {"v", text(s.v())},
                 {"dtype", std::string(dtype_info(problem.dtype).name)},
                 {"scale", exact(problem.scale)},
                 {"mask", problem.mask.text()},
                 {"bits of the mask", bits_text(problem.mask)},
                 {"modifiers", modifiers_text(problem.modifiers)},
                 {"layout of queries", layout_text(options, options.q_layout)},
                 {"layout of keys", layout_text(options, options.kv_layout)},
                 {"gradients", last_pass == Pass::backward ? "wanted" : "not wanted"}};
  add_options(options, facts);
  return facts;
}

int agreement_messages(int ranks) {
  int rounds = 0;
  for (int distance = 1; distance < ranks; distance *= 2) ++rounds;
  return rounds;
}

bool all_say(const std::string& text, Communicator& network) {
  const int rank = network.rank(), ranks = network.ranks();
  Opinion opinion{.least = hash_of(text), .most = hash_of(text)};
  // Dissemination: after the round of distance d a rank has heard of the 2 d ranks before it. Least
  // and most are idempotent, so hearing of one twice does no harm where P is no power of two.
  int tag = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++tag) {
    // A copy: `opinion` changes below while the send of this round may
    // still read its buffer.
    Opinion mine = opinion;
    mine.sum = sum_of(mine);
    Opinion heard;
    const int from = (rank + ranks - distance) % ranks;
    let_go_on_error(network, [&] {
      const Request in = network.post_receive(from, tag, writable_bytes_of(&heard, 1));
      const Request out = network.post_send((rank + distance) % ranks, tag, bytes_of(&mine, 1));
      network.wait(in);
      network.wait(out);
    });
    if (heard.sum != sum_of(heard)) {
      throw RankError({.rank = rank,
                       .suspect = from,
                       .operation = "hear from rank " + std::to_string(from) + " what it computes",
                       .reason = "a damaged message (its checksum does not match)"});
    }
    // A peer of another version widens the interval to all hashes, which spreads as a hash does.
    const bool speaks_alike = heard.version == kMessageVersion;
    opinion.least = speaks_alike ? std::min(opinion.least, heard.least) : 0;
    opinion.most = speaks_alike ? std::max(opinion.most, heard.most) : ~std::uint64_t{0};
  }
  return opinion.least == opinion.most;
}

std::uint64_t agree(const Facts& facts, Communicator& network) {
  const std::string mine = packed(facts);
  if (!all_say(mine, network)) throw_disagreement(mine, network);
  return hash_of(mine);
}

}  // namespace ringlab::ring
