// Messages that are not what they should be: found where they arrive, with the sender named, and
// the next run is right.
#include "optimized/ring/host/message.h"
#include "tests/optimized/ring/meddler.h"
#include "tests/optimized/ring/small_run.h"

namespace ringlab::ring {
namespace {

constexpr int kRanks = 3;
constexpr int kLiar = 1;
constexpr std::size_t kAgreementRounds = 2;

class BrokenMessages : public testing::TestWithParam<Transport> {
 protected:
  BrokenMessages()
      : run_(small_run(GetParam(), kRanks, Pass::backward)),
        right_(Engine().run(run_.input(), run_.options)) {
    record();
  }

  /// What the liar sends when it does not lie; the first messages are the agreement's.
  const std::vector<Bytes>& honest() const { return honest_; }
  bool is_header(std::size_t message) const {
    return honest_[message].size() == static_cast<std::size_t>(header_bytes(kRanks));
  }

  /// Dies naming the liar and saying `found`, and leaves nothing that the next run could trip over.
  void expect_found(const Meddling& meddling, const std::string& found) {
    const std::optional<RankFailure> failure = failure_of(meddled(kLiar, meddling), run_);
    ASSERT_TRUE(failure) << "nobody noticed; due: " << found;
    EXPECT_EQ(failure->suspect, kLiar) << failure->reason;
    EXPECT_NE(failure->rank, kLiar) << failure->reason;
    EXPECT_NE(failure->reason.find(found), std::string::npos) << failure->reason;
    EXPECT_GE(failure->step, 0) << failure->operation;
    EXPECT_NE(failure->operation.find("from rank 1"), std::string::npos) << failure->operation;
    EXPECT_TRUE(same_bits(Engine().run(run_.input(), run_.options), right_));
  }

  /// Message number `message` replaced, all others as wanted.
  static Meddling instead(std::size_t message, Bytes bytes) {
    return [message, bytes = std::move(bytes)](const std::vector<Bytes>& wanted) {
      return wanted.size() == message + 1 ? bytes : wanted.back();
    };
  }

  SmallRun run_;
  RunResult right_;

 private:
  void record() {
    const Meddling listen = [this](const std::vector<Bytes>& wanted) {
      honest_ = wanted;
      return wanted.back();
    };
    EXPECT_FALSE(failure_of(meddled(kLiar, listen), run_));
  }

  std::vector<Bytes> honest_;
};
INSTANTIATE_TEST_SUITE_P(Transports, BrokenMessages, testing::ValuesIn(in_process_transports()),
                         transport_name);

Bytes flipped(Bytes bytes, std::size_t bit) {
  bytes[bit / 8] ^= std::byte(1 << (bit % 8));
  return bytes;
}
MessageHeader header_in(const Bytes& bytes) { return read_header(bytes, kRanks).header; }

TEST_P(BrokenMessages, every_flipped_bit_of_every_header_is_found) {
  for (std::size_t message = kAgreementRounds; message < honest().size(); ++message) {
    if (!is_header(message)) continue;
    // All bits of the first header, and of the others every seventh: they share the code.
    const std::size_t stride = message == kAgreementRounds ? 1 : 7;
    for (std::size_t bit = 0; bit < 8 * honest()[message].size(); bit += stride) {
      const char* found = bit < 64 ? "wrong magic number" : "a damaged header";
      const Meddling meddling = [=](const std::vector<Bytes>& wanted) {
        return wanted.size() == message + 1 ? flipped(wanted.back(), bit) : wanted.back();
      };
      expect_found(meddling, found);
      if (HasFailure()) FAIL() << "message " << message << ", bit " << bit;
    }
  }
}

TEST_P(BrokenMessages, half_of_any_message_is_found) {
  for (std::size_t message = kAgreementRounds; message < honest().size(); ++message) {
    Bytes half = honest()[message];
    half.resize(half.size() / 2);
    expect_found(instead(message, half), "disagree about the size");
    if (HasFailure()) FAIL() << "message " << message;
  }
}

TEST_P(BrokenMessages, half_of_a_round_of_the_agreement_is_found_before_any_data_moves) {
  for (std::size_t message = 0; message < kAgreementRounds; ++message) {
    Bytes half = honest()[message];
    half.resize(half.size() / 2);
    const auto failure = failure_of(meddled(kLiar, instead(message, half)), run_);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->suspect, kLiar);
    EXPECT_LT(failure->step, 0);
  }
}

TEST_P(BrokenMessages, every_flipped_bit_of_the_agreement_is_found_before_any_data_moves) {
  for (std::size_t message = 0; message < kAgreementRounds; ++message) {
    for (std::size_t bit = 0; bit < 8 * honest()[message].size(); ++bit) {
      const auto failure =
          failure_of(meddled(kLiar, instead(message, flipped(honest()[message], bit))), run_);
      ASSERT_TRUE(failure) << "message " << message << ", bit " << bit;
      EXPECT_EQ(failure->suspect, kLiar);
      EXPECT_NE(failure->reason.find("a damaged message"), std::string::npos) << failure->reason;
      if (HasFailure()) FAIL() << "message " << message << ", bit " << bit;
    }
  }
}

TEST_P(BrokenMessages, the_header_of_any_earlier_message_is_found) {
  for (std::size_t late = kAgreementRounds; late < honest().size(); ++late) {
    for (std::size_t early = kAgreementRounds; early < late; ++early) {
      if (!is_header(late) || !is_header(early)) continue;
      const MessageHeader due = header_in(honest()[late]), sent = header_in(honest()[early]);
      const char* found = due.epoch != sent.epoch       ? "a message of epoch"
                          : due.payload != sent.payload ? "a message of another kind"
                                                        : "the chunk of rank";
      expect_found(instead(late, honest()[early]), found);
      if (HasFailure()) FAIL() << "message " << early << " in place of " << late;
    }
  }
}

TEST_P(BrokenMessages, the_header_of_another_run_is_found) {
  SmallRun other = run_;
  other.problem.scale *= 2;
  std::vector<Bytes> stale;
  const Meddling listen = [&](const std::vector<Bytes>& wanted) {
    stale = wanted;
    return wanted.back();
  };
  ASSERT_FALSE(failure_of(meddled(kLiar, listen), other));
  for (std::size_t message = kAgreementRounds; message < honest().size(); ++message) {
    if (is_header(message)) expect_found(instead(message, stale[message]), "of another run");
  }
}

TEST_P(BrokenMessages, data_replayed_or_damaged_is_found_with_full_integrity) {
  run_.options.integrity = Integrity::full;
  for (std::size_t message = kAgreementRounds; message < honest().size(); ++message) {
    if (is_header(message)) continue;
    const Meddling repeat = [=](const std::vector<Bytes>& wanted) {
      if (wanted.size() != message + 1) return wanted.back();
      for (std::size_t early = kAgreementRounds; early < message; ++early) {
        if (wanted[early].size() == wanted.back().size() && wanted[early] != wanted.back()) {
          return wanted[early];
        }
      }
      return flipped(wanted.back(), 0);  // nothing to replay yet
    };
    expect_found(repeat, "damaged data");
    const std::size_t last_bit = 8 * honest()[message].size() - 1;
    const Meddling flip = [=](const std::vector<Bytes>& wanted) {
      return wanted.size() == message + 1 ? flipped(wanted.back(), last_bit) : wanted.back();
    };
    expect_found(flip, "damaged data");
    if (HasFailure()) FAIL() << "message " << message;
  }
}

}  // namespace
}  // namespace ringlab::ring
