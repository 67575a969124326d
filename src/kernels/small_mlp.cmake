# Sources of the small perceptron of the two-sample tests; src/kernels/CMakeLists.txt includes this file.
set(NREC_SMALL_MLP_SOURCES small_mlp/small_mlp.cc small_mlp/small_mlp_dispatch.cc small_mlp/small_mlp_ref.cc)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
  set(small_mlp_avx2 small_mlp/small_mlp_avx2.cc small_mlp/small_mlp_masked_avx2.cc)
  list(APPEND NREC_SMALL_MLP_SOURCES ${small_mlp_avx2})
  set_source_files_properties(${small_mlp_avx2} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-O3")
endif()
set(NREC_SMALL_MLP_TEST_SOURCES tests/small_mlp_test.cc tests/small_mlp_parity_test.cc)
