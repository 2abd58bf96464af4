package localruntime_test

func serveForTest(string) {}
