// Transport: how the ranks of a context-parallel group reach each other. One collective carries the summaries of either
// direction and the rows of the convolution's halo. Memory is the caller's, of the kind the transport says.
#pragma once
#include <cstddef>

namespace deltagauge::kernels::cp {

enum class Memory { host, device };

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::size_t rank() const = 0;
  virtual std::size_t world() const = 0;
  virtual Memory memory() const = 0;
  // all[r * bytes ...) becomes rank r's `own`, on every rank. Each rank calls it equally often and with the same bytes.
  // stream: a cudaStream_t that the transfer is ordered on, and not waited for; host transports return when it is done.
  virtual void all_gather(const void* own, void* all, std::size_t bytes, void* stream) = 0;
};

}  // namespace deltagauge::kernels::cp
