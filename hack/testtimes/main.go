// Command testtimes filters the output of 'go test -json', and ends with the slowest packages and tests.
//
//	go run ./hack/testtimes <(go test -json ./a/...) <(go test -json -race ./b/...)
//
// It reads all files at once, as they come, or the standard input if none is named.
// It prints only the output of failed tests, and exits 1 if a test or package failed. With -failed FILE it writes what
// go test is told to run no more than what failed: the path of a package in each line, and -run with its failed tests.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
)

func main() {
	failed := flag.String("failed", "", "file for a line of go test's arguments for each package that failed; none when empty")
	flag.Parse()
	s := newSummary(os.Stdout)
	if err := s.readAll(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
	s.unended()
	s.print(30, 20)
	if *failed != "" {
		if err := os.WriteFile(*failed, []byte(strings.Join(s.failures, "\n")), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "testtimes:", err)
			os.Exit(1)
		}
	}
	if s.failed || len(s.packages) == 0 {
		os.Exit(1)
	}
}

// event is a line of test2json; see 'go doc test2json'.
type event struct {
	Action, Package, Test, ImportPath string
	Elapsed                           float64
	Output                            string
}

// key names a test of a file, or a package if Test is empty.
type key struct {
	file          int
	Package, Test string
}

type result struct {
	key
	seconds float64
}

type summary struct {
	mu  sync.Mutex // guards what follows
	out io.Writer
	// output is the output of each unfinished test.
	output          map[key][]string
	packages, tests []result
	failed          bool
	// failures are arguments of go test, one for each package that failed.
	failures []string
	// failing are the failed tests of each unfinished package, and begun what has not ended.
	failing map[key][]string
	begun   map[key]bool
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[key][]string{}, failing: map[key][]string{}, begun: map[key]bool{}}
}

// readAll reads all files at once.
func (s *summary) readAll(files []string) error {
	if len(files) == 0 {
		return s.read(0, os.Stdin)
	}
	failed := make([]error, len(files))
	var reading sync.WaitGroup
	for i, name := range files {
		reading.Go(func() {
			in, err := os.Open(name)
			if err != nil {
				failed[i] = err
				return
			}
			failed[i] = errors.Join(s.read(i, in), in.Close())
		})
	}
	reading.Wait()
	return errors.Join(failed...)
}

func (s *summary) read(file int, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		s.line(file, lines.Bytes())
	}
	return lines.Err()
}

func (s *summary) line(file int, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(s.out, "%s\n", line) // the go command's own output
		return
	}
	s.take(e, key{file, e.Package, e.Test})
}

func (s *summary) take(e event, k key) {
	switch e.Action {
	case "start", "run":
		s.begun[k] = true
	case "output":
		if e.Test == "" && (strings.HasPrefix(e.Output, "ok ") || strings.HasPrefix(e.Output, "FAIL")) {
			fmt.Fprint(s.out, e.Output)
		} else {
			s.output[k] = append(s.output[k], e.Output)
		}
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "build-fail":
		s.failed = true
	case "fail":
		s.failed = true
		fmt.Fprint(s.out, strings.Join(s.output[k], ""))
		s.fail(k)
		s.end(k, e.Elapsed)
	case "pass", "skip":
		s.end(k, e.Elapsed)
	}
}

// fail notes a failure. A package without a failed test, or with one that never ended, has crashed and is run in full.
func (s *summary) fail(k key) {
	of := key{file: k.file, Package: k.Package}
	crashed := len(s.failing[of]) == 0
	for one := range s.begun {
		crashed = crashed || one.file == k.file && one.Package == k.Package && one.Test != ""
	}
	switch {
	case k.Test == "" && crashed:
		s.failures = append(s.failures, k.Package)
	case k.Test == "":
		s.failures = append(s.failures, fmt.Sprintf("%s -run '^(%s)$'", k.Package, strings.Join(s.failing[of], "|")))
	case !strings.Contains(k.Test, "/"):
		s.failing[of] = append(s.failing[of], k.Test)
	}
}

// unended fails packages that began and never ended, as when go test was killed.
func (s *summary) unended() {
	for k := range s.begun {
		if k.Test == "" {
			s.failed = true
			s.failures = append(s.failures, k.Package)
			fmt.Fprintf(s.out, "FAIL\t%s has not ended\n", k.Package)
		}
	}
}

func (s *summary) end(k key, seconds float64) {
	delete(s.output, k)
	delete(s.begun, k)
	switch {
	case k.Test == "":
		s.packages = append(s.packages, result{k, seconds})
	case !strings.Contains(k.Test, "/"):
		s.tests = append(s.tests, result{k, seconds})
	}
}

func (s *summary) print(packages, slowest int) {
	total := 0.0
	for _, r := range s.packages {
		total += r.seconds
	}
	fmt.Fprintf(s.out, "\n%d packages, %d tests, %.0f s of package time\n", len(s.packages), len(s.tests), total)
	fmt.Fprintf(s.out, "\n| package | seconds |\n|---|---|\n")
	for _, r := range longest(s.packages, packages) {
		fmt.Fprintf(s.out, "| %s | %.1f |\n", short(r.Package), r.seconds)
	}
	fmt.Fprintf(s.out, "\n| test | package | seconds |\n|---|---|---|\n")
	for _, r := range longest(s.tests, slowest) {
		fmt.Fprintf(s.out, "| %s | %s | %.1f |\n", r.Test, short(r.Package), r.seconds)
	}
}

func longest(results []result, most int) []result {
	sorted := slices.SortedStableFunc(slices.Values(results),
		func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	return sorted[:min(most, len(sorted))]
}

// short removes the import path prefix that all packages share.
func short(path string) string {
	return strings.TrimPrefix(path, "github.com/machine-iac/machine-iac-operator/")
}
