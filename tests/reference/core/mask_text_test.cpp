#include "reference/core/mask_text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/core/error.h"

namespace ringlab {
namespace {

BitMask two_by_two(const std::string& path) {
  return {2, 2, std::vector<std::uint8_t>(4, std::uint8_t{1}), path};
}

std::string reprinted(const std::string& text) { return parse_mask(text, two_by_two).text(); }

TEST(MaskTextTest, every_form_of_the_command_line_prints_as_it_was_read) {
  for (const char* text :
       {"full", "causal", "window:128,0", "window:inf,3", "window:3,inf", "window:inf,inf",
        "documents:3", "documents:3,0,12,1", "prefix:0", "prefix:7", "file:m.npy",
        "causal+window:128,0", "documents:1,2+causal+prefix:1", "file:a/b.npy+causal",
        "causal+file:c++/m.npy", "file:x+y.npy+full+causal"}) {
    EXPECT_EQ(reprinted(text),
              text == std::string("file:x+y.npy+full+causal") ? "file:x+y.npy+causal" : text);
  }
}

TEST(MaskTextTest, full_changes_nothing_in_an_intersection) {
  EXPECT_EQ(reprinted("full+causal"), "causal");
  EXPECT_EQ(reprinted("full+full"), "full");
  EXPECT_EQ(parse_mask("full").terms().size(), 0u);
}

TEST(MaskTextTest, numbers_reach_the_terms) {
  const Mask mask = parse_mask("window:4,inf+documents:2,3+prefix:6");
  ASSERT_EQ(mask.terms().size(), 3u);
  EXPECT_EQ(std::get<WindowMask>(mask.terms()[0]).left, 4);
  EXPECT_EQ(std::get<WindowMask>(mask.terms()[0]).right, WindowMask::kUnlimited);
  EXPECT_EQ(std::get<DocumentsMask>(mask.terms()[1]).lengths, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::get<PrefixMask>(mask.terms()[2]).tokens, 6);
}

TEST(MaskTextTest, paths_are_handed_to_the_loader_whole) {
  std::vector<std::string> paths;
  const auto load = [&paths](const std::string& path) {
    paths.push_back(path);
    return BitMask{};
  };
  parse_mask("file:c++/a.npy+causal+file:b+causal.npy+file:full", load);
  EXPECT_EQ(paths, (std::vector<std::string>{"c++/a.npy", "b+causal.npy", "full"}));
}

TEST(MaskTextTest, a_document_mask_without_documents_prints_as_one_empty_document) {
  EXPECT_EQ(Mask({DocumentsMask{}}).text(), "documents:0");
}

struct Malformed {
  const char* text;
  const char* word;  ///< what the message must quote
};

TEST(MaskTextTest, malformed_texts_are_usage_errors_that_quote_the_word) {
  for (const Malformed& bad :
       std::vector<Malformed>{{"", ""},
                              {"+", ""},
                              {"causal+", ""},
                              {"+causal", ""},
                              {"causal++full", ""},
                              {"casual", "casual"},
                              {"full+casual", "casual"},
                              {"Causal", "Causal"},
                              {"causal ", "causal "},
                              {"causal:", "causal:"},
                              {"full:1", "full:1"},
                              {"window", "window"},
                              {"window:", "window:"},
                              {"window:1", "window:1"},
                              {"window:1,2,3", "window:1,2,3"},
                              {"window:,1", "window:,1"},
                              {"window:1,", "window:1,"},
                              {"window:-1,2", "window:-1,2"},
                              {"window:1, 2", "window:1, 2"},
                              {"window:infinity,0", "window:infinity,0"},
                              {"window:1.5,0", "window:1.5,0"},
                              {"window:0x3,0", "window:0x3,0"},
                              {"documents", "documents"},
                              {"documents:", "documents:"},
                              {"documents:3,", "documents:3,"},
                              {"documents:3,,1", "documents:3,,1"},
                              {"documents:-3", "documents:-3"},
                              {"documents:inf", "documents:inf"},
                              {"prefix", "prefix"},
                              {"prefix:", "prefix:"},
                              {"prefix:1,2", "prefix:1,2"},
                              {"causal+prefix:x", "prefix:x"},
                              {"prefix:9223372036854775808", "prefix:9223372036854775808"},
                              {"file", "file"},
                              {"file:", "file:"}}) {
    try {
      parse_mask(bad.text, two_by_two);
      ADD_FAILURE() << "accepted: " << bad.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(std::string(error.what()).find("\"" + std::string(bad.word) + "\""),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(MaskTextTest, a_file_where_none_can_be_loaded_is_a_usage_error) {
  EXPECT_THROW(parse_mask("causal+file:m.npy"), Error);
}

MaskTerm draw_term() {
  const auto number = rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000);
  const auto limit = rc::gen::oneOf(number, rc::gen::just(WindowMask::kUnlimited));
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return CausalMask{};
    case 1:
      return WindowMask{*limit, *limit};
    case 2:
      return DocumentsMask{
          *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(number))};
    case 3:
      return PrefixMask{*number};
    default:
      return two_by_two(*rc::gen::nonEmpty(rc::gen::string<std::string>()));
  }
}

RC_GTEST_PROP(MaskTextTest, any_mask_is_read_back_from_its_text, ()) {
  std::vector<MaskTerm> terms(static_cast<std::size_t>(*rc::gen::inRange(0, 4)));
  for (MaskTerm& term : terms) term = draw_term();
  const std::string text = Mask(terms).text();
  const Mask back = parse_mask(text, two_by_two);
  RC_ASSERT(back.text() == text);
  RC_ASSERT(back.terms().size() == terms.size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    RC_ASSERT(back.terms()[i].index() == terms[i].index());
  }
}

RC_GTEST_PROP(MaskTextTest, arbitrary_text_is_read_or_refused_but_never_crashes,
              (const std::string& noise)) {
  const auto prefix =
      *rc::gen::element<std::string>("", "window:", "documents:", "causal+", "file:");
  try {
    const std::string text = parse_mask(prefix + noise, two_by_two).text();
    RC_ASSERT(reprinted(text) == text);
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::usage);
  }
}

}  // namespace
}  // namespace ringlab
