// Text of others, made fit for a terminal.
#pragma once

#include <string>

namespace ringlab {

/// The text with '?' for every control character but the ends of lines and tabs: those of ASCII,
/// those of Unicode (as UTF-8, and as single bytes where the text is none), and those that turn the
/// direction of writing. What comes from files cannot steer a terminal then. Everything else stays
/// as it is, whether it is UTF-8 or not.
std::string plain_text(const std::string& text);

/// plain_text() as one line: '?' for ends of lines and tabs, too, so that no name looks like a line
/// of ours.
std::string plain_line(const std::string& text);

/// JSON in UTF-8 with the characters that plain_text() replaces as escapes, "\u009b": it means the
/// same.
std::string plain_json(const std::string& json);

}  // namespace ringlab
