package sqlite_test

func childRecord(string) error { return nil }
