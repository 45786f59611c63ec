#include "property_tests/oracle_check.h"

#include <cmath>

#include "property_tests/sha256.h"
#include "reference/attention/exact.h"

namespace ringlab::verify {
namespace {

// The fingerprint that 113-bit arithmetic gives (tests/property_tests/oracle_check_test.cpp).
constexpr const char* kExpectedFingerprint =
    "303cd3c5de14045b39ad0e54c0a16a90c8d6434d3eb0367a59c4e565642d823d";

constexpr double kGrid = 0x1p20;

constexpr const char* kOracleProblems[] = {
    "b1.h1.g1.q1.k1.d1.v1.r1.f64.rsqrt.contiguous.next.normal.threads.buffered.n0.x4.y4.ring.c2."
    "full."
    "s1",
    "b1.h2.g1.q7.k9.d3.v2.r1.f32.rsqrt.contiguous.next.normal.threads.buffered.n0.x4.y4.ring.c2."
    "causal.s2",
    "b2.h3.g3.q5.k8.d4.v4.r1.f64.unit.contiguous.next.peaked.threads.buffered.n0.x4.y4.ring.c2."
    "window:2,1.s3",
    "b1.h4.g2.q11.k11.d8.v5.r1.bf16.rsqrt.contiguous.next.uniform.threads.buffered.n0.x4.y4.ring."
    "c2."
    "documents:3,0,8,0.s4",
    "b1.h1.g1.q6.k10.d2.v3.r1.f16.rsqrt.contiguous.next.small_ints.threads.buffered.n0.x4.y4.ring."
    "c2."
    "prefix:4.s5",
    "b1.h2.g2.q9.k9.d3.v3.r1.f32.rsqrt.contiguous.next.late_maximum.threads.buffered.n0.x4.y4.ring."
    "c2.bits:7.s6",
    "b1.h2.g1.q13.k13.d5.v1.r1.f64.rsqrt.contiguous.next.early_maximum.threads.buffered.n0.x4.y4."
    "ring.c2.causal+window:3,inf.s7",
    "b1.h1.g1.q4.k0.d2.v2.r1.f32.rsqrt.contiguous.next.normal.threads.buffered.n0.x4.y4.ring.c2."
    "full."
    "s8",
    "b1.h3.g1.q6.k2.d2.v2.r1.f64.rsqrt.contiguous.next.constant_v.threads.buffered.n0.x4.y4.ring."
    "c2."
    "causal.s9",
    "b1.h2.g2.q8.k8.d3.v4.r1.f64.rsqrt.contiguous.next.normal.threads.buffered.n0.x4.y4.ring.c2."
    "causal.with:cap8-alibi-sinks-drop30.s10",
    "b1.h1.g1.q3.k31.d6.v2.r1.f64.unit.contiguous.next.huge_gaps.threads.buffered.n0.x4.y4.ring.c2."
    "full.s11",
};

void add_tensor(GridDigest& digest, const Tensor<double>& values, const Tensor<double>& errors) {
  for (std::size_t i = 0; i < values.values().size(); ++i) {
    digest.add(values.values()[i], errors.values()[i]);
  }
}

void add_answers(GridDigest& digest, const Case& c) {
  const AttentionTensors tensors = make_tensors(c);
  const Problem problem = make_problem(c);
  const AttentionInput input = tensors.input(problem);
  const ExactForward forward = exact_forward(input);
  add_tensor(digest, forward.out, forward.out_error);
  add_tensor(digest, forward.lse, forward.lse_error);
  const Tensor<double> dout = make_dout(c);
  const ExactBackward backward = exact_backward(input, dout.view());
  add_tensor(digest, backward.dq, backward.dq_error);
  add_tensor(digest, backward.dk, backward.dk_error);
  add_tensor(digest, backward.dv, backward.dv_error);
}

}  // namespace

void GridDigest::add_problem(const Case& c) { text_ += to_token(c) + "\n"; }

void GridDigest::add(double value, double error) {
  ++numbers_;
  if (std::isinf(value)) {
    text_ += value > 0 ? "inf\n" : "-inf\n";
    return;
  }
  // Rounds to the nearest point, so that a number on the grid is in the middle of its cell.
  const double low = std::floor((value - error) * kGrid + 0.5);
  const double high = std::floor((value + error) * kGrid + 0.5);
  if (!(low == high)) {
    ++undecided_;
    text_ += "undecided\n";
    return;
  }
  text_ += std::to_string(static_cast<std::int64_t>(low)) + "\n";
}

std::string GridDigest::finish() const { return sha256(text_); }

std::vector<Case> oracle_problems() {
  std::vector<Case> problems;
  for (const char* token : kOracleProblems) problems.push_back(from_token(token));
  return problems;
}

OracleCheck check_oracle() {
  OracleCheck check;
  GridDigest digest;
  for (const Case& c : oracle_problems()) {
    digest.add_problem(c);
    add_answers(digest, c);
    ++check.problems;
  }
  check.numbers = digest.numbers();
  check.undecided = digest.undecided();
  check.fingerprint = digest.finish();
  check.expected = kExpectedFingerprint;
  return check;
}

}  // namespace ringlab::verify
