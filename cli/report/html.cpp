#include "cli/report/html.h"

#include <fmt/format.h>

namespace ringlab::report {
std::string html_page(const HtmlPage& page) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n{}</body>\n"
      "</html>\n",
      escape(page.title), style_sheet(), page.more_style, page.body, page.after);
}

std::string verdict_banner(bool good, const std::string& sign, const std::string& html) {
  return fmt::format("<div class=\"verdict {}\"><b>{}</b><div>{}</div></div>\n",
                     good ? "good" : "bad", escape(sign), html);
}

std::string chips(const std::vector<std::pair<std::string, std::string>>& named) {
  std::string html = "<ul class=\"chips\">";
  for (const auto& [name, value] : named) {
    html += fmt::format("<li><b>{}</b> {}</li>", escape(name), escape(value));
  }
  return html + "</ul>\n";
}

std::string html_table(const std::vector<std::string>& titles, const std::string& rows,
                       const std::string& css_class) {
  std::string head;
  for (const std::string& title : titles) {
    const bool numbers = title.starts_with('#');
    head += fmt::format("<th{}>{}</th>", numbers ? " class=\"n\"" : "",
                        escape(std::string_view(title).substr(numbers ? 1 : 0)));
  }
  return fmt::format(
      "<div "
      "class=\"framed\"><table{}><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n",
      css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class), head, rows);
}

std::string figure(const HtmlFigure& parts) {
  std::string html = parts.chosen ? "<figure class=\"chosen\">" : "<figure>";
  html += fmt::format("<header><h3>{}</h3><span>{}</span></header>{}", escape(parts.heading),
                      escape(parts.remark), parts.picture);
  if (!parts.caption.empty()) {
    html += fmt::format("<figcaption>{}</figcaption>", escape(parts.caption));
  }
  return html + "</figure>\n";
}

}  // namespace ringlab::report
