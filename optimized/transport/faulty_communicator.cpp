#include "optimized/transport/faulty_communicator.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <list>
#include <map>
#include <new>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "reference/core/error.h"

namespace ringlab {
namespace {

constexpr std::array<std::pair<std::string_view, FaultPhase>, 3> kPhases = {{
    {"before_send", FaultPhase::before_send},
    {"after_receive", FaultPhase::after_receive},
    {"in_compute", FaultPhase::in_compute},
}};
constexpr std::array<std::pair<std::string_view, FaultKind>, 9> kKinds = {{
    {"kill", FaultKind::kill},
    {"term", FaultKind::term},
    {"stop", FaultKind::stop},
    {"delay", FaultKind::delay},
    {"fail", FaultKind::fail},
    {"memory", FaultKind::memory},
    {"flip", FaultKind::flip},
    {"half", FaultKind::half},
    {"replay", FaultKind::replay},
}};

[[noreturn]] void refuse(const std::string& text) {
  throw_usage_error({.where = "RINGLAB_FAULT",
                     .expected = "RANK:COUNT:PHASE:KIND[=AMOUNT], as 2:3:before_send:flip=17",
                     .actual = text,
                     .hint = "docs/reliability.md lists phases and kinds"});
}

template <class Number>
Number number(std::string_view word, const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) refuse(text);
  return value;
}

template <class Table>
auto choice(const Table& table, std::string_view word, const std::string& text) {
  for (const auto& [name, value] : table) {
    if (name == word) return value;
  }
  refuse(text);
}

bool changes_message(FaultKind kind) {
  return kind == FaultKind::flip || kind == FaultKind::half || kind == FaultKind::replay;
}

// Real time, also where the ranks' own is simulated.
void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Stops this process. Somebody else has to wake it: a child that waits, and does not outlive it.
void stop_for(double seconds) {
  const pid_t self = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    // By the kernel: when the rank is killed while it is stopped, no sleeper stays behind.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::usleep(static_cast<useconds_t>(seconds * 1e6));
    ::kill(self, SIGCONT);
    ::_exit(0);
  }
  std::raise(SIGSTOP);
  if (child > 0) ::waitpid(child, nullptr, 0);
}

class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(Communicator& network, const FaultPlan& plan)
      : network_(network), plan_(plan) {}

  int rank() const override { return network_.rank(); }
  int ranks() const override { return network_.ranks(); }
  const Traffic& traffic() const override { return network_.traffic(); }

  Request post_send(int to, int tag, std::span<const std::byte> bytes) override {
    const bool now = is_due(FaultPhase::before_send);
    // Sends may read their bytes later: `kept_` holds the changed ones until the end.
    if (now && changes_message(plan_.kind)) return network_.post_send(to, tag, changed(bytes));
    if (now) strike();
    // Only where it may be needed: it copies every message.
    if (plan_.kind == FaultKind::replay) previous_[bytes.size()] = {bytes.begin(), bytes.end()};
    return network_.post_send(to, tag, bytes);
  }
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override {
    // Posted first: a fault in computing strikes with a receive under way, as in a ring.
    const Request request = network_.post_receive(from, tag, buffer);
    receives_.insert(request.id);
    if (is_due(FaultPhase::in_compute)) strike();
    return request;
  }
  void wait(Request request) override {
    network_.wait(request);
    if (receives_.erase(request.id) > 0 && is_due(FaultPhase::after_receive)) strike();
  }
  void let_go(const char* why) noexcept override { network_.let_go(why); }

 private:
  bool is_due(FaultPhase phase) {
    // Counts events of the wanted phase and rank only, and strikes once: the count goes on rising.
    return phase == plan_.phase && rank() == plan_.rank && events_++ == plan_.count;
  }

  void strike() const {
    switch (plan_.kind) {
      case FaultKind::kill:
        std::raise(SIGKILL);
        return;
      case FaultKind::term:
        std::raise(SIGTERM);
        return;
      case FaultKind::stop:
        return stop_for(plan_.amount);
      case FaultKind::delay:
        return sleep_for(plan_.amount);
      case FaultKind::memory:
        throw std::bad_alloc();
      // The planned error says nothing of what was expected: it stands for a failure of any kind.
      default:
        throw_environment_error({.where = "rank " + std::to_string(rank()),
                                 .expected = "",
                                 .actual = "a planned fault"});
    }
  }

  std::span<const std::byte> changed(std::span<const std::byte> bytes) {
    std::vector<std::byte>& copy = kept_.emplace_back(bytes.begin(), bytes.end());
    // A transport must refuse it: a message that is shorter than its receive is a broken protocol.
    if (plan_.kind == FaultKind::half) copy.resize(copy.size() / 2);
    // Replays the last message of the same length; without one the message goes as it is.
    if (plan_.kind == FaultKind::replay && previous_.contains(copy.size())) {
      copy = previous_[copy.size()];
    }
    const std::int64_t bits = std::ssize(copy) * 8;
    if (plan_.kind == FaultKind::flip && bits > 0) {
      // Bits are counted from the end where the number is negative.
      const auto wanted = static_cast<std::int64_t>(plan_.amount) % bits;
      const std::int64_t bit = wanted < 0 ? wanted + bits : wanted;
      copy[static_cast<std::size_t>(bit / 8)] ^= std::byte{1} << (bit % 8);
    }
    return copy;
  }

  Communicator& network_;
  const FaultPlan plan_;
  int events_ = 0;
  std::set<std::int64_t> receives_;         // posted and not waited for
  std::list<std::vector<std::byte>> kept_;  // changed messages live as long as their sends may
  std::map<std::size_t, std::vector<std::byte>> previous_;  // the latest message of each length
};

}  // namespace

FaultPlan parse_fault_plan(const std::string& text) {
  std::vector<std::string_view> words;
  // The last word has no colon behind it.
  for (std::string_view rest = text;;) {
    const std::size_t colon = rest.find(':');
    words.push_back(rest.substr(0, colon));
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (words.size() != 4) refuse(text);
  const std::size_t equals = words[3].find('=');
  FaultPlan plan{.rank = number<int>(words[0], text),
                 .count = number<int>(words[1], text),
                 .phase = choice(kPhases, words[2], text),
                 .kind = choice(kKinds, words[3].substr(0, equals), text)};
  if (equals != std::string_view::npos) {
    plan.amount = number<double>(words[3].substr(equals + 1), text);
  }
  const bool whole = plan.rank >= 0 && plan.count >= 0 && plan.amount > -1e9 && plan.amount < 1e9;
  // A change of bytes makes sense where bytes are sent, and nowhere else.
  const bool fits = !changes_message(plan.kind) || plan.phase == FaultPhase::before_send;
  const bool timed = plan.kind == FaultKind::stop || plan.kind == FaultKind::delay;
  if (!whole || !fits || (timed && plan.amount < 0)) refuse(text);
  return plan;
}

std::optional<FaultPlan> fault_plan_of_environment() {
  const char* text = std::getenv("RINGLAB_FAULT");
  if (!text || !*text) return {};
  return parse_fault_plan(text);
}

std::unique_ptr<Communicator> make_faulty(Communicator& network, const FaultPlan& plan) {
  return std::make_unique<FaultyCommunicator>(network, plan);
}

}  // namespace ringlab
