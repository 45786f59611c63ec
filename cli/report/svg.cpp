#include "cli/report/svg.h"

#include <fmt/format.h>

#include <utility>

#include "cli/viewer/viewer.h"

namespace ringlab::report {

using viewer::escape;

Svg::Svg(double width, double height, std::string description)
    : width_(width), height_(height), description_(std::move(description)) {}

void Svg::rect(const Box& box, std::string_view css_class, std::string_view style,
               std::string_view title) {
  shapes_ +=
      fmt::format("<rect x=\"{:.5g}\" y=\"{:.5g}\" width=\"{:.5g}\" height=\"{:.5g}\" class=\"{}\"",
                  box.x, box.y, box.width, box.height, css_class);
  if (!style.empty()) shapes_ += fmt::format(" style=\"{}\"", style);
  shapes_ += title.empty() ? "/>" : fmt::format("><title>{}</title></rect>", escape(title));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  shapes_ +=
      fmt::format("<line x1=\"{:.5g}\" y1=\"{:.5g}\" x2=\"{:.5g}\" y2=\"{:.5g}\" class=\"{}\"/>",
                  x1, y1, x2, y2, css_class);
}

void Svg::text(double x, double y, std::string_view content, std::string_view css_class,
               std::string_view anchor) {
  shapes_ +=
      fmt::format("<text x=\"{:.5g}\" y=\"{:.5g}\" class=\"{}\" text-anchor=\"{}\">{}</text>", x, y,
                  css_class, anchor, escape(content));
}

std::string Svg::finish() const {
  return fmt::format(
      "<svg viewBox=\"0 0 {0:.5g} {1:.5g}\" role=\"img\" aria-label=\"{2}\">{3}</svg>\n", width_,
      height_, escape(description_), shapes_);
}

}  // namespace ringlab::report
