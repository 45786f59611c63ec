// The completion script and the manual pages.
#include "cli/line/shell.h"

#include <fmt/format.h>

namespace ringlab::cli {
namespace {

/// Escapes all that groff would take for a request or an escape.
std::string groff_text(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (letter == '\\') {
      safe += "\\e";
    } else if (letter == '-') {
      safe += "\\-";
    } else if ((letter == '.' || letter == '\'') && (safe.empty() || safe.back() == '\n')) {
      safe += std::string("\\&") + letter;
    } else {
      safe += letter;
    }
  }
  return safe;
}

std::string option_words(const Command& command) {
  std::string words = "--help";
  for (const OptionSpec& option : command.options) words += " --" + option.name;
  return words;
}

}  // namespace

std::string bash_completion() {
  std::string commands = "help version", cases;
  for (const Command& command : all_commands()) {
    commands += " " + command.name;
    if (!command.program.empty()) continue;  // other programs know their options themselves
    cases += fmt::format("    {}) options=\"{}\" ;;\n", command.name, option_words(command));
  }
  return fmt::format(
      "# Completion of ringlab for bash.\n"
      "_ringlab() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} options=--help\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n"
      "{}"
      "  esac\n"
      "  case $word in\n"
      "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _ringlab ringlab\n",
      commands, cases);
}

std::string program_man_page(const std::string& version, const std::string& help) {
  return fmt::format(
      ".TH RINGLAB 1 \"\" \"ringlab {}\"\n.SH NAME\nringlab \\- exact ring attention\n"
      ".SH DESCRIPTION\n.nf\n{}.fi\n",
      version, groff_text(help));
}

std::string man_page(const Command& command, const std::string& version) {
  std::string text = fmt::format(
      ".TH RINGLAB-{} 1 \"\" \"ringlab {}\"\n.SH NAME\nringlab-{} \\- {}\n.SH SYNOPSIS\n"
      ".B ringlab {}\n{} [options]\n.SH OPTIONS\n",
      command.name, version, command.name, groff_text(command.summary), command.name,
      groff_text(command.operands));
  for (const OptionSpec& option : command.options) {
    text += fmt::format(".TP\n.B \\-\\-{}\n",
                        groff_text(option.name + (option.value.empty() ? "" : " " + option.value)));
    text += groff_text(option.help) + "\n";
  }
  if (!command.more.empty()) text += ".SH NOTES\n" + groff_text(command.more) + "\n";
  text += ".SH EXAMPLES\n.nf\n";
  for (const std::string& example : command.examples) text += groff_text(example) + "\n";
  return text + ".fi\n";
}

}  // namespace ringlab::cli
