#include "cli/line/output.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/line/build_info.h"
#include "cli/line/launcher.h"
#include "cli/viewer/viewer.h"
#include "reference/core/error.h"
#include "reference/core/machine/plain_text.h"
#include "reference/io/tensor_file.h"

namespace ringlab::cli {
namespace {

constexpr std::size_t kLineWidth = 100;

std::atomic<bool> document_is_written = false;

bool is_painted(std::FILE* file) {
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0';
  };
  const char* const terminal = std::getenv("TERM");
  const bool is_dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  const bool is_terminal = ::isatty(::fileno(file)) == 1 && !is_launched();
  return is_terminal && !is_set("NO_COLOR") && !is_dumb;
}

/// Verdicts in colour where they stand in a column of their own; the same words in names of files
/// and in sentences stay as they are.
std::string painted(std::string text) {
  constexpr std::string_view kBad = "\x1b[1;31m", kGood = "\x1b[32m", kPlain = "\x1b[0m";
  const auto ends_a_cell = [&](std::size_t at) {
    return at >= text.size() || text[at] == '\n' || text.compare(at, 2, "  ") == 0;
  };
  const auto begins_a_cell = [&](std::size_t at) {
    return at == 0 || text[at - 1] == '\n' || (at > 1 && text.compare(at - 2, 2, "  ") == 0);
  };
  for (const auto& [word, colour] : {std::pair<std::string_view, std::string_view>{"WRONG", kBad},
                                     {"BROKEN", kBad},
                                     {"ok", kGood},
                                     {"pass", kGood}}) {
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      if (!begins_a_cell(at) || !ends_a_cell(at + word.size())) continue;
      text.insert(at + word.size(), kPlain).insert(at, colour);
      at += colour.size();
    }
  }
  return text;
}

/// Words between commas on lines that begin below one another.
std::string wrapped(const std::vector<std::string>& words, std::size_t indent) {
  std::string text;
  std::size_t at = indent;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    const bool is_full = i > 0 && at + 1 + word.size() > kLineWidth;
    text += is_full ? "\n" + std::string(indent, ' ') : i > 0 ? " " : "";
    at = (is_full ? indent : at + (i > 0 ? 1 : 0)) + word.size();
    text += word;
  }
  return text;
}

// Names of files are bytes; what is not UTF-8 in them is replaced rather than refused.
std::string document_text(const std::string& command, const Json& document, int indent = 2) {
  const BuildInfo build = build_info();
  Json whole = {{"schema", kJsonSchema},      {"ringlab", build.version},
                {"compiler", build.compiler}, {"build_type", build.build_type},
                {"flags", build.flags},       {"command", command}};
  whole.update(document);
  return plain_json(whole.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n";
}

/// Usage error for what would hang, or is no place for results: a pipe that nobody reads, a socket, a
/// disk. A pipe that is read stays open until the program ends, since its reader ends with the last
/// writer.
void check_kind(const std::string& option, const std::string& path,
                const std::filesystem::file_status& status) {
  using std::filesystem::file_type;
  const auto refuse = [&](const char* found, const char* hint) {
    throw_usage_error({"--" + option, "a file", path + found, hint});
  };
  if (status.type() == file_type::socket) refuse(", a socket", "");
  if (status.type() == file_type::block) refuse(", a disk", "");
  if (status.type() != file_type::fifo) return;
  if (::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0 || errno != ENXIO) return;
  refuse(", a pipe that nobody reads", "Start its reader first.");
}

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::input:
      return "input";
    case ErrorKind::environment:
      return "environment";
  }
  return "";
}

}  // namespace

OptionSpec json_option() {
  return {"json", "FILE", "write the results as JSON too; - is standard output"};
}

Output::Output(Arguments& arguments)
    : json_path_(arguments.take_text("json")),
      text_(json_path_ == "-" ? stderr : stdout),
      paints_(is_painted(text_)) {
  if (json_path_) check_writable("json", *json_path_);
}

void Output::write(const std::string& text) {
  const std::string plain = plain_text(text);
  std::fputs((paints_ ? painted(plain) : plain).c_str(), text_);
}

void Output::show(const std::string& path, const std::string& words, Json drawn) {
  page_ = {path, words, std::move(drawn)};
}

void Output::write_at_the_end(const std::string& line) { last_ += plain_line(line) + "\n"; }

std::string configuration_text(const Json& value) {
  if (value.is_string()) return plain_line(value.get<std::string>());
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(configuration_text(item));
  return fmt::format("({})", fmt::join(items, ", "));
}

void Output::print_configuration(const Json& configuration,
                                 const std::set<std::string>& by_default) {
  constexpr std::string_view kByDefault = "by default";
  std::size_t width = by_default.empty() ? 0 : kByDefault.size();
  std::vector<std::string> others;
  for (const auto& [name, value] : configuration.items()) {
    if (!by_default.contains(name)) width = std::max(width, name.size());
  }
  for (const auto& [name, value] : configuration.items()) {
    if (by_default.contains(name)) {
      others.push_back(name + " " + configuration_text(value));
    } else {
      print("  {:<{}}  {}\n", name, width, configuration_text(value));
    }
  }
  if (!others.empty()) {
    print("  {:<{}}  {}\n", kByDefault, width, wrapped(others, width + 4));
  }
  std::fflush(text_);  // long work may follow, and readers want to know of what
}

void Output::keep(const std::string& command, const Json& document) {
  if (!json_path_ || *json_path_ == "-") return;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(*json_path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return;
  io::AtomicFiles so_far;
  write_json(command, document, so_far);
  so_far.commit();
  document_is_written = true;
}

void Output::write_json(const std::string& command, const Json& document,
                        io::AtomicFiles& files) const {
  if (!json_path_) return;
  files.write(*json_path_, document_text(command, document));
  document_is_written = document_is_written || *json_path_ == "-";
}

void Output::prepare(const std::string& command, const Json& document) {
  if (text_ == stdout && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    throw_environment_error(
        {"standard output", "to be written", "that it cannot", "Nothing was left behind"});
  }
  write_json(command, document, files_);
  if (!page_) return;
  Json drawn = document;
  drawn["drawn"] = page_->drawn;
  files_.write(page_->path, viewer::page(document_text(command, drawn, -1), page_->words));
}

void Output::commit(int code) {
  files_.commit();
  let_results_stand(code);
  document_is_written = true;
  write(last_);
}

int Output::finish(const std::string& command, const Json& document, int code) {
  prepare(command, document);
  commit(code);
  return code;
}

void write_failure(const std::string& command, const std::string& path, const Error& error,
                   const std::string& message) {
  if (document_is_written.exchange(true)) return;
  const ErrorParts& parts = error.parts();
  try {
    const Json document = {{"error",
                            {{"kind", kind_name(error.kind())},
                             {"exit_code", error.exit_code()},
                             {"message", message},
                             {"where", parts.where},
                             {"expected", parts.expected},
                             {"found", parts.actual},
                             {"hint", parts.hint}}}};
    io::write_file(path, document_text(command, document));
  } catch (const std::exception&) {  // the failure itself was told
  }
}

void check_writable(const std::string& option, const std::string& path) {
  if (path == "-") return;
  std::error_code ignored;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw_environment_error({"--" + option, "a file in a folder that exists", path,
                             "Make the folder " + folder.string() + " first."});
  }
  std::error_code found;
  const std::filesystem::file_status status = std::filesystem::status(path, found);
  if (found == std::errc::too_many_symbolic_link_levels) {
    throw_environment_error({"--" + option, "a file", path + ", a link that leads nowhere", ""});
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw_environment_error({"--" + option, "a folder that can be written", folder.string(), ""});
  }
  const std::string name = std::filesystem::path(path).filename().string();
  const long longest = ::pathconf(folder.c_str(), _PC_NAME_MAX);  // -1: the system does not say
  if (longest >= 0 && std::ssize(name) > longest) {
    throw_environment_error(
        {"--" + option, fmt::format("a name of at most {} bytes in {}", longest, folder.string()),
         fmt::format("{} bytes", name.size()), ""});
  }
  if (std::filesystem::is_directory(status) && option != "output") {  // check_output() asks
    throw_environment_error({"--" + option, "a file", path + ", a folder", ""});
  }
  check_kind(option, path, status);
}

void check_file(const std::string& option, const std::string& path) {
  if (path == "-") {
    throw_usage_error(
        {"--" + option, "the name of a file", "-", "Only --json can go to standard output."});
  }
  check_writable(option, path);
}

std::optional<std::string> take_file(Arguments& arguments, const std::string& option) {
  std::optional<std::string> path = arguments.take_text(option);
  if (path) check_file(option, *path);
  return path;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace ringlab::cli
