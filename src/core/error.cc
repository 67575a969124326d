#include "nrec/core/error.h"

namespace nrec {

void require_internal(bool ok, const char* what) {
  if (!ok)
    throw InternalError(std::string("internal error: ") + what +
                        "; please report this with the command that led to it");
}

}  // namespace nrec
