#include "nrec/core/log_sink.h"

namespace nrec {

LogSink& silent_sink() {
  static LogSink sink;
  return sink;
}

}  // namespace nrec
