// kill_matrix: measures the laws on the mutants and on the correct stages. Exits 1 when a mutant
// survives, a law kills nothing, or something correct is blamed.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "property_tests/mutants/kill_matrix_report.h"
#include "reference/core/error.h"
#include "reference/io/input_file.h"
#include "reference/io/tensor_file.h"

namespace {

using namespace ringlab;
namespace words = boost::program_options;

constexpr std::int64_t kMostBytes = 1 << 24;  // of docs/mutants.md

struct MatrixSettings {
  mutants::MatrixOptions matrix;
  std::string known_file, json_file, markdown_file, summary_file;
  int part = 0, parts = 0;  ///< 0: the whole matrix
  bool quick = false;
};

words::options_description options_of(MatrixSettings& settings) {
  mutants::MatrixOptions& matrix = settings.matrix;
  matrix.threads = static_cast<int>(std::thread::hardware_concurrency());
  const auto flag = [](bool& place) { return words::bool_switch(&place); };
  const auto number = [](int& place) { return words::value(&place)->value_name("N"); };
  const auto file = [](std::string& place) { return words::value(&place)->value_name("FILE"); };
  words::options_description options("kill_matrix [OPTION…]");
  auto add = options.add_options();
  add("help", "this text");
  add("quick", flag(settings.quick), "2000 cases on what is correct instead of 20600");
  add("full", flag(matrix.full), "every law against every mutant, not only until one kills");
  add("cases", number(matrix.correct_cases), "on the correct stages and their legal variants");
  add("threads", number(matrix.threads), "how many to use (default: one per core)");
  add("seed", words::value(&matrix.seed)->value_name("N"), "of the cases (default 1)");
  add("part", number(settings.part), "I: only whether mistakes I, I + parts … are found");
  add("parts", number(settings.parts), "how many parts there are");
  add("known", file(settings.known_file), "begin with the kills in docs/mutants.md, FILE");
  add("json", file(settings.json_file), "write the result there too");
  add("markdown", file(settings.markdown_file), "write the result there too");
  add("summary", file(settings.summary_file), "write the figures that certificates quote");
  return options;
}

[[noreturn]] void refuse(const std::string& expected, const std::string& actual) {
  throw_usage_error({.where = "command line", .expected = expected, .actual = actual});
}

/// False where the help was asked for, which is printed.
bool parse(int count, char** line, MatrixSettings& settings) {
  const words::options_description options = options_of(settings);
  words::variables_map found;
  try {
    words::store(words::command_line_parser(count, line).options(options).positional({}).run(),
                 found);
    words::notify(found);
  } catch (const words::error& error) {
    refuse("options that --help lists", error.what());
  }
  if (found.contains("help")) {
    std::cout << options;
    return false;
  }
  if (settings.quick) settings.matrix.correct_cases = 2000;
  const int least = std::min(settings.matrix.correct_cases, settings.matrix.threads);
  if (least < 1) refuse("numbers, 1 or more", std::to_string(least));
  if (settings.part < 0 || settings.part > settings.parts ||
      (settings.part == 0) != (settings.parts == 0)) {
    refuse("--part from 1 to --parts", std::to_string(settings.part));
  }
  if (!settings.known_file.empty()) {
    const std::vector<std::byte> bytes = io::read_file(settings.known_file, kMostBytes);
    settings.matrix.known =
        mutants::known_kills({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return true;
}

/// Hunts one part of the mutants; returns 1 when any of them survives.
int run_part(const MatrixSettings& settings) {
  int found = 0, all = 0;
  for (const mutants::MutantRecord& mutant :
       mutants::hunt_part(settings.matrix, settings.part, settings.parts)) {
    ++all;
    if (mutant.kill) ++found;
    fmt::print("{:<40} {}\n", mutant.info.id, mutant.kill ? mutant.kill->law : "SURVIVED");
  }
  fmt::print("part {} of {}: {} of {} mistakes found\n", settings.part, settings.parts, found, all);
  return found == all ? 0 : 1;
}

void write_results(const MatrixSettings& settings, const mutants::KillMatrix& matrix) {
  const auto write = [](const std::string& path, const auto& text_of) {
    if (!path.empty()) io::write_file(path, text_of());
  };
  write(settings.json_file, [&] { return mutants::to_json(matrix).dump(2); });
  write(settings.markdown_file, [&] { return mutants::to_markdown(matrix); });
  write(settings.summary_file,
        [&] { return mutants::to_summary(matrix, settings.matrix).dump(2) + "\n"; });
}

int run(int count, char** line) {
  MatrixSettings settings;
  if (!parse(count, line, settings)) return 0;
  // Only these files show cases, which are made simpler for them.
  settings.matrix.shrink = !settings.json_file.empty() || !settings.markdown_file.empty();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) {
    settings.matrix.progress = [](const std::string& phase, int done, int total) {
      fmt::print(stderr, "\r\033[K{}: {} of {}", phase, done, total);
      std::fflush(stderr);
    };
  }
  if (settings.parts > 0) return run_part(settings);
  const mutants::KillMatrix matrix = mutants::measure_kill_matrix(settings.matrix);
  if (terminal) fmt::print(stderr, "\r\033[K");
  fmt::print("{}", mutants::to_text(matrix));
  write_results(settings, matrix);
  return matrix.passed() ? 0 : 1;
}

}  // namespace

int main(int count, char** line) {
  try {
    return run(count, line);
  } catch (const Error& error) {
    fmt::print(stderr, "kill_matrix: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "kill_matrix: {}\n", error.what());
    return 4;
  }
}
