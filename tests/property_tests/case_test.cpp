#include "property_tests/case.h"

#include <gmock/gmock.h>

#include <cctype>

#include "property_tests/generators/cases.h"
#include "reference/core/error.h"

namespace ringlab::verify {
namespace {

using ::testing::HasSubstr;

const std::string kToken =
    "b1.h2.g1.q7.k9.d3.v2.r3.bf16.unit.zigzag.previous.peaked.simulated.rendezvous.n5.x4.y6."
    "double:2.c3.causal-window:3,inf.s123";

std::string complaint(const std::string& token) {
  try {
    from_token(token);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << token;
    return error.what();
  }
  return "accepted: " + token;
}

std::string with(const std::string& from, const std::string& to) {
  std::string token = kToken;
  return token.replace(token.find(from), from.size(), to);
}

TEST(Case, survives_its_token_for_a_thousand_random_cases) {
  Draws draws(20240501);
  for (int i = 0; i < 1000; ++i) {
    const Case c = random_case(draws);
    const std::string token = to_token(c);
    ASSERT_EQ(from_token(token), c) << token;
  }
}

TEST(Case, has_a_token_that_a_shell_leaves_alone) {
  Draws draws(7);
  for (int i = 0; i < 1000; ++i) {
    for (const char letter : to_token(random_case(draws))) {
      ASSERT_TRUE(std::isalnum(static_cast<unsigned char>(letter)) ||
                  std::string(".:,-_").find(letter) != std::string::npos)
          << letter;
    }
  }
}

TEST(Case, reads_every_field_of_a_token) {
  const Case c = from_token(kToken);
  EXPECT_EQ(c.shape, (Shape{1, 2, 1, 7, 9, 3, 2}));
  EXPECT_EQ(c.ranks, 3);
  EXPECT_EQ(c.dtype, DType::bf16);
  EXPECT_EQ(c.scale, ScaleKind::unit);
  EXPECT_EQ(c.layout, LayoutKind::zigzag);
  EXPECT_EQ(c.direction, RingDirection::previous);
  EXPECT_EQ(c.family, Family::peaked);
  EXPECT_EQ(c.transport, TransportKind::simulated);
  EXPECT_TRUE(c.rendezvous);
  EXPECT_EQ(c.delay_seed, 5u);
  EXPECT_EQ(c.tile_queries, 4);
  EXPECT_EQ(c.tile_keys, 6);
  EXPECT_EQ(c.schedule, ScheduleKind::double_ring);
  EXPECT_EQ(c.node_ranks, 2);
  EXPECT_EQ(c.slots, 3);
  EXPECT_EQ(c.mask.text(), "causal+window:3,inf");
  EXPECT_EQ(c.seed, 123u);
  EXPECT_EQ(to_token(c), kToken);
}

TEST(Case, names_its_modifiers_in_its_token) {
  const Case plain = from_token(kToken);
  EXPECT_FALSE(plain.modifiers.any());
  EXPECT_EQ(modifiers_text(make_problem(plain).modifiers), "none");
  const std::string token = with(".s123", ".with:cap8-alibi-sinks-drop30.s123");
  const Case c = from_token(token);
  EXPECT_EQ(c.modifiers,
            (CaseModifiers{.softcap = 8, .alibi = true, .sinks = true, .dropout_percent = 30}));
  EXPECT_EQ(to_token(c), token);
  const Modifiers modifiers = make_problem(c).modifiers;
  EXPECT_EQ(modifiers.softcap, 8);
  EXPECT_EQ(modifiers.alibi_slopes.size(), 2u);
  EXPECT_EQ(modifiers.sinks.size(), 2u);
  EXPECT_EQ(modifiers.dropout, 0.3);
  EXPECT_EQ(modifiers.dropout_seed, 123u);
  const std::string parted = with(".s123", ".with:cap0,75-sinks.s123");
  EXPECT_EQ(make_problem(from_token(parted)).modifiers.softcap, 0.75);
  EXPECT_EQ(to_token(from_token(parted)), parted);
  EXPECT_THAT(describe(from_token(parted)), HasSubstr("soft cap 0.75"));
  for (const char* wrong :
       {"with:", "with:cap0", "with:cap0,3", "with:cap1025", "with:cap1e2", "with:capinf",
        "with:drop91", "with:alibi-cap8", "with:sinks-sinks", "with:cap8-", "with:capx"}) {
    EXPECT_THROW(from_token(with(".s123", std::string(".") + wrong + ".s123")), Error) << wrong;
  }
}

// One kernel reads the slopes, another knows only the customary ones, or those of the first head.
TEST(Case, has_slopes_that_no_head_can_tell_from_another) {
  int customary = 0, none = 0;
  for (int seed = 1; seed <= 200; ++seed) {
    const std::string end = ".with:alibi.s" + std::to_string(seed);
    const Case c = from_token(with(".s123", end));
    const std::vector<double> slopes = make_problem(c).modifiers.alibi_slopes;
    EXPECT_EQ(slopes, make_problem(c).modifiers.alibi_slopes) << seed;
    EXPECT_NE(slopes[0], slopes[1] == 0 ? -1 : slopes[1]) << seed;
    customary += slopes == default_alibi_slopes(2);
    none += slopes[0] == 0;
  }
  EXPECT_GT(customary, 20);
  EXPECT_LT(customary, 80);
  EXPECT_GT(none, 5);
}

TEST(Case, names_its_threads_in_its_token_where_there_are_several) {
  EXPECT_EQ(from_token(kToken).threads, 1);
  const std::string token = with(".c3.", ".c3.t4.");
  EXPECT_EQ(from_token(token).threads, 4);
  EXPECT_EQ(to_token(from_token(token)), token);
  EXPECT_EQ(make_options(from_token(token)).threads, 4);
  EXPECT_THAT(complaint(with(".c3.", ".c3.t1.")), HasSubstr("field t"));
}

TEST(Case, names_the_field_of_a_malformed_token) {
  EXPECT_THAT(complaint(""), HasSubstr("field b"));
  EXPECT_THAT(complaint("b1.h2"), HasSubstr("field g"));
  EXPECT_THAT(complaint(with("b1.", "c1.")), HasSubstr("field b"));
  EXPECT_THAT(complaint(with("b1.", "b0.")), HasSubstr("field b"));
  EXPECT_THAT(complaint(with("b1.", "b1x.")), HasSubstr("field b"));
  EXPECT_THAT(complaint(with("q7.", "q-7.")), HasSubstr("field q"));
  EXPECT_THAT(complaint(with("q7.", "q99999999999999999999.")), HasSubstr("field q"));
  EXPECT_THAT(complaint(with("g1.", "g2.h2.g1.")), HasSubstr("field q"));
  EXPECT_THAT(complaint(with("h2.g1", "h3.g2")), HasSubstr("field h"));
  EXPECT_THAT(complaint(with("bf16", "bf17")), HasSubstr("field dtype"));
  EXPECT_THAT(complaint(with("bf16", "fp8_e4m3")), HasSubstr("field dtype"));
  EXPECT_THAT(complaint(with("unit", "two")), HasSubstr("field scale"));
  EXPECT_THAT(complaint(with("zigzag", "zig")), HasSubstr("field layout"));
  EXPECT_THAT(complaint(with("previous", "back")), HasSubstr("field direction"));
  EXPECT_THAT(complaint(with("peaked", "flat")), HasSubstr("field family"));
  EXPECT_THAT(complaint(with("simulated", "mpi")), HasSubstr("field transport"));
  EXPECT_THAT(complaint(with("rendezvous", "loud")), HasSubstr("field sends"));
  EXPECT_THAT(complaint(with("x4", "x0")), HasSubstr("field x"));
  EXPECT_THAT(complaint(with("double:2", "double:0")), HasSubstr("field schedule"));
  EXPECT_THAT(complaint(with("double:2", "star")), HasSubstr("field schedule"));
  EXPECT_THAT(complaint(with("c3", "c0")), HasSubstr("field c"));
  EXPECT_THAT(complaint(with("window:3,inf", "window:3")), HasSubstr("field mask"));
  EXPECT_THAT(complaint(with("window:3,inf", "documents:3,3")), HasSubstr("field mask"));
  EXPECT_THAT(complaint(with("window:3,inf", "file:x")), HasSubstr("field mask"));
  EXPECT_THAT(complaint(with("window:3,inf", "bits:x")), HasSubstr("field mask"));
  EXPECT_THAT(complaint(with("s123", "s")), HasSubstr("field s"));
  EXPECT_THAT(complaint(kToken + ".more"), HasSubstr("field end"));
  EXPECT_THAT(complaint(kToken + "."), HasSubstr("field end"));
}

TEST(Case, refuses_a_token_that_would_not_fit_in_memory) {
  EXPECT_THAT(complaint("b1024.h1024.g1" + with("d3.", "d65536.").substr(8)),
              HasSubstr("2^26 elements"));
  EXPECT_THAT(complaint(with("q7.k9", "q8192.k8192")), HasSubstr("accepted"));
  EXPECT_THAT(complaint(with("q7.k9", "q1048576.k0")), HasSubstr("accepted"));
  EXPECT_THAT(complaint(with("q7.k9", "q8192.k8193")), HasSubstr("2^26 pairs"));
  // Many small matrices are a large one.
  std::string many = "bits:1";
  for (int i = 0; i < 500; ++i) many += "-bits:1";
  EXPECT_THAT(complaint(with("window:3,inf", many)), HasSubstr("accepted"));
  EXPECT_THAT(complaint("b1.h2.g1.q128.k128" + with("window:3,inf", many).substr(14)),
              HasSubstr("2^20 pairs together"));
  EXPECT_THAT(complaint("b1.h1.g1.q2048.k2048.d1.v1.r1.f32.unit.zigzag.next.normal.threads."
                        "buffered.n0.x1.y1.ring.c2.bits:1.s1"),
              HasSubstr("field mask"));
}

TEST(Case, describes_itself_in_words) {
  EXPECT_EQ(describe(from_token(kToken)),
            "3 ranks (zigzag), causal+window:3,inf, peaked values, bf16, q (1, 2, 7, 3), "
            "k (1, 1, 9, 3), v (1, 1, 9, 2), scale 1, tiles 4x6, simulated delays 5, rendezvous "
            "sends, ring towards the previous rank, schedule double:2, 3 slots, seed 123");
}

TEST(Case, keeps_the_random_bits_of_a_pair_when_the_shape_shrinks) {
  Case large = from_token(kToken);
  large.mask = "bits:11";
  Case small = large;
  small.shape.q_tokens = 4;
  small.shape.kv_tokens = 5;
  const Mask a = make_problem(large).mask;
  const Mask b = make_problem(small).mask;
  int visible = 0;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5; ++j) {
      EXPECT_EQ(a.allows(i, j), b.allows(i, j));
      visible += b.allows(i, j);
    }
  }
  EXPECT_GT(visible, 5);
  EXPECT_LT(visible, 18);
}

TEST(Case, is_made_valid_by_fitting) {
  Case c = from_token(kToken);
  c.shape.kv_heads = 2;
  c.shape.q_heads = 3;
  c.shape.kv_tokens = 5;
  c.mask = "documents:4,4+causal";
  c = fitted(c);
  EXPECT_EQ(c.shape.q_heads, 2);
  EXPECT_EQ(c.mask.text(), "documents:4,1+causal");
  c.shape.kv_tokens = 9;
  EXPECT_EQ(fitted(c).mask, "documents:4,5+causal");
}

TEST(Case, becomes_options_that_keep_its_fields) {
  const RunOptions options = make_options(from_token(kToken));
  EXPECT_EQ(options.ranks, 3);
  EXPECT_EQ(options.layout, LayoutKind::zigzag);
  EXPECT_EQ(options.direction, RingDirection::previous);
  EXPECT_EQ(options.transport, TransportKind::simulated);
  EXPECT_TRUE(options.rendezvous);
  EXPECT_EQ(options.delay_seed, 5u);
  EXPECT_EQ(options.tile_queries, 4);
  EXPECT_EQ(options.tile_keys, 6);
  EXPECT_EQ(options.schedule, ScheduleKind::double_ring);
  EXPECT_EQ(options.node_ranks, 2);
  EXPECT_EQ(options.slots, 3);
  EXPECT_EQ(make_problem(from_token(kToken)).scale, 1.0);
}

}  // namespace
}  // namespace ringlab::verify
