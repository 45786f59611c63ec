// The output of a command: a text for people, and JSON for programs.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "cli/line/arguments.h"
#include "cli/line/endings.h"
#include "reference/core/error.h"
#include "reference/io/atomic_file.h"

namespace ringlab::cli {

using Json = nlohmann::ordered_json;

/// The schema of the documents that --json writes (docs/formats.md): higher where a field means
/// something else than before, or is gone.
inline constexpr int kJsonSchema = 1;

/// A number as JSON; what JSON has no number for becomes "inf", "-inf" or "nan".
inline Json json_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

/// `--json FILE`, which every command takes.
OptionSpec json_option();

/// A value of a configuration as people read it: "causal", "0.25", "(1, 4, 64, 32)".
std::string configuration_text(const Json& value);

/// With `--json -` the JSON has standard output to itself and the text goes to standard error. On a
/// terminal verdicts are coloured, unless NO_COLOR is set.
class Output {
 public:
  explicit Output(Arguments& arguments);

  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    write(fmt::format(format, std::forward<Values>(values)...));
  }
  /// Prints `text` without control characters: names in it may be from files.
  void write(const std::string& text);
  /// Indented "name  value" lines from a flat JSON object; those `by_default` come last, together.
  void print_configuration(const Json& configuration, const std::set<std::string>& by_default = {});
  /// Writes the document so far, to stay if the program is ended: the file is whole at any time.
  /// Does nothing for standard output, and for files that cannot be written twice.
  void keep(const std::string& command, const Json& document);
  /// Files for a command's other results: at its end all of them are there, or none.
  io::AtomicFiles& files() { return files_; }
  /// Keeps a page to write with the document: `words` tell its verdict, `drawn` is what its pictures
  /// need besides the document, and is on the page only, as "drawn".
  void show(const std::string& path, const std::string& words, Json drawn = Json::object());
  /// Keeps a line to print at the end, when all files are there.
  void write_at_the_end(const std::string& line);
  /// Writes the document, with the program's own version in front, where `--json` says; it and the
  /// other files are complete, without their names. Environment error when that or the text cannot
  /// be written.
  void prepare(const std::string& command, const Json& document);
  /// Gives all files their names; `code` is the exit code of the command, where it is known.
  void commit(int code = kNoResults);
  /// Calls prepare(), then commit(); returns `code`.
  int finish(const std::string& command, const Json& document, int code = 0);

 private:
  void write_json(const std::string& command, const Json& document, io::AtomicFiles& files) const;

  std::optional<std::string> json_path_;
  std::FILE* text_;
  bool paints_;
  io::AtomicFiles files_;
  std::string last_;
  struct Page {
    std::string path, words;
    Json drawn;
  };
  std::optional<Page> page_;
};

/// Writes the document of a command that failed: "error" has the message, as it was said, and the
/// parts of the error. Writes nothing where a document was written before, or none can be. From
/// any thread.
void write_failure(const std::string& command, const std::string& path, const Error& error,
                   const std::string& message);

/// Environment error unless a file can be made in the folder of `path`; "-" is fine. Asked before
/// long work, so that it is not done in vain.
void check_writable(const std::string& option, const std::string& path);

/// check_writable() for results that need a file: usage error for "-", as standard output has text.
void check_file(const std::string& option, const std::string& path);

/// The option's file, if it was given, checked by check_file().
std::optional<std::string> take_file(Arguments& arguments, const std::string& option);

/// The date, as results have it: "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace ringlab::cli
