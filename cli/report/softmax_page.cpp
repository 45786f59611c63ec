#include "cli/report/softmax_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/report/html.h"
#include "cli/report/svg.h"

namespace ringlab::report {
namespace {

constexpr std::int64_t kMostCells = 128;
constexpr std::int64_t kMostHeads = 8;
constexpr int kRight = 0, kWrong = 1, kHues = 2;  // ends of the palette

}  // namespace

std::string softmax_map(const verify::Tomography& tomography, std::int64_t batch,
                        std::int64_t head) {
  const Extents& extents = tomography.got.extents();
  const std::int64_t queries = std::min(extents.tokens, kMostCells);
  const std::int64_t keys = std::min(extents.channels, kMostCells);
  if (queries == 0 || keys == 0) return "";
  const double cell = std::clamp(320.0 / static_cast<double>(std::max(queries, keys)), 3.0, 20.0);
  Svg svg(cell * static_cast<double>(keys), cell * static_cast<double>(queries),
          "softmax weights: queries down, keys across");
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const double got = tomography.got(batch, head, i, j);
      const double exact = tomography.exact(batch, head, i, j);
      const char mark = verify::softmax_mark(got, exact);
      if (mark == ' ') continue;
      const double depth = std::sqrt(std::clamp(std::max(got, exact), 0.02, 1.0));
      svg.rect({cell * static_cast<double>(j), cell * static_cast<double>(i), cell, cell}, "hop",
               fmt::format("{};opacity:{:.2f}", hop_style(mark == '=' ? kRight : kWrong, kHues),
                           mark == '=' ? depth : 1.0),
               fmt::format("query {}, key {}: {:.4g}, exact {:.4g}", i, j, got, exact));
    }
  }
  return svg.finish();
}

std::string softmax_page(const std::vector<SoftmaxMap>& maps) {
  std::string body = "<h1>Softmax matrices, read from outside</h1>\n";
  body +=
      "<p>With slices of the identity as values an attention returns its own weights. Right "
      "ones are blue, the deeper the larger; wrong ones are orange.</p>\n";
  for (const SoftmaxMap& map : maps) {
    body += fmt::format("<h2>{}</h2>\n", escape(map.subject));
    for (const std::string& finding : map.tomography.findings) {
      body += fmt::format("<p>{}</p>\n", escape(finding));
    }
    const std::int64_t heads = std::min(map.tomography.got.extents().heads, kMostHeads);
    for (std::int64_t head = 0; head < heads; ++head) {
      body += figure({.heading = fmt::format("head {}", head),
                      .remark = "queries down, keys across",
                      .picture = softmax_map(map.tomography, 0, head),
                      .caption = ""});
    }
  }
  return html_page({.title = "ringlab: softmax matrices", .body = body});
}

}  // namespace ringlab::report
