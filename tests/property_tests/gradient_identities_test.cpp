// Sums over gradients: those of the engine are what rounding makes likely, lost ones are not.
#include "property_tests/gradient_identities.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "optimized/ring/engine.h"
#include "property_tests/generators/random_rows.h"
#include "property_tests/subject_list.h"
#include "reference/core/shards.h"
#include "tests/printed.h"

namespace ringlab::verify {
namespace {

using ::testing::ElementsAre;

struct IdentityRun {
  Problem problem;
  RunOptions options;
  std::uint64_t seed = 1;
};

Tensor<double> random_doubles(const IdentityRun& run, RandomTensor tensor, const Extents& extents) {
  Tensor<double> wide(extents);
  with_element_type(run.problem.dtype, [&]<class Element>(Element) {
    const Tensor<Element> made =
        random_tensor<Element>({run.seed, tensor}, extents, Positions::all(extents.tokens));
    for (std::size_t i = 0; i < made.values().size(); ++i) {
      wide.values()[i] = static_cast<double>(made.values()[i]);
    }
  });
  return wide;
}

/// What goes into a run and what comes out of it.
struct Computed {
  IdentityRun run;
  AttentionTensors data;
  Tensor<double> dout, out;
  AttentionGradients gradients;

  GradientIdentities none() const {
    return {run.problem, engine_subject().profile(run.problem, run.options)};
  }
  void add(const Positions& queries, const Positions& keys, GradientIdentities& sums) const {
    const auto of_queries = [&](const Tensor<double>& x) {
      return shard_of<double>(x.view(), queries);
    };
    const auto of_keys = [&](const Tensor<double>& x) { return shard_of<double>(x.view(), keys); };
    const Tensor<double> q = of_queries(data.q), g = of_queries(dout), o = of_queries(out),
                         dq = of_queries(gradients.dq), k = of_keys(data.k), v = of_keys(data.v),
                         dk = of_keys(gradients.dk), dv = of_keys(gradients.dv);
    sums.add<double>({queries, q.view(), g.view(), o.view(), dq.view(), k.view(), v.view(),
                      dk.view(), dv.view()});
  }
  std::vector<Identity> identities() const {
    const Shape& shape = run.problem.shape;
    GradientIdentities sums = none();
    add(Positions::all(shape.q_tokens), Positions::all(shape.kv_tokens), sums);
    return sums.results();
  }
  double worst() const {
    double most = 0;
    for (const Identity& identity : identities()) most = std::max(most, identity.worst);
    return most;
  }
};

Computed compute(const IdentityRun& run) {
  const Shape& shape = run.problem.shape;
  Computed computed{run,
                    {random_doubles(run, RandomTensor::q, shape.q()),
                     random_doubles(run, RandomTensor::k, shape.k()),
                     random_doubles(run, RandomTensor::v, shape.v())},
                    random_doubles(run, RandomTensor::dout, shape.out()),
                    {},
                    {}};
  AttentionInput input = computed.data.input(run.problem);
  input.dout = std::as_const(computed.dout).view();
  RunResult result = ring::Engine().run(input, run.options);
  computed.out = std::move(result.output.out);
  computed.gradients = std::move(*result.gradients);
  return computed;
}

IdentityRun causal_run(DType dtype, std::int64_t tokens, int ranks) {
  const Shape shape{.batch = 2,
                    .q_heads = 4,
                    .kv_heads = 2,
                    .q_tokens = tokens,
                    .kv_tokens = tokens,
                    .head_dim = 16,
                    .v_dim = 8};
  IdentityRun run;
  run.problem = {.shape = shape,
                 .dtype = dtype,
                 .scale = 0.25,
                 .mask = Mask({CausalMask{}}).bind(tokens, tokens)};
  run.options.ranks = ranks;
  run.options.layout = LayoutKind::zigzag;
  return run;
}

class IdentitiesOf : public testing::TestWithParam<DType> {};

TEST_P(IdentitiesOf, correct_gradients_hold_for_any_number_of_tokens_and_ranks) {
  double most = 0;
  for (const std::int64_t tokens : {1, 2, 3, 5, 17, 64, 301}) {
    for (const int ranks : {1, 3, 8}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        IdentityRun run = causal_run(GetParam(), tokens, ranks);
        run.seed = seed;
        for (const Identity& identity : compute(run).identities()) {
          EXPECT_TRUE(identity.holds()) << identity.name << " " << identity.worst << " "
                                        << identity.where << ", " << tokens << " tokens, " << ranks;
          most = std::max(most, identity.worst);
        }
      }
    }
  }
  RecordProperty("most", std::to_string(most));
  EXPECT_LT(most, Identity::kMost / 2) << "too near to be sure";
  EXPECT_GT(most, 0);
}

TEST_P(IdentitiesOf, correct_gradients_hold_with_every_mask_and_modifier) {
  for (const char* mask :
       {"full", "window:5,0", "window:3,4", "documents:40,100,60", "prefix:30"}) {
    for (int kind = 0; kind < 4; ++kind) {
      IdentityRun run = causal_run(GetParam(), 200, 3);
      run.problem.mask = parse_mask(mask).bind(200, 200);
      if (kind == 1) run.problem.modifiers.softcap = 2;
      if (kind == 2) run.problem.modifiers.alibi_slopes = {0.5, 0.25, 0.125, 0.0625};
      if (kind == 3) run.problem.modifiers.sinks = {0, 1, 2, 3};
      for (const Identity& identity : compute(run).identities()) {
        EXPECT_TRUE(identity.holds())
            << mask << " " << kind << " " << identity.name << " " << identity.worst;
      }
    }
  }
}

using Change = std::function<void(Computed&)>;

void scale_tokens(Tensor<double>& x, std::int64_t first, std::int64_t end, double factor) {
  const Extents& e = x.extents();
  for_each_index({e.batch, 1, end - first, e.channels},
                 [&](auto b, auto, auto t, auto c) { x(b, 1, first + t, c) *= factor; });
}
/// Every token gets the gradient of the one before it.
void shift_tokens(Tensor<double>& x) {
  const Tensor<double> before = x;
  const Extents& e = x.extents();
  for_each_index(e, [&](auto b, auto h, auto t, auto c) {
    x(b, h, t, c) = before(b, h, (t + e.tokens - 1) % e.tokens, c);
  });
}

TEST_P(IdentitiesOf, wrong_gradients_do_not_hold) {
  const std::vector<std::pair<const char*, Change>> changes = {
      {"dv of an eighth of the keys is lost",
       [](Computed& x) { scale_tokens(x.gradients.dv, 64, 128, 0); }},
      {"dk of an eighth of the keys is lost",
       [](Computed& x) { scale_tokens(x.gradients.dk, 64, 128, 0); }},
      {"dq of an eighth of the queries is lost",
       [](Computed& x) { scale_tokens(x.gradients.dq, 64, 128, 0); }},
      {"dv of an eighth of the keys is counted twice",
       [](Computed& x) { scale_tokens(x.gradients.dv, 64, 128, 2); }},
      {"dk lacks the scale", [](Computed& x) { scale_tokens(x.gradients.dk, 0, 512, 4); }},
      {"dq has the other sign", [](Computed& x) { scale_tokens(x.gradients.dq, 0, 512, -1); }},
      {"dv belongs to the next token", [](Computed& x) { shift_tokens(x.gradients.dv); }},
      {"dk belongs to the next token", [](Computed& x) { shift_tokens(x.gradients.dk); }},
      {"dq belongs to the next token", [](Computed& x) { shift_tokens(x.gradients.dq); }},
      {"one number is none",
       [](Computed& x) { x.gradients.dk(1, 0, 7, 3) = std::numeric_limits<double>::quiet_NaN(); }}};
  const Computed right = compute(causal_run(GetParam(), 512, 4));
  for (const auto& [what, change] : changes) {
    Computed wrong = right;
    change(wrong);
    EXPECT_GT(wrong.worst(), Identity::kMost) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, IdentitiesOf,
                         testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16),
                         [](const auto& dtype) {
                           return std::string(dtype_info(dtype.param).name);
                         });

void expect_the_same(const std::vector<Identity>& a, const std::vector<Identity>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t n = 0; n < a.size(); ++n) {
    EXPECT_EQ(a[n].name, b[n].name);
    EXPECT_NEAR(a[n].worst, b[n].worst, 1e-4);  // sums of doubles in another order
  }
}

TEST(GradientIdentities, are_the_same_whoever_holds_the_tokens) {
  const Computed computed = compute(causal_run(DType::f32, 100, 3));
  const Layout layout(LayoutKind::zigzag, 100, 3);
  GradientIdentities by_one = computed.none(), by_each = computed.none();
  for (int rank = 0; rank < 3; ++rank) {
    const Positions tokens = layout.positions(rank);
    computed.add(tokens, tokens, by_one);
    GradientIdentities of_rank = computed.none();
    computed.add(tokens, tokens, of_rank);
    by_each.add_gathered(of_rank.gathered());
  }
  expect_the_same(by_one.results(), computed.identities());
  expect_the_same(by_each.results(), computed.identities());
  EXPECT_TRUE(by_each.hold());
}

TEST(GradientIdentities, do_not_hold_when_what_one_rank_gathered_is_missing) {
  const Computed computed = compute(causal_run(DType::f32, 100, 3));
  const Layout layout(LayoutKind::zigzag, 100, 3);
  GradientIdentities sums = computed.none();
  for (const int rank : {0, 2}) {
    computed.add(layout.positions(rank), layout.positions(rank), sums);
  }
  EXPECT_FALSE(sums.hold());
}

std::vector<std::string> laws_of(const IdentityRun& run) {
  std::vector<std::string> laws;
  for (const Identity& identity : compute(run).identities()) laws.push_back(identity.law);
  return laws;
}

TEST(GradientIdentities, of_weights_that_do_not_sum_to_one_leave_out_the_sum_of_dv) {
  IdentityRun run = causal_run(DType::f32, 40, 2);
  EXPECT_THAT(laws_of(run), ElementsAre("P40", "P42", "P43"));
  run.problem.modifiers.dropout = 0.25;
  EXPECT_THAT(laws_of(run), ElementsAre("P42", "P43"));
  run.problem.modifiers = {.sinks = {1, 1, 1, 1}};
  EXPECT_THAT(laws_of(run), ElementsAre("P42", "P43"));
}

TEST(GradientIdentities, do_not_hold_where_nothing_can_be_said_of_one_head) {
  Computed computed = compute(causal_run(DType::f64, 40, 2));
  // The first K/V head: queries whose squares overflow, and outputs of zero. So its error is NaN,
  // and the heads after it are right.
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 40; ++i) {
      computed.data.q(0, h, i, 0) = 1e200;
      for (std::int64_t c = 0; c < 8; ++c) computed.out(0, h, i, c) = 0;
    }
  }
  const Identity linear = computed.identities()[2];
  EXPECT_EQ(linear.law, "P43");
  EXPECT_FALSE(linear.holds()) << linear.worst;
  EXPECT_EQ(linear.where, "batch 0, K/V head 0");
}

TEST(GradientIdentities, do_not_count_queries_that_see_nothing) {
  IdentityRun run = causal_run(DType::f32, 60, 2);
  run.problem.shape.kv_tokens = 20;  // the first 40 queries come before all keys
  run.problem.mask = Mask({CausalMask{}}).bind(60, 20);
  for (const Identity& identity : compute(run).identities()) {
    EXPECT_TRUE(identity.holds()) << identity.name << " " << identity.worst;
  }
}

}  // namespace
}  // namespace ringlab::verify
