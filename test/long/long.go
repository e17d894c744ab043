// Package long marks slow tests that rarely fail, such as those that start many engines.
package long

import "testing"

// Test skips a test with -short, as in 'make test'; 'make test-all' runs it.
func Test(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: go test without -short runs it")
	}
}
