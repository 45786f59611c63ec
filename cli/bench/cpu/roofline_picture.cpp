#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/bench/measure/page.h"
#include "cli/report/svg.h"

namespace ringlab::bench {
namespace {

using report::Svg;

constexpr double kRoofWidth = 720, kHeight = 400, kRoofLeft = 56, kRight = 12, kRoofTop = 14,
                 kBottom = 42;

/// One logarithmic axis, from a power of 2 (or 10) at or below its least value on.
struct Axis {
  double least, most;  ///< logarithms
  double begin, end;   ///< in the picture

  double at(double value) const {
    const double part = (std::log10(value) - least) / (most - least);
    return begin + (end - begin) * std::clamp(part, 0.0, 1.0);
  }
  double value(double part) const { return std::pow(10, least + (most - least) * part); }
};

struct Axes {
  Axis x, y;
};

Axes axes_of(const Roofline& roofline) {
  double least_x = 0.25, most_x = 512, least_y = 1e9, most_y = 4e9;
  for (const RooflinePoint& point : roofline.points) {
    least_x = std::min(least_x, point.flops_per_byte);
    most_x = std::max(most_x, 2 * point.flops_per_byte);
    least_y = std::min(least_y, point.flops_per_s.median / 2);
    most_y = std::max(most_y, point.flops_per_s.median);
  }
  for (const Ceiling& ceiling : roofline.ceilings) most_y = std::max(most_y, ceiling.flops_per_s);
  return {{std::log10(least_x), std::log10(most_x), kRoofLeft, kRoofWidth - kRight},
          {std::log10(least_y), std::log10(most_y * 1.4), kHeight - kBottom, kRoofTop}};
}

void draw_grid(Svg& svg, const Axes& axes) {
  for (double x = 0.25; std::log10(x) <= axes.x.most; x *= 4) {
    svg.line(axes.x.at(x), kRoofTop, axes.x.at(x), kHeight - kBottom, "grid");
    svg.text(axes.x.at(x), kHeight - kBottom + 16, fmt::format("{:g}", x), "small", "middle");
  }
  for (double y = std::pow(10, std::ceil(axes.y.least)); std::log10(y) <= axes.y.most; y *= 10) {
    svg.line(kRoofLeft, axes.y.at(y), kRoofWidth - kRight, axes.y.at(y), "grid");
    svg.text(kRoofLeft - 6, axes.y.at(y) + 4, fmt::format("{:g}", y * 1e-9), "small", "end");
  }
  svg.text((kRoofLeft + kRoofWidth) / 2, kHeight - 6, "floating-point operations per byte moved",
           "small", "middle");
  svg.text(2, kRoofTop - 3, "Gflop/s", "small");
}

void draw_ceiling(Svg& svg, const Axes& axes, const Ceiling& ceiling) {
  const double y = axes.y.at(ceiling.flops_per_s);
  svg.line(kRoofLeft, y, kRoofWidth - kRight, y, "roof");
  svg.text(kRoofWidth - kRight, y - 4,
           fmt::format("{}, {:.0f} Gflop/s", ceiling.name, ceiling.flops_per_s * 1e-9), "small",
           "end");
}

/// Draws a slope up to the highest ceiling.
void draw_slope(Svg& svg, const Axes& axes, const Bandwidth& slope, double highest) {
  const double from_x = std::max(axes.x.value(0), axes.y.value(0) / slope.bytes_per_s);
  const double to_x = std::max(from_x, highest / slope.bytes_per_s);
  svg.line(axes.x.at(from_x), axes.y.at(from_x * slope.bytes_per_s), axes.x.at(to_x),
           axes.y.at(to_x * slope.bytes_per_s), "roof");
  const double x = std::sqrt(from_x * to_x);
  svg.text(axes.x.at(x) + 6, axes.y.at(x * slope.bytes_per_s) + 12,
           fmt::format("{}, {:.0f} GB/s", slope.where, slope.bytes_per_s * 1e-9), "small");
}

void draw_point(Svg& svg, const Axes& axes, const RooflinePoint& point) {
  constexpr double kSize = 7;
  const double x = axes.x.at(point.flops_per_byte), y = axes.y.at(point.flops_per_s.median);
  svg.rect({x - kSize / 2, y - kSize / 2, kSize, kSize},
           point.name.starts_with("d=64") ? "point small-tile" : "point", "",
           fmt::format("{}: {:.3g} flop per byte, {:.1f} Gflop/s", point.name, point.flops_per_byte,
                       point.flops_per_s.median * 1e-9));
}

}  // namespace

std::string roofline_picture(const Roofline& roofline) {
  Svg svg(kRoofWidth, kHeight, "Roofline: measured kernels under measured peaks and bandwidths");
  const Axes axes = axes_of(roofline);
  double highest = 0;
  for (const Ceiling& ceiling : roofline.ceilings) highest = std::max(highest, ceiling.flops_per_s);
  draw_grid(svg, axes);
  for (const Bandwidth& slope : roofline.slopes) {
    draw_slope(svg, axes, slope, highest > 0 ? highest : axes.y.value(1));
  }
  for (const Ceiling& ceiling : roofline.ceilings) draw_ceiling(svg, axes, ceiling);
  for (const RooflinePoint& point : roofline.points) draw_point(svg, axes, point);
  return svg.finish();
}

}  // namespace ringlab::bench
