// What a simulator needs and does not find.
int nrec_stub_dependency() { return 0; }
