#include "cli/line/output.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "cli/line/build_info.h"
#include "reference/core/error.h"
#include "reference/core/machine/plain_text.h"

namespace ringlab::cli {

Json json_number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

OptionSpec json_option() {
  return {"json", "FILE", "write the results as JSON too; - is standard output"};
}

Output::Output(Arguments& arguments)
    : json_path_(arguments.take_text("json")), text_(json_path_ == "-" ? stderr : stdout) {
  if (json_path_) check_writable("json", *json_path_);
}

void Output::write(const std::string& text) { std::fputs(plain_text(text).c_str(), text_); }

void Output::print_configuration(const Json& configuration) {
  std::size_t width = 0;
  for (const auto& [name, value] : configuration.items()) width = std::max(width, name.size());
  for (const auto& [name, value] : configuration.items()) {
    print("  {:<{}}  {}\n", name, width,
          value.is_string() ? value.get<std::string>() : value.dump());
  }
  std::fflush(text_);  // what follows may take long, and whoever reads along wants to know of what
}

void Output::keep(const std::string& command, const Json& document) {
  if (!json_path_ || *json_path_ == "-") return;
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(*json_path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return;
  io::AtomicFiles so_far;
  write_json(command, document, so_far);
  so_far.commit();
}

void Output::write_json(const std::string& command, const Json& document,
                        io::AtomicFiles& files) const {
  if (!json_path_) return;
  const BuildInfo build = build_info();
  Json whole = {{"ringlab", build.version},
                {"compiler", build.compiler},
                {"build_type", build.build_type},
                {"flags", build.flags},
                {"command", command}};
  whole.update(document);
  // Names of files are bytes; what is not UTF-8 in them is replaced rather than refused.
  const std::string text =
      plain_json(whole.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
  files.write(*json_path_, text);
}

void Output::prepare(const std::string& command, const Json& document) {
  if (text_ == stdout && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)) {
    throw_environment_error(
        {"standard output", "to be written", "that it cannot", "Nothing was left behind"});
  }
  write_json(command, document, files_);
}

void Output::commit() {
  files_.commit();
  write(last_);
}

void Output::finish(const std::string& command, const Json& document) {
  prepare(command, document);
  commit();
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
  if (std::filesystem::is_directory(path, ignored) && option != "output") {
    throw_environment_error({"--" + option, "a file", path + ", a folder", ""});
  }
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
