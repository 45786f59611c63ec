#include "tests/property_tests/programs/delayed_mistakes.h"

#include <set>
#include <vector>

#include "optimized/ring/streams/stream_setting.h"
#include "property_tests/programs/stream_check.h"
#include "reference/core/schedule/operation_words.h"

namespace ringlab::ring {
namespace {

constexpr Pass kBothPasses[] = {Pass::forward, Pass::backward};

StreamProgram program_of(const Trial& trial, Pass pass) {
  return stream_program_of(stream_setting(trial.problem, trial.options), pass, CopyBy::receiver,
                           {});
}

/// The stream of operation `number` stands still right before it. All that comes after the delay
/// comes after the operation, so that what does not wait for one does not wait for the other.
StreamProgram held_up_before(const StreamProgram& program, std::size_t number,
                             std::int64_t delay_ns) {
  const StreamOperation& operation = program.operations[number];
  StreamProgram held_up = program;
  held_up.operations.insert(held_up.operations.begin() + static_cast<std::ptrdiff_t>(number),
                            {.action = StreamAction::delay,
                             .rank = operation.rank,
                             .stream = operation.stream,
                             .step = operation.step,
                             .owner = operation.owner,
                             .delay_ns = delay_ns});
  return held_up;
}

/// In place of the program of the same pass.
StreamEdit in_its_place(const StreamProgram& program) {
  return [&program](const StreamProgram& right) {
    return right.pass == program.pass ? program : right;
  };
}

/// What something must come after and does not.
std::set<std::size_t> not_waited_for(const StreamProgram& program) {
  std::set<std::size_t> numbers;
  for (const programs::Race& race : races_of(program)) numbers.insert(race.earlier);
  return numbers;
}

/// Every way in which it is run: with each of what is not waited for held up, and as it is.
std::vector<StreamProgram> ways_to_show(const StreamProgram& planted, std::int64_t delay_ns) {
  std::vector<StreamProgram> ways;
  for (const std::size_t number : not_waited_for(planted)) {
    ways.push_back(held_up_before(planted, number, delay_ns));
  }
  ways.push_back(planted);
  return ways;
}

/// Counts the runs that it takes.
bool is_shown(const StreamProgram& planted, const RunEdited& run, const Bits& due,
              std::int64_t delay_ns, int& runs) {
  for (const std::int64_t longer : {delay_ns, 10 * delay_ns}) {
    for (const StreamProgram& way : ways_to_show(planted, longer)) {
      ++runs;
      if (run(in_its_place(way)) != due) return true;
    }
  }
  return false;
}

std::string pass_text(Pass pass) { return std::string(pass_name(pass)); }

}  // namespace

Trial trial_of_delays() {
  verify::Case c;
  c.shape = {.batch = 1,
             .q_heads = 2,
             .kv_heads = 1,
             .q_tokens = 40,
             .kv_tokens = 40,
             .head_dim = 16,
             .v_dim = 24};
  c.dtype = DType::bf16;
  c.ranks = 5;
  return make_trial(verify::fitted(c));
}

std::string delays_that_show(const Trial& trial, const RunEdited& run, std::int64_t delay_ns) {
  const Bits due = run({});
  std::string found;
  for (const Pass pass : kBothPasses) {
    const StreamProgram program = program_of(trial, pass);
    for (std::size_t number = 0; number < program.operations.size(); ++number) {
      if (!touches_slots(program.operations[number])) continue;
      const StreamProgram held_up = held_up_before(program, number, delay_ns);
      if (run(in_its_place(held_up)) == due) continue;
      found += pass_text(pass) + ", " + place(program.operations[number]) + "\n";
    }
  }
  return found;
}

ShownMistake show(const StreamMistake& mistake, const Trial& trial, const RunEdited& run,
                  const Bits& due, std::int64_t delay_ns) {
  ShownMistake shown;
  for (const Pass pass : kBothPasses) {
    int number = 0;
    for (const StreamProgram& planted : mistake.plant(program_of(trial, pass))) {
      ++shown.places, ++number;
      if (is_shown(planted, run, due, delay_ns, shown.runs)) continue;
      shown.unseen +=
          mistake.name + ", " + pass_text(pass) + ", place " + std::to_string(number) + "\n";
    }
  }
  return shown;
}

}  // namespace ringlab::ring
