#include "oracle/gdn.h"

namespace deltagauge::oracle {

template void gdn<double>(const Call&, Answer&);
template void gdn<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
