#include "reference/core/report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "reference/core/checks.h"
#include "reference/core/error.h"

namespace ringlab {
namespace {

/// |got - exact|; 0 for equal infinities, +inf for different ones, NaN for NaN.
double distance(double got, double exact) { return got == exact ? 0.0 : std::abs(got - exact); }

bool within(double got, double exact, double allowed) {
  if (got != exact && std::isinf(exact)) return false;
  return distance(got, exact) <= allowed;
}

double ratio_of(double got, double exact, double allowed) {
  if (!within(got, exact, allowed)) {
    const double ratio = distance(got, exact) / allowed;
    return ratio > 1.0 ? ratio : std::numeric_limits<double>::infinity();
  }
  const double error = distance(got, exact);
  return error == 0.0 || std::isinf(allowed) ? 0.0 : error / allowed;
}

/// Counts the elements whose bounds say something, and those that allow anything.
void count_bounds(const TensorView<const double>& exact, const TensorView<const double>& allowed,
                  double size, TensorReport& report) {
  std::int64_t wide = 0;
  double largest = 0;
  const auto for_each_measured = [&](const auto& visit) {
    for_each_index(exact.extents, [&](auto b, auto h, auto t, auto c) {
      const double value = std::abs(exact(b, h, t, c)), bound = allowed(b, h, t, c);
      if (std::isfinite(value) && value + bound > 0) visit(value, bound);
    });
  };
  for_each_measured([&](double value, double bound) {
    ++report.measured;
    report.telling += std::max(value, size) > bound;
    report.infinite += std::isinf(bound);
    largest = std::max({largest, value, size});
  });
  for_each_measured([&](double, double bound) { wide += bound >= largest; });
  const bool is_zero = largest == 0 && report.infinite == 0;
  report.unbounded = is_zero ? 0 : report.telling == 0 ? report.measured : wide;
}

/// The shortest digits that read back as the same double.
std::string digits(double x) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
  return std::string(buffer.data(), end);
}

std::string three_digits(double x) {
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::general, 3)
          .ptr;
  return std::string(buffer.data(), end);
}

}  // namespace

TensorReport compare(std::string tensor, const TensorView<const double>& got,
                     const TensorView<const double>& exact, const TensorView<const double>& allowed,
                     double size) {
  check_extents("comparison of " + tensor, got.extents, exact.extents);
  check_extents("comparison of " + tensor, allowed.extents, exact.extents);
  TensorReport report;
  report.tensor = std::move(tensor);
  for_each_index(exact.extents,
                 [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t c) {
                   const WorstElement here = {
                       .batch = b,
                       .head = h,
                       .token = t,
                       .channel = c,
                       .got = got(b, h, t, c),
                       .exact = exact(b, h, t, c),
                       .allowed = allowed(b, h, t, c),
                       .ratio = ratio_of(got(b, h, t, c), exact(b, h, t, c), allowed(b, h, t, c))};
                   if (!within(here.got, here.exact, here.allowed)) ++report.failed;
                   if (report.compared == 0 || here.ratio > report.worst.ratio) report.worst = here;
                   ++report.compared;
                 });
  count_bounds(exact, allowed, size, report);
  return report;
}

bool Report::passed() const {
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(),
                                         [](const TensorReport& t) { return t.passed(); });
}

bool Report::held() const {
  return passed() && std::none_of(tensors.begin(), tensors.end(),
                                  [](const TensorReport& t) { return t.is_open(); });
}

std::int64_t Report::unbounded() const {
  std::int64_t count = 0;
  for (const TensorReport& tensor : tensors) count += tensor.unbounded;
  return count;
}

double Report::worst_ratio() const {
  double worst = 0;
  for (const TensorReport& tensor : tensors) worst = std::max(worst, tensor.worst.ratio);
  return worst;
}

std::string Report::summary() const {
  const auto worst = std::max_element(
      tensors.begin(), tensors.end(), [](const TensorReport& a, const TensorReport& b) {
        return std::pair(a.failed > 0, a.worst.ratio) < std::pair(b.failed > 0, b.worst.ratio);
      });
  if (worst == tensors.end()) return "nothing was compared";
  const WorstElement& at = worst->worst;
  if (worst->compared == 0) return worst->tensor + ": no elements";
  return worst->tensor + text({at.batch, at.head, at.token, at.channel}) + ": got " +
         digits(at.got) + ", " + worst->against + " " + digits(at.exact) + ", allowed " +
         digits(at.allowed) + ", ratio " + three_digits(at.ratio) + " (" +
         std::to_string(worst->failed) + " of " + std::to_string(worst->compared) +
         " elements fail)";
}

}  // namespace ringlab
