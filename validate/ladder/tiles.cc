#include "validate/ladder/tiles.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <sstream>
#include <vector>

#include "core/digest.h"
#include "core/error.h"
#include "core/op.h"
#include "validate/metrics.h"

namespace deltagauge::validate {
namespace {

// The order in which a chunk is computed.
constexpr std::string_view kStages[] = {"g_cum", "Akk",   "Ainv", "P", "w", "u",          "S",
                                        "resid", "v_new", "o",    "y", "g", "final_state"};

std::int64_t chunks(std::int64_t length, std::int64_t chunk) { return (length + chunk - 1) / chunk; }

// Rows of a head each: P is a square like Akk, and a value a head is a row of one.
Rows rows_of_stage(const Problem& problem, std::string_view stage, Shape shape) {
  if (shape.size() == 2) shape.push_back(1);
  return rows_of(problem, stage == "P" ? "Akk" : stage, shape);
}

std::string digest_of(const Tensor& tensor, const Series& rows, std::int64_t width) {
  const std::size_t bytes = static_cast<std::size_t>(width) * size_of(tensor.dtype());
  std::vector<std::byte> gathered(static_cast<std::size_t>(rows.count) * bytes);
  for (std::int64_t i = 0; i < rows.count; ++i)
    if (bytes)
      std::memcpy(gathered.data() + static_cast<std::size_t>(i) * bytes,
                  tensor.data() + static_cast<std::size_t>(rows.first + i * rows.stride) * bytes, bytes);
  return digest(gathered);
}

// The first element in which two tiles differ, counted from the start of each tensor.
struct Elements {
  std::int64_t got, want;
};
Elements first_difference(const Tensor& got, const Series& a, const Tensor& want, const Series& b, std::int64_t width) {
  const std::size_t size = size_of(got.dtype());
  for (std::int64_t i = 0; i < a.count; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      const Elements at{(a.first + i * a.stride) * width + j, (b.first + i * b.stride) * width + j};
      if (std::memcmp(got.data() + static_cast<std::size_t>(at.got) * size,
                      want.data() + static_cast<std::size_t>(at.want) * size, size) != 0)
        return at;
    }
  fail("digest: two tiles of the same bits have digests that differ");
}

}  // namespace

std::string_view stage_name(int stage) { return kStages[stage]; }

Tiles::Tiles(Problem problem, Tensors answer) : problem_(std::move(problem)), answer_(std::move(answer)) {
  for (const TensorSpec& spec : op_info(problem_.op).outputs(problem_)) get(answer_, spec.name);
  for (int stage = 0; stage < static_cast<int>(std::size(kStages)); ++stage)
    if (const Tensor* tensor = find(answer_, kStages[stage])) add(stage, *tensor);
}

void Tiles::add(int stage, const Tensor& tensor) {
  if (!tensor.contiguous())
    fail(kStages[stage], ": expected a contiguous tensor, got strides ", to_string(tensor.strides()));
  const Rows rows = rows_of_stage(problem_, kStages[stage], tensor.shape());
  const auto offsets = problem_.offsets();
  const std::int64_t C = problem_.chunk;
  widths_[stage] = rows.width;
  const auto put = [&](const Series& s, std::int64_t chunk) {
    tiles_[{s.sequence, chunk, stage, s.head}] = {s, digest_of(tensor, s, rows.width)};
  };
  for (const Series& s : rows.series) {
    const std::int64_t length = problem_.lengths[static_cast<std::size_t>(s.sequence)];
    if (kStages[stage] == "final_state") {
      put(s, chunks(length, C));
    } else if (s.block >= 0) {
      put(s, (s.token - offsets[static_cast<std::size_t>(s.sequence)]) / C);
    } else {
      for (std::int64_t first = 0; first < s.count; first += C) {
        Series tile = s;
        tile.first += first * s.stride;
        tile.count = std::min(C, s.count - first);
        put(tile, first / C);
      }
    }
  }
}

bool expect_same_tiles(const Tiles& want, const Tiles& got, const Pieces& pieces, std::string_view what, Verdict& verdict) {
  struct Pair {
    const Tile *got, *want;
  };
  std::map<TileName, Pair> differing;                           // by the name in the whole case
  std::map<int, std::pair<std::int64_t, std::int64_t>> counts;  // by stage: how many differ, of how many
  const std::int64_t C = want.problem().chunk;
  for (const auto& [name, tile] : got.all()) {
    const Piece& piece = pieces.at(static_cast<std::size_t>(name.sequence));
    const std::int64_t end = piece.first + piece.count;
    const std::int64_t length = want.problem().lengths.at(static_cast<std::size_t>(piece.sequence));
    if (piece.count && (piece.first % C || (end < length && end % C)))
      fail("pieces: expected chunks of ", C, " tokens whole, got tokens [", piece.first, ", ", end, ")");
    const bool final = stage_name(name.stage) == "final_state";
    if (final && end < length) continue;
    const std::int64_t chunk = final ? chunks(length, C) : name.chunk + piece.first / C;
    const TileName whole{piece.sequence, chunk, name.stage, name.head};
    const auto found = want.all().find(whole);
    if (found == want.all().end()) continue;
    auto& [differ, of] = counts[name.stage];
    ++of;
    verdict.compared += tile.rows.count * got.width(name.stage);
    if (tile.digest == found->second.digest) continue;
    ++differ;
    differing[whole] = {&tile, &found->second};
  }
  for (const auto& [stage, count] : counts)
    verdict.values["tiles." + std::string(stage_name(stage))] += static_cast<double>(count.second);
  if (differing.empty()) return true;

  const auto& [first, pair] = *differing.begin();
  const std::string stage(stage_name(first.stage));
  const Tensor &a = get(got.answer(), stage), &b = get(want.answer(), stage);
  if (a.dtype() != b.dtype() || pair.got->rows.count != pair.want->rows.count ||
      got.width(first.stage) != want.width(first.stage))
    fail(stage, ": expected tiles of ", name(b.dtype()), " in ", pair.want->rows.count, " rows, got ", name(a.dtype()),
         " in ", pair.got->rows.count);
  const Elements at = first_difference(a, pair.got->rows, b, pair.want->rows, got.width(first.stage));
  std::ostringstream text;
  text.precision(9);
  text << what << ": first in stage " << stage << ", head " << first.head << ", ";
  if (stage == "final_state")
    text << "after " << first.chunk << " chunks";
  else
    text << "chunk " << first.chunk;
  text << ", at " << place(want.problem(), stage, b.shape(), at.want) << ": got " << a.load(at.got) << ", want "
       << b.load(at.want) << "; digests of the tile " << pair.got->digest << " and " << pair.want->digest
       << "; tiles that differ:";
  for (const auto& [number, count] : counts)
    if (count.first) text << " " << stage_name(number) << " " << count.first << " of " << count.second;
  verdict.add_failure(text.str());
  return false;
}

}  // namespace deltagauge::validate
