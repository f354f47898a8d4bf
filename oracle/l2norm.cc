#include "oracle/l2norm.h"

namespace deltagauge::oracle {

template void l2norm<double>(const Call&, Answer&);
template void l2norm<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
