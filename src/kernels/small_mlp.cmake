# Sources of the small perceptron of the two-sample tests; src/kernels/CMakeLists.txt includes this file.
set(NREC_SMALL_MLP_SOURCES small_mlp/small_mlp.cc small_mlp/small_mlp_dispatch.cc small_mlp/small_mlp_ref.cc)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  list(APPEND NREC_SMALL_MLP_SOURCES small_mlp/small_mlp_avx2.cc small_mlp/small_mlp_avx512.cc)
  set_source_files_properties(small_mlp/small_mlp_avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-O3")
  set_source_files_properties(small_mlp/small_mlp_avx512.cc PROPERTIES COMPILE_OPTIONS "${gcc_undefined};-mavx512f;-mfma;-O3")
endif()
set(NREC_SMALL_MLP_TEST_SOURCES tests/small_mlp_test.cc tests/small_mlp_parity_test.cc)
