//go:build !linux

package memory

func filesInMemory(string) (int64, error) { return 0, nil }
