// kill_matrix: measures the laws on the mutants and on the correct stages. Exits 1 when a mutant
// survives, a law kills nothing, or something correct is blamed.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "property_tests/mutants/kill_matrix_report.h"
#include "reference/core/error.h"

namespace {

using namespace ringlab;

constexpr const char* kHelp =
    "kill_matrix [--quick] [--full] [--cases N] [--threads N] [--seed N] [--part I --parts N]\n"
    "            [--known FILE] [--json FILE] [--markdown FILE] [--summary FILE]\n"
    "  --quick     2000 cases on what is correct instead of 20600\n"
    "  --full      every law against every mutant, not only until one kills\n"
    "  --cases N   cases on the correct stages and their legal variants\n"
    "  --threads N how many to use (default: one per core)\n"
    "  --seed N    of the cases (default 1)\n"
    "  --part I --parts N  only whether mistakes I, I + N, I + 2 N … are found, of 1, 2, 3 …\n"
    "  --known FILE  begin with what killed when FILE, docs/mutants.md, was written\n"
    "  --json FILE, --markdown FILE  write the result there too\n"
    "  --summary FILE  write the figures that certificates quote (docs/mutants.json)\n";

struct MatrixSettings {
  mutants::MatrixOptions matrix;
  std::string json_file, markdown_file, summary_file;
  int part = 0, parts = 0;  ///< 0: the whole matrix
  bool help = false;
};

template <class Number>
Number parse_number(std::string_view option, std::string_view text, Number least) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < least) {
    throw_usage_error({.where = std::string(option),
                       .expected = fmt::format("a number, {} or more", least),
                       .actual = "\"" + std::string(text) + "\""});
  }
  return value;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) {
    throw_input_error({.where = path, .expected = "a file to read", .actual = "a failure"});
  }
  return text;
}

MatrixSettings parse(int count, char** words) {
  MatrixSettings settings;
  settings.matrix.threads = static_cast<int>(std::thread::hardware_concurrency());
  for (int i = 1; i < count; ++i) {
    const std::string_view option = words[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 < count) return words[++i];
      throw_usage_error({.where = std::string(option), .expected = "a value", .actual = "nothing"});
    };
    if (option == "--help")
      settings.help = true;
    else if (option == "--quick")
      settings.matrix.correct_cases = 2000;
    else if (option == "--full")
      settings.matrix.full = true;
    else if (option == "--cases")
      settings.matrix.correct_cases = parse_number(option, value(), 1);
    else if (option == "--threads")
      settings.matrix.threads = parse_number(option, value(), 1);
    else if (option == "--seed")
      settings.matrix.seed = parse_number<std::uint64_t>(option, value(), 0);
    else if (option == "--part")
      settings.part = parse_number(option, value(), 1);
    else if (option == "--parts")
      settings.parts = parse_number(option, value(), 1);
    else if (option == "--known")
      settings.matrix.known = mutants::known_kills(read_file(std::string(value())));
    else if (option == "--json")
      settings.json_file = value();
    else if (option == "--markdown")
      settings.markdown_file = value();
    else if (option == "--summary")
      settings.summary_file = value();
    else
      throw_usage_error({.where = "option",
                         .expected = "one of those that --help lists",
                         .actual = std::string(option)});
  }
  if (settings.part > settings.parts || (settings.part == 0 && settings.parts != 0)) {
    throw_usage_error(
        {.where = "--part", .expected = "1 … --parts", .actual = std::to_string(settings.part)});
  }
  return settings;
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

void write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    throw_environment_error(
        {.where = path, .expected = "a file to write to", .actual = "a failure"});
  }
}

void write_results(const MatrixSettings& settings, const mutants::KillMatrix& matrix) {
  if (!settings.json_file.empty()) write_file(settings.json_file, mutants::to_json(matrix).dump(2));
  write_file(settings.markdown_file, mutants::to_markdown(matrix));
  write_file(settings.summary_file, mutants::to_summary(matrix, settings.matrix).dump(2) + "\n");
}

int run(int count, char** words) {
  MatrixSettings settings = parse(count, words);
  if (settings.help) {
    fmt::print("{}", kHelp);
    return 0;
  }
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

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const Error& error) {
    fmt::print(stderr, "kill_matrix: {}\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "kill_matrix: {}\n", error.what());
    return 4;
  }
}
