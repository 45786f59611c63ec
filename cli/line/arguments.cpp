#include "cli/line/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>
#include <string_view>

#include "cli/line/same_file.h"
#include "cli/line/words.h"
#include "reference/core/error.h"
#include "reference/core/options/near_word.h"

namespace ringlab::cli {
namespace {

namespace po = boost::program_options;

po::options_description visible_options(const Command& command) {
  constexpr unsigned kWidth = 100;
  po::options_description options("Options", kWidth, kWidth / 2);
  for (const OptionSpec& option : command.options) {
    if (option.value.empty()) {
      options.add_options()(option.name.c_str(), option.help.c_str());
    } else {
      auto* value = po::value<std::string>()->value_name(option.value);
      options.add_options()(option.name.c_str(), value, option.help.c_str());
    }
  }
  options.add_options()("help", "this text");
  return options;
}

// Boost takes "-1" after an option for another option: "--scale -1" becomes "--scale=-1". The only
// short option is -h.
std::vector<std::string> without_short_words(const Command& command,
                                             const std::vector<std::string>& words) {
  std::vector<std::string> joined;
  for (const std::string& word : words) {
    const bool negative = word.size() > 1 && word[0] == '-' && word[1] != '-';
    const bool follows_option = !joined.empty() && joined.back().rfind("--", 0) == 0;
    bool takes_value = false;
    for (const OptionSpec& option : command.options) {
      takes_value |= follows_option && !option.value.empty() && joined.back() == "--" + option.name;
    }
    if (negative && takes_value) {
      joined.back() += "=" + word;
    } else {
      joined.push_back(word == "-h" ? "--help" : word);
    }
  }
  return joined;
}

[[noreturn]] void refuse_unknown(const Command& command, const std::string& word) {
  std::vector<std::string> names;
  for (const OptionSpec& option : command.options) names.push_back("--" + option.name);
  const std::string meant = did_you_mean(word, names);
  throw_usage_error(
      {word, fmt::format("an option of `ringlab {}`", command.name), "an unknown one",
       meant.empty() ? fmt::format("`ringlab {} --help` lists them.", command.name) : meant});
}

/// The paths in a word that may name a file to be read: the word itself, and masks in it, as of
/// "causal+file:M.npy".
std::vector<std::string> paths_in(const std::string& word) {
  constexpr std::string_view kMaskFile = "file:";
  std::vector<std::string> paths = {word};
  for (std::size_t at = word.find(kMaskFile); at != word.npos; at = word.find(kMaskFile, at + 1)) {
    paths.push_back(word.substr(at + kMaskFile.size()));
    const std::size_t more = word.find('+', at);
    if (more != word.npos) paths.push_back(word.substr(0, more).substr(at + kMaskFile.size()));
  }
  return paths;
}

/// A path on the command line.
struct NamedFile {
  std::string where;  ///< "--json", "the operand"
  std::string path;
};

// Boost wants a name for operands, and takes "--NAME=x" and "--=x" for the operand x.
constexpr const char* kOperands = "operand";

void refuse_named_operands(const Command& command, const std::vector<std::string>& words) {
  const std::string named = fmt::format("--{}", kOperands);
  for (const std::string& word : words) {
    if (word == "--") return;  // operands from here on
    const std::string name = word.substr(0, word.find('='));
    const bool nameless = name == "--" && name != word;
    // Boost's texts have placeholders between %: it looks for them in names, too, without an end.
    const bool endless = name.starts_with("--") && name.find('%') != std::string::npos;
    if (name == named || nameless || endless) refuse_unknown(command, word);
  }
}

// Parses the words; errors that Boost reports become ours.
po::variables_map parse(const Command& command, const std::vector<std::string>& words) {
  refuse_named_operands(command, words);
  po::options_description all = visible_options(command);
  all.add_options()(kOperands, po::value<std::vector<std::string>>());
  po::positional_options_description operands;
  operands.add(kOperands, -1);
  using namespace po::command_line_style;
  po::variables_map map;
  try {
    po::store(po::command_line_parser(words)
                  .options(all)
                  .positional(operands)
                  .style(unix_style & ~allow_guessing & ~allow_short)
                  .run(),
              map);
  } catch (const po::unknown_option& error) {
    refuse_unknown(command, error.get_option_name());
  } catch (const po::multiple_occurrences& error) {
    throw_usage_error({error.get_option_name(), "to be given once", "it more than once", ""});
  } catch (const po::error_with_option_name& error) {
    throw_usage_error({error.get_option_name(), "--NAME VALUE, or --NAME for a switch",
                       error.what(), fmt::format("See `ringlab {} --help`.", command.name)});
  } catch (const po::error& error) {
    throw_usage_error(
        {"command line", fmt::format("options of `ringlab {}`", command.name), error.what(), ""});
  }
  return map;
}

}  // namespace

Arguments::Arguments(const Command& command, const std::vector<std::string>& words)
    : command_(command), words_{command.name} {
  words_.insert(words_.end(), words.begin(), words.end());
  const po::variables_map map = parse(command, without_short_words(command, words));
  help_wanted_ = map.count("help") != 0;
  if (map.count(kOperands)) operands_ = map[kOperands].as<std::vector<std::string>>();
  for (const OptionSpec& option : command.options) {
    if (!map.count(option.name)) continue;
    values_[option.name] = option.value.empty() ? "" : map[option.name].as<std::string>();
  }
  const int count = static_cast<int>(operands_.size());
  if (help_wanted_ || (count >= command.min_operands && count <= command.max_operands)) return;
  const std::string expected = command.operands.empty() ? "options only" : command.operands;
  throw_usage_error({fmt::format("ringlab {}", command.name), expected,
                     count == 0 ? "nothing" : fmt::format("{}", fmt::join(operands_, " ")),
                     fmt::format("See `ringlab {} --help`.", command.name)});
}

std::vector<std::pair<std::string, std::string>> Arguments::given_options(
    const std::vector<OptionSpec>& options) const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const OptionSpec& option : options) {
    if (given(option.name)) all.emplace_back(option.name, text(option.name));
  }
  return all;
}

bool Arguments::take_switch(const std::string& name) {
  used_.insert(name);
  return given(name);
}

std::optional<std::string> Arguments::take_text(const std::string& name) {
  used_.insert(name);
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  if (found->second.empty()) {
    throw_usage_error({"--" + name, "a value", "an empty one", ""});
  }
  return found->second;
}

std::vector<std::string> Arguments::take_words(const std::string& name) {
  const std::optional<std::string> text = take_text(name);
  return text ? words_between_commas(*text) : std::vector<std::string>();
}

std::int64_t Arguments::take_integer(const std::string& name, std::int64_t fallback,
                                     std::int64_t least, std::int64_t most) {
  const std::optional<std::string> text = take_text(name);
  return text ? parse_integer(name, *text, least, most) : fallback;
}

std::uint64_t Arguments::take_unsigned(const std::string& name, std::uint64_t fallback) {
  const std::optional<std::string> text = take_text(name);
  return text ? parse_unsigned(name, *text) : fallback;
}

double Arguments::take_real(const std::string& name, double fallback, double least, double most) {
  const std::optional<std::string> text = take_text(name);
  return text ? parse_real(name, *text, least, most) : fallback;
}

void Arguments::read_from(const std::string& name, std::istream& input) {
  if (text(name) != "-") return;
  std::getline(input, values_[name]);
}

void Arguments::refuse_shared_files() const {
  std::vector<NamedFile> files, inputs;
  const auto add_inputs = [&](const std::string& where, const std::string& word) {
    for (const std::string& path : paths_in(word)) {
      const bool is_path = path.find_first_of("./") != path.npos;  // "ring" is a subject
      if (is_path && is_there(path)) inputs.push_back({where, path});
    }
  };
  for (const std::string& operand : operands_) add_inputs("the operand", operand);
  for (const OptionSpec& option : command_.options) {
    const auto found = values_.find(option.name);
    if (found == values_.end() || found->second == "-") continue;
    const std::string where = "--" + option.name;
    if (option.value.starts_with("FILE") || option.value == "PATH") {
      files.push_back({where, found->second});
    } else {
      add_inputs(where, found->second);
    }
  }
  for (auto file = files.begin(); file != files.end(); ++file) {
    const auto is_it = [&](const NamedFile& other) { return same_file(other.path, file->path); };
    const auto earlier = std::find_if(files.begin(), file, is_it);
    const auto input = std::ranges::find_if(inputs, is_it);
    if (earlier == file && input == inputs.end()) continue;
    throw_usage_error({file->where,
                       "another place than " + (earlier != file ? *earlier : *input).where,
                       file->path, ""});
  }
}

void Arguments::reject_unused() const {
  for (const OptionSpec& option : command_.options) {
    if (!given(option.name) || used_.count(option.name)) continue;
    const std::string expected =
        option.applies.empty() ? "an option that changes this run" : "it only " + option.applies;
    throw_usage_error({"--" + option.name, expected, "that it changes nothing", "Leave it out."});
  }
}

void Arguments::refuse_choice(const std::string& name, const std::string& text,
                              const std::vector<std::string>& words) const {
  throw_usage_error({"--" + name, fmt::format("one of {}", fmt::join(words, ", ")),
                     fmt::format("\"{}\"", text), did_you_mean(text, words)});
}

std::string option_help(const Command& command) {
  std::ostringstream text;
  text << visible_options(command);
  return text.str();
}

}  // namespace ringlab::cli
