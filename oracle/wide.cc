// The ops in Boost's wide types: the one source file that pays for compiling them.
#include "oracle/forward.h"
#include "oracle/real_wide.h"

namespace deltagauge::oracle {

Forward forward_quad(std::string_view op) { return forward_in<Quad>(op); }
Forward forward_oct(std::string_view op) { return forward_in<Oct>(op); }

}  // namespace deltagauge::oracle
