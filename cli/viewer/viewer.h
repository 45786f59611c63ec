// The viewer: one HTML file that shows the results of a command, and needs nothing from outside.
#pragma once

#include <string>
#include <string_view>

namespace ringlab::viewer {

/// CSS for light and dark screens, phones and paper.
std::string_view style_sheet();

/// & < > " ' as entities, control characters dropped; for text and for attribute values.
std::string escape(std::string_view text);

/// The whole file. `document` is a JSON text of a command's results, drawn by the page's own script;
/// `words` tell the verdict where scripts do not run.
std::string page(std::string_view document, std::string_view words);

}  // namespace ringlab::viewer
