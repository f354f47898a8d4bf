// Pieces of a case and the tiles of its answers: what goes where, which difference comes first, what is refused.
#include "validate/ladder/tiles.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/staging.h"

namespace deltagauge::validate {
namespace {

constexpr const char* kId = "gdn/fwd/len=70+0+130,HK=1,HV=2,K=16,V=8,cap=210/bf16/h0=normal=1/seed=3";

Tensors answer(const Problem& p, const Tensors& inputs) {
  return reference::run(p, inputs, reference::staging("chunk64.io"), true);
}
void flip_lowest_bit(Tensors& tensors, const char* name, std::int64_t element) {
  Tensor& tensor = tensors[name];
  tensor.data()[static_cast<std::size_t>(element) * size_of(tensor.dtype())] ^= std::byte{1};
}
// What is said of an answer in which these elements of these tensors differ.
std::string difference(const std::vector<std::pair<const char*, std::int64_t>>& flips) {
  const Case c = parse_id(kId);
  const Tensors want = answer(c.problem, make_inputs(c));
  Tensors got = want;
  for (const auto& [name, element] : flips) flip_lowest_bit(got, name, element);
  Verdict verdict;
  expect_same_tiles(Tiles(c.problem, want), Tiles(c.problem, got), whole_sequences(c.problem), "test", verdict);
  return verdict.reason;
}

TEST(Pieces, KeepTheNamesAndSoTheValuesOfTheirSequences) {
  const Case c = parse_id(kId);
  const Pieces pieces{whole_sequence(c.problem, 2), {0, 0, 64}};
  Case small = c;
  small.problem = pieces_problem(c.problem, pieces);
  EXPECT_EQ(small.problem.lengths, (std::vector<std::int64_t>{130, 64}));
  EXPECT_EQ(small.problem.ids, (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(small.problem.capacity, 0);
  const Tensors taken = pieces_inputs(c.problem, pieces, small.problem, make_inputs(c));
  for (const auto& [name, tensor] : make_inputs(small)) EXPECT_TRUE(bitwise_equal(get(taken, name), tensor)) << name;
}

TEST(Pieces, OfAPoolKeepTheirSlots) {
  const Case c = parse_id("gdn/fwd/len=5+6+7,K=16,V=8/bf16/h0=normal=1/slots=5/idx=permuted=1/has=1+0+1/seed=3");
  const Pieces pieces{whole_sequence(c.problem, 2), whole_sequence(c.problem, 1)};
  Case small = c;
  small.problem = pieces_problem(c.problem, pieces);
  const Tensors taken = pieces_inputs(c.problem, pieces, small.problem, make_inputs(c));
  EXPECT_EQ(get(taken, "state_indices").load(0), static_cast<double>(c.problem.state_indices()[2]));
  EXPECT_EQ(get(taken, "has_initial_state").load(1), 0);
  EXPECT_TRUE(bitwise_equal(get(taken, "initial_state"), get(make_inputs(c), "initial_state")));
}

TEST(Pieces, OfADenseCaseArePackedWhereLengthsDiffer) {
  const Case c = parse_id("gdn/fwd/len=70x2,K=16,V=8/bf16/layout=dense/seed=3");
  EXPECT_EQ(pieces_problem(c.problem, whole_sequences(c.problem)).layout, Layout::dense);
  EXPECT_EQ(pieces_problem(c.problem, {{0, 0, 64}, {1, 0, 70}}).layout, Layout::packed);
}

TEST(Tiles, CoverEveryStageChunkAndHeadAndTheirDigestsTellThemApart) {
  const Case c = parse_id(kId);
  const Tiles tiles(c.problem, answer(c.problem, make_inputs(c)));
  std::set<std::string> digests;
  std::int64_t o = 0;
  for (const auto& [name, tile] : tiles.all())
    if (stage_name(name.stage) == "o") ++o, digests.insert(tile.digest);
  EXPECT_EQ(o, 2 * (2 + 3));
  EXPECT_EQ(digests.size(), 10u);
  for (const std::string& digest : digests) EXPECT_EQ(digest.size(), 16u);
}

TEST(Tiles, TheFirstDifferenceIsTheFirstInTheOrderOfTheComputation) {
  EXPECT_EQ(difference({}), "");
  const std::int64_t o_second = 64 * 2 * 8, S_second = 1 * 2 * 8 * 16, Ainv_third = (2 * 2 + 1) * 64 * 64;
  // The state before a chunk comes before what is made of it, and that before what is read.
  EXPECT_NE(difference({{"o", o_second}, {"v_new", o_second}, {"S", S_second}}).find("first in stage S, head 0, chunk 1"),
            std::string::npos);
  EXPECT_NE(difference({{"o", o_second}, {"v_new", o_second}}).find("first in stage v_new, head 0, chunk 1"),
            std::string::npos);
  // An output of an earlier chunk comes before an inverse of a later one, and all chunks before the final state.
  EXPECT_NE(difference({{"Ainv", Ainv_third}, {"o", 0}}).find("first in stage o, head 0, chunk 0"), std::string::npos);
  const std::string last = difference({{"final_state", 0}, {"o", o_second}});
  EXPECT_NE(last.find("first in stage o, head 0, chunk 1"), std::string::npos) << last;
  EXPECT_NE(last.find("tiles that differ: o 1 of 10 final_state 1 of 6"), std::string::npos) << last;
}

TEST(Tiles, RowsThatAreNotJudgedDoNotCount) {
  EXPECT_EQ(difference({{"o", 200 * 2 * 8}}), "");               // past the active end
  EXPECT_EQ(difference({{"Ainv", (1 * 2 * 64 + 6) * 64}}), "");  // past the last token of a chunk of 6
  EXPECT_NE(difference({{"Ainv", (1 * 2 * 64 + 5) * 64}}), "");
}

TEST(Tiles, PiecesOfTheCaseAreHeldAgainstTheirPlaceInIt) {
  const Case c = parse_id(kId);
  const Tensors inputs = make_inputs(c);
  const Tiles want(c.problem, answer(c.problem, inputs));
  const auto compare = [&](const Pieces& pieces) {
    const Problem small = pieces_problem(c.problem, pieces);
    Verdict verdict;
    const Tiles got(small, answer(small, pieces_inputs(c.problem, pieces, small, inputs)));
    expect_same_tiles(want, got, pieces, "test", verdict);
    return verdict;
  };
  const Verdict verdict = compare({whole_sequence(c.problem, 2), {0, 0, 64}});
  EXPECT_EQ(verdict.reason, "");
  EXPECT_EQ(verdict.values.at("tiles.o"), 2 * (3 + 1));
  EXPECT_EQ(verdict.values.at("tiles.final_state"), 2);  // that of the cut sequence is another
  EXPECT_THROW(compare({{0, 0, 63}}), Error);
}

}  // namespace
}  // namespace deltagauge::validate
