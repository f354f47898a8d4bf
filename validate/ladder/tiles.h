// Tiles: an answer cut into one chunk of one head of one sequence of one stage each, with a 64-bit digest over its bits, so
// that two answers which must agree in every bit are compared tile by tile and the first difference has a place.
//   stages  g_cum Akk Ainv P w u S resid v_new (where the backend gives them), then o, y or g, then final_state
//   order   sequences one after the other; in a sequence chunk by chunk; in a chunk as computed: the stages as above (S is
//   the
//           state before the chunk), heads within a stage; the final state comes after the last chunk
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "core/problem.h"
#include "core/tensor.h"
#include "validate/judge.h"
#include "validate/ladder/pieces.h"
#include "validate/rows.h"

namespace deltagauge::validate {

struct TileName {
  std::int64_t sequence = 0, chunk = 0;  // the chunk counts in its sequence; final_state: as many as there are
  int stage = 0;                         // place in the order above
  std::int64_t head = 0;
  friend auto operator<=>(const TileName&, const TileName&) = default;
};

struct Tile {
  Series rows;
  std::string digest;  // core/digest.h
};

class Tiles {
 public:
  // answer: the outputs of the problem and, with taps counted in the problem's chunks, intermediates. Other names are left
  // out.
  Tiles(Problem problem, Tensors answer);

  const Problem& problem() const { return problem_; }
  const Tensors& answer() const { return answer_; }
  const std::map<TileName, Tile>& all() const { return tiles_; }
  std::int64_t width(int stage) const { return widths_.at(stage); }  // elements of a row

 private:
  void add(int stage, const Tensor& tensor);

  const Problem problem_;
  const Tensors answer_;
  std::map<int, std::int64_t> widths_;
  std::map<TileName, Tile> tiles_;
};

std::string_view stage_name(int stage);

// Compares every tile of `got`, an answer to these pieces of the case that `want` answers, with the same tile there; pieces
// start and end at chunk boundaries or at the end of their sequence. Adds the tiles to verdict.values as "tiles.<stage>"
// and, where any differs, a failure: what, stage, head, chunk, element, both values, both digests, how many differ. Places
// are those of the whole case. A stage that one side has not is not compared. True when every tile agrees.
bool expect_same_tiles(const Tiles& want, const Tiles& got, const Pieces& pieces, std::string_view what, Verdict& verdict);

}  // namespace deltagauge::validate
