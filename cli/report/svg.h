// Small SVG pictures, drawn to be read at 360 px as well as on paper.
#pragma once

#include <string>
#include <string_view>

namespace ringlab::report {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Collects shapes. Colours come from the classes of the page's style sheet, so that pictures
/// follow light, dark and print. `text` and `title` are escaped here; classes and styles are ours.
class Svg {
 public:
  /// `description` is what a screen reader says.
  Svg(double width, double height, std::string description);

  void rect(const Box& box, std::string_view css_class, std::string_view style = {},
            std::string_view title = {});
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  /// `anchor` is start, middle or end.
  void text(double x, double y, std::string_view content, std::string_view css_class = "label",
            std::string_view anchor = "start");
  std::string finish() const;

 private:
  double width_, height_;
  std::string description_;
  std::string shapes_;
};

}  // namespace ringlab::report
