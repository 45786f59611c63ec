// Verdict words, and certificates that are read back.
#include "cli/report/certificate.h"

#include <gmock/gmock.h>

#include "cli/report/hop_map.h"
#include "cli/report/verdict.h"
#include "reference/core/error.h"

namespace ringlab::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

verify::LawVerdict held_law() {
  verify::LawVerdict law;
  law.id = "U";
  law.name = "equal_scores_give_the_mean";
  law.topic = "exact probes";
  law.cases = 40;
  law.worst_ratio = 0.5;
  law.worst_at = verify::Element{"o", 0, 1, 2, 3};
  law.case_digest = std::string(64, 'a');
  return law;
}

SubjectResult passing() {
  SubjectResult result;
  result.subject.name = "ring";
  result.on_input.report.tensors = {TensorReport{"o", 10, 0, {}}};
  result.laws.laws = {held_law()};
  result.rounds = 1;
  return result;
}

verify::Case two_ranks() {
  verify::Case c;
  c.shape = {1, 1, 1, 4, 4, 2, 2};
  c.mask = "causal";
  c.ranks = 2;
  return c;
}

SubjectResult failing(const verify::Element& at, verify::Ending ending) {
  SubjectResult result = passing();
  verify::LawFailure failure;
  failure.shrunk = two_ranks();
  failure.token = "ring/U/TOKEN";
  failure.message = "got </script> 1, exact 2";
  failure.at = at;
  failure.ending = ending;
  result.laws.laws[0].failure = failure;
  return result;
}

VerifyRun run_of_subjects(const std::vector<SubjectResult>& subjects) {
  VerifyRun run;
  run.problem.shape = {1, 1, 1, 8, 8, 2, 2};
  run.problem.mask = Mask({CausalMask{}}).bind(8, 8);
  run.subjects = subjects;
  return run;
}

CertificateFacts agreed_facts() {
  CertificateFacts facts{.command = {"ring"}, .written = "2026-01-31T12:00:00Z"};
  facts.oracle = {.problems = 1, .numbers = 1, .undecided = 0, .fingerprint = "f", .expected = "f"};
  facts.strength = R"({"mutants": 3, "killed": 2, "laws": ["U"]})";
  return facts;
}

TEST(Verdict, is_a_word_for_how_it_ended) {
  const verify::Element element{"o", 0, 0, 0, 0};
  EXPECT_EQ(verdict_of(passing(), 1).word, Word::pass);
  EXPECT_EQ(verdict_of(failing(element, verify::Ending::answered), 1).word, Word::fail);
  EXPECT_EQ(verdict_of(failing(element, verify::Ending::threw), 1).word, Word::fail);
  EXPECT_EQ(verdict_of(failing(element, verify::Ending::crashed), 1).word, Word::crash);
  EXPECT_EQ(verdict_of(failing(element, verify::Ending::timed_out), 1).word, Word::timeout);
  SubjectResult changing = passing();
  changing.subject.can.drop({verify::Ability::deterministic});
  EXPECT_EQ(word_text(verdict_of(changing, 1).word), "PASS-statistical");
  SubjectResult any_order = passing();
  any_order.subject.can.drop({verify::Ability::deterministic_gradients});
  EXPECT_EQ(verdict_of(any_order, 1).word, Word::pass_statistical);
  EXPECT_THAT(verdict_of(any_order, 1).sentence, HasSubstr("bits of its gradients"));
}

TEST(Verdict, is_inconclusive_where_nothing_or_too_little_was_compared) {
  SubjectResult nothing = passing();
  nothing.input_skipped = "does not compute in f16";
  nothing.laws.laws[0].cases = 0;
  nothing.laws.laws[0].skipped = "every case was discarded";
  EXPECT_EQ(verdict_of(nothing, 1).word, Word::inconclusive);
  SubjectResult poor = passing();
  poor.coverage = {.cases = 600, .classes = {{"mask prefix", 1, true}}, .is_judged = true};
  const Verdict verdict = verdict_of(poor, 1);
  EXPECT_EQ(verdict.word, Word::inconclusive);
  EXPECT_THAT(verdict.sentence, HasSubstr("mask prefix"));
}

TEST(Verdict, of_an_input_outside_its_bounds_is_a_failure) {
  SubjectResult wrong = passing();
  wrong.on_input.report.tensors[0].failed = 1;
  EXPECT_EQ(verdict_of(wrong, 1).word, Word::fail);
  EXPECT_EQ(verdict_of(wrong, 1).faults.at(0).law, "input");
}

TEST(Verdict, names_the_rank_and_the_only_step_at_which_a_row_has_keys) {
  const auto fault_at = [](const verify::Element& element) {
    return verdict_of(failing(element, verify::Ending::answered), 1).faults.at(0);
  };
  const Fault first = fault_at({"o", 0, 0, 1, 0});
  EXPECT_EQ(first.element, "o[0, 0, 1, 0]");
  EXPECT_EQ(first.rank, 0);
  EXPECT_EQ(first.step, 0);
  const Fault last = fault_at({"lse of a row", 0, 0, 3, 0});
  EXPECT_EQ(last.rank, 1);
  EXPECT_EQ(last.step, -1);  // keys of both hops
  EXPECT_EQ(fault_at({"dk", 0, 0, 2, 0}).rank, 1);
  EXPECT_EQ(fault_at({"the sum", 0, 0, 2, 0}).rank, -1);
  EXPECT_EQ(fault_at({"o", 0, 0, 99, 0}).rank, -1);  // of a longer run that the law made
}

TEST(Verdict, names_the_suspected_cause_of_the_law_that_was_looked_into) {
  SubjectResult wrong = failing({"o", 0, 0, 1, 0}, verify::Ending::answered);
  wrong.insight.of_law = "U";
  wrong.insight.diagnosis.explains = {{"mask.one_key_too_many", "query i sees key i + 1"}};
  const Verdict verdict = verdict_of(wrong, 1);
  EXPECT_THAT(verdict.faults.at(0).cause, HasSubstr("query i sees key i + 1"));
  EXPECT_THAT(verdict.sentence, HasSubstr("query i sees key i + 1"));
  wrong.insight.of_law = "P1";
  EXPECT_EQ(verdict_of(wrong, 1).faults.at(0).cause, "");
}

TEST(HopMap, follows_the_ring_in_its_direction) {
  verify::Case c = two_ranks();
  c.ranks = 4;
  const HopMap next(c);
  EXPECT_EQ(next.query_rank(3), 3);
  EXPECT_EQ(next.hop(3, 3), 0);
  EXPECT_EQ(next.hop(3, 1), 2);
  EXPECT_EQ(next.hop(3, 0), 3);
  EXPECT_EQ(next.hop(0, 3), -1);  // hidden
  c.direction = RingDirection::previous;
  EXPECT_EQ(HopMap(c).hop(3, 0), 1);
}

TEST(Certificate, comes_back_from_json_and_from_its_page_as_it_was) {
  const VerifyRun run = run_of_subjects({failing({"o", 0, 0, 1, 0}, verify::Ending::answered)});
  const CertificateJson certificate = make_certificate(run, agreed_facts());
  EXPECT_EQ(certificate.at("digest"), certificate_digest(certificate));
  for (const std::string& text : {certificate.dump(2), certificate_page(certificate)}) {
    const CertificateJson back = parse_certificate(text, "file");
    EXPECT_EQ(back, certificate);
    EXPECT_EQ(certificate_digest(back), back.at("digest"));
  }
}

TEST(Certificate, has_a_digest_that_other_programs_compute_from_its_numbers) {
  // Python's json.dumps(plain(…)), docs/certificates.md, of fractions whose shortest digits some
  // programs do not find.
  const CertificateJson certificate = {{"a", 5.0},    {"b", 9007199254740993.0},
                                       {"c", 1e-05},  {"d", {0.1, 7}},
                                       {"e", 5e-324}, {"digest", "not counted"}};
  EXPECT_EQ(certificate_digest(certificate),
            "sha256:"
            "56beda67f563597bb58c180d8a73d8ffad36f4f78fe9020dcc7d6f684d0d36a3");
}

TEST(Certificate, has_another_digest_after_any_change) {
  const CertificateJson certificate =
      make_certificate(run_of_subjects({passing()}), agreed_facts());
  const std::string digest = certificate.at("digest");
  CertificateJson changed = certificate;
  changed["subjects"][0]["laws"][0]["cases"] = 41;
  EXPECT_NE(certificate_digest(changed), digest);
  changed = certificate;
  changed["seconds"] = 1.5;
  EXPECT_NE(certificate_digest(changed), digest);
  changed = certificate;
  changed["another"] = nullptr;
  EXPECT_NE(certificate_digest(changed), digest);
}

TEST(Certificate, takes_the_gravest_word_of_its_subjects) {
  const verify::Element element{"o", 0, 0, 0, 0};
  const auto word_of = [](const std::vector<SubjectResult>& subjects) {
    return make_certificate(run_of_subjects(subjects), agreed_facts()).at("verdict");
  };
  EXPECT_EQ(word_of({passing()}), "PASS");
  EXPECT_EQ(word_of({passing(), failing(element, verify::Ending::answered)}), "FAIL");
  EXPECT_EQ(word_of({failing(element, verify::Ending::crashed), passing()}), "CRASH");
  EXPECT_EQ(word_of({}), "INCONCLUSIVE");
}

TEST(Certificate, says_nothing_with_a_reference_that_is_not_itself) {
  CertificateFacts facts = agreed_facts();
  facts.oracle.fingerprint = "g";
  const CertificateJson certificate = make_certificate(run_of_subjects({passing()}), facts);
  EXPECT_EQ(certificate.at("verdict"), "INCONCLUSIVE");
  EXPECT_THAT(certificate_words(certificate), HasSubstr("INCONCLUSIVE ring"));
}

TEST(Certificate, quotes_the_strength_of_the_suite_or_says_that_it_is_unknown) {
  CertificateFacts facts = agreed_facts();
  const auto strength_of = [&] {
    return make_certificate(run_of_subjects({passing()}), facts).at("strength");
  };
  EXPECT_EQ(strength_of().at("killed"), 2);
  EXPECT_GT(strength_of().at("laws_added_since").size(), 50u);
  for (const char* text : {"", "{", "[1]", "{}"}) {
    facts.strength = text;
    EXPECT_FALSE(strength_of().at("known").get<bool>());
  }
}

TEST(Certificate, refuses_what_is_none) {
  for (const char* text : {"", "{", "[]", "{}", "null", R"({"ringlab_certificate": "1"})",
                           "<script type=\"application/json\" id=\"certificate\">"}) {
    EXPECT_THROW(parse_certificate(text, "file"), Error) << text;
  }
  CertificateJson certificate = make_certificate(run_of_subjects({passing()}), agreed_facts());
  certificate["subjects"][0].erase("verdict");
  EXPECT_THROW(parse_certificate(certificate.dump(), "file"), Error);
}

}  // namespace
}  // namespace ringlab::report
