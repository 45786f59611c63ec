// Pages of HTML that need nothing from outside, and the pieces that they share.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/viewer/viewer.h"

namespace ringlab::report {

using viewer::escape;
using viewer::style_sheet;

/// A whole file. All but the title is HTML.
struct HtmlPage {
  std::string title;
  std::string body;                  ///< of <main>
  std::string_view more_style = {};  ///< on top of style_sheet()
  std::string after = {};            ///< behind <main>
};
std::string html_page(const HtmlPage& page);

/// The verdict of a run, in green or red: a sign or a word, and HTML beside it.
std::string verdict_banner(bool good, const std::string& sign, const std::string& html);

/// Names and values as a row of boxes. Texts are escaped.
std::string chips(const std::vector<std::pair<std::string, std::string>>& named);

/// A table in a frame. Titles are escaped, those that begin with # stand over numbers; `rows` are
/// HTML.
std::string html_table(const std::vector<std::string>& titles, const std::string& rows,
                       const std::string& css_class = {});

/// <figure> with a heading, a remark at its right, the picture and a caption. Texts are escaped.
struct HtmlFigure {
  std::string heading, remark, picture, caption;
  bool chosen = false;
};
std::string figure(const HtmlFigure& parts);

}  // namespace ringlab::report
