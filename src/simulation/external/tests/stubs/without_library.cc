int nrec_stub_dependency();

int main() { return nrec_stub_dependency(); }
