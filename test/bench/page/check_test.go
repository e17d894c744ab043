package page

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const recorded = `# Benchmarks

## Loop

Words with a **0.10** in them.

| | wall seconds | CPU seconds | starts |
|---|---|---|---|
| loop | 0.5 | 1.386 | 2.00 |
| operator | 0.9 | 0.277 | 2.00 |
| **operator / loop** | **0.92** | **0.20** | |

## Engines

| operation | engine | CPU seconds | CPU / OpenTofu | wall / OpenTofu |
|---|---|---|---|---|
| create | Pulumi | 1.4 | **2.91** | **1.42** |
| destroy | Pulumi | 1.2 | **2.41** | **2.34** |
`

func TestCheckComparesRatios(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(recorded), 0o600); err != nil {
		t.Fatal(err)
	}
	loop := func(wall, cpu string) Section {
		return Section{"Loop", "| | wall seconds | CPU seconds |\n|---|---|---|\n| loop | 5.5 | 13.86 |\n| **operator / loop** | **" + wall + "** | **" + cpu + "** |\n"}
	}
	engines := func(rows string) Section {
		return Section{"Engines", "| operation | engine | CPU seconds | CPU / OpenTofu | wall / OpenTofu |\n|---|---|---|---|---|\n" + rows}
	}
	const create, destroy = "| create | Pulumi | 1.4 | **2.91** | **9.99** |\n", "| destroy | Pulumi | 1.2 | **2.41** | **2.34** |\n"
	for name, tc := range map[string]struct {
		measured []Section
		want     []string
	}{
		"the same":                          {[]Section{loop("0.92", "0.20"), engines(create + destroy)}, nil},
		"a fifth more, and a rounded digit": {[]Section{loop("0.92", "0.25")}, nil},
		"more than that":                    {[]Section{loop("0.92", "0.26")}, []string{"Loop: operator / loop, CPU seconds is 0.26, and was 0.20"}},
		"time on the clock is no matter":    {[]Section{loop("3.00", "0.10")}, nil},
		"a row that is missing": {[]Section{engines(create)}, []string{
			"Engines: operation, destroy, Pulumi, CPU / OpenTofu is not measured any more; write the page anew with 'make bench'",
		}},
		"a section that the page lacks": {[]Section{{"New", "| a | CPU |\n|---|---|\n| x | **9.00** |\n"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Check(file, 0.2, tc.measured...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Check(t.TempDir(), 0.2); err == nil {
		t.Error("a folder is no page")
	}
}
