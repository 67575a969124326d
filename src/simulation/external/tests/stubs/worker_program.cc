// Stands for the program nrec with the words "worker --library FILE".
#include <cstdio>
#include <string_view>

#include "nrec/core/error.h"
#include "nrec/simulation/library_worker.h"

int main(int count, char** words) {
  if (count != 4 || std::string_view(words[1]) != "worker" || std::string_view(words[2]) != "--library")
    return 2;
  try {
    return nrec::run_library_worker(words[3]);
  } catch (const nrec::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
