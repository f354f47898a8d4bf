// Ranks as processes: four of them under mpirun, on the CPU reference.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace deltagauge::validate::cp {
namespace {

struct Ended {
  int status;
  std::string output;
};

std::string ranks(int count, const std::string& arguments) {
  return "-n " + std::to_string(count) + " " + DELTAGAUGE_CP_RANK + " " + arguments;
}

// At most a minute, which status 124 says: nothing here takes more than some seconds.
Ended mpirun(const std::string& what) {
  // Open MPI wants to be asked before it runs as root, or with more ranks than cores.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
    setenv(name, "1", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  const std::string line = "timeout -k 5 60 " + std::string(DELTAGAUGE_MPIEXEC) + " " + what + " 2>&1";
  Ended ended{-1, {}};
  FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) return ended;
  std::array<char, 4096> buffer;
  while (const std::size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ended.output.append(buffer.data(), read);
  ended.status = WEXITSTATUS(pclose(pipe));
  return ended;
}

TEST(Mpi, four_processes_give_the_bits_of_four_threads) {
  for (const char* table : {"zigzag", "scattered"}) {
    const Ended ended = mpirun(
        ranks(4, "gdn/fwd/len=37+351+40,HK=1,HV=2,K=64,V=32/bf16/gate=mild/h0=normal=1/seed=4 " + std::string(table)));
    EXPECT_EQ(ended.status, 0) << ended.output;
    for (const char* name : {"o", "final_state"})
      EXPECT_NE(ended.output.find(std::string(name) + ": the same bits as 4 threads give"), std::string::npos)
          << ended.output;
  }
}

TEST(Mpi, a_bad_case_ends_every_process_with_its_reason) {
  const Ended ended = mpirun(ranks(2, "gdn/fwd/len=37,HK=1,HV=1,K=16,V=16/f32/seed=4"));
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("io: expected bf16 or f16, got f32"), std::string::npos) << ended.output;
}

TEST(Mpi, a_rank_that_fails_or_that_runs_something_else_ends_all_of_them) {
  const std::string c = "gdn/fwd/len=37+51,HK=1,HV=1,K=16,V=16/bf16/seed=";
  const struct {
    std::string last, reason;  // of the last of four ranks
  } others[] = {
      {c + "4 zigzag 64x", "rank 3: SEGMENT: expected a number, got '64x'"},
      {c + "4 zigzag 128 cuda.cp.no", "rank 3: OP: expected a name that deltagauge cp --list shows, got 'cuda.cp.no'"},
      {"gdn/fwd/len=37+51,HK=1,HV=1,K=16,V=16/f32/seed=4", "rank 3: reference.cp.chunk_sm80.plain: io: expected bf16"},
      {c + "5", "/seed=4' on every rank as on rank 0, got 'gdn/fwd/len=37+51"},
      {c + "4 zigzag 64", "plan: expected 'segment 128, rank [0, 11) [77, 88), rank"},
      {c + "4 contiguous", "got 'segment 128, rank [0, 22), rank [22, 44), rank [44, 66), rank [66, 88)' on rank 3"},
      {c + "4 zigzag 128 reference.cp.chunk64.io", "op: expected 'reference.cp.chunk_sm80.plain' on every rank as"},
  };
  for (const auto& [last, reason] : others) {
    const Ended ended = mpirun(ranks(3, c + "4") + " : " + ranks(1, last));
    EXPECT_EQ(ended.status, 2) << last << "\n" << ended.output;
    EXPECT_NE(ended.output.find(reason), std::string::npos) << last << "\n" << ended.output;
    EXPECT_EQ(ended.output.find("the same bits"), std::string::npos) << ended.output;
  }
}

}  // namespace
}  // namespace deltagauge::validate::cp
