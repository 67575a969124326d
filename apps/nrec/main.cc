#include "program.h"

int main(int argc, char** argv) { return nrec::app::run_program({argv + (argc > 0 ? 1 : 0), argv + argc}); }
