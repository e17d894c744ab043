package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSummaryHasTheSlowestFirstAndTheOutputOfFailures(t *testing.T) {
	in := `{"Action":"start","Package":"github.com/machine-iac/machine-iac-operator/a"}
{"Action":"output","Package":"github.com/machine-iac/machine-iac-operator/a","Test":"TestQuick","Output":"quiet\n"}
{"Action":"pass","Package":"github.com/machine-iac/machine-iac-operator/a","Test":"TestQuick","Elapsed":0.1}
{"Action":"output","Package":"github.com/machine-iac/machine-iac-operator/a","Test":"TestSlow/part","Output":"part fails\n"}
{"Action":"fail","Package":"github.com/machine-iac/machine-iac-operator/a","Test":"TestSlow/part","Elapsed":2.5}
{"Action":"output","Package":"github.com/machine-iac/machine-iac-operator/a","Test":"TestSlow","Output":"--- FAIL: TestSlow\n"}
{"Action":"fail","Package":"github.com/machine-iac/machine-iac-operator/a","Test":"TestSlow","Elapsed":3}
{"Action":"output","Package":"github.com/machine-iac/machine-iac-operator/a","Output":"FAIL\tgithub.com/machine-iac/machine-iac-operator/a\t3.2s\n"}
{"Action":"fail","Package":"github.com/machine-iac/machine-iac-operator/a","Elapsed":3.2}
{"Action":"output","Package":"github.com/machine-iac/machine-iac-operator/b","Output":"ok  \tb\t9.0s\n"}
{"Action":"pass","Package":"github.com/machine-iac/machine-iac-operator/b","Elapsed":9}
go: a line of the command itself
`
	var out strings.Builder
	s := newSummary(&out)
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, []byte(in), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.readAll([]string{file, os.DevNull}); err != nil {
		t.Fatal(err)
	}
	if err := s.readAll([]string{file + ".missing"}); err == nil {
		t.Error("a file that is missing passes for an empty one")
	}
	if again := short(strings.Join(s.failures, "\n")); again != "a -run '^(TestSlow)$'" {
		t.Errorf("failed are %q, want TestSlow of a", again)
	}
	s.print(1, 5)
	want := `part fails
--- FAIL: TestSlow
FAIL	github.com/machine-iac/machine-iac-operator/a	3.2s
ok  	b	9.0s
go: a line of the command itself

2 packages, 2 tests, 12 s of package time

| package | seconds |
|---|---|
| b | 9.0 |

| test | package | seconds |
|---|---|---|
| TestSlow | a | 3.0 |
| TestQuick | a | 0.1 |
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if !s.failed {
		t.Error("got success, want failure")
	}
}

func TestWhatCrashedIsRunAgainInFull(t *testing.T) {
	s := newSummary(io.Discard)
	s.take(event{Action: "start"}, key{Package: "c"})
	s.take(event{Action: "run"}, key{Package: "c", Test: "TestOne"})
	s.take(event{Action: "run"}, key{Package: "c", Test: "TestTwo"})
	s.take(event{Action: "fail"}, key{Package: "c", Test: "TestOne"})
	s.take(event{Action: "fail"}, key{Package: "c"})
	s.take(event{Action: "start"}, key{Package: "d"})
	s.unended()
	if again := strings.Join(s.failures, " "); again != "c d" {
		t.Errorf("run again in full are %q, want what crashed and what never ended", again)
	}
	if !s.failed {
		t.Error("got success, want failure")
	}
}
