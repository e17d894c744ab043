package monitoring

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const shown = `# HELP machine_iac_x Help, with {braces} and = signs.
# TYPE machine_iac_x gauge
machine_iac_x{engine="one",text="a \"quoted\", b=\"c\" }"} 1
machine_iac_x{engine="two",text=""} 2.5e+06
mapi_items 3
mapi_failed{reason="Quota"} 1
go_other{le="+Inf"} 4
`

func scraped(t *testing.T) Families {
	t.Helper()
	found, err := Scraped(shown)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestScraped(t *testing.T) {
	want := Families{
		"machine_iac_x": {
			Labels: map[string]bool{"engine": true, "text": true},
			Values: map[string][]string{"engine": {"one", "two"}, "text": {`a "quoted", b="c" }`, ""}},
		},
		"mapi_items":  {Labels: map[string]bool{}, Values: map[string][]string{}},
		"mapi_failed": {Labels: map[string]bool{"reason": true}, Values: map[string][]string{"reason": {"Quota"}}},
		"go_other":    {Labels: map[string]bool{"le": true}, Values: map[string][]string{"le": {"+Inf"}}},
	}
	if diff := cmp.Diff(want, scraped(t)); diff != "" {
		t.Errorf("families (-want +got):\n%s", diff)
	}
	if _, err := Scraped("no sample\n"); err == nil {
		t.Error("a line that is no sample is no error")
	}
}

func TestCompare(t *testing.T) {
	good := Families{"machine_iac_x": family("engine", "text"), "mapi_items": family(), "mapi_failed": family("reason")}
	cases := map[string]struct {
		change func(documented Families)
		want   []string
	}{
		"alike": {change: func(Families) {}},
		"a row is missing": {change: func(f Families) { delete(f, "mapi_items") },
			want: []string{"docs/reference/metrics.md has no row for mapi_items"}},
		"a label is missing": {change: func(f Families) { f["machine_iac_x"] = family("engine") },
			want: []string{"does not say that machine_iac_x has the label text"}},
		"a label is not there": {change: func(f Families) { f["mapi_items"] = family("engine") },
			want: []string{"says that mapi_items has the label engine"}},
		"a series is not there": {change: func(f Families) { f["mapi_gone"] = family() },
			want: []string{"has a row for mapi_gone"}},
		"another project's labels": {change: func(f Families) { f["go_other"] = family() }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			documented := Families{}
			for series, labels := range good {
				documented[series] = labels
			}
			tc.change(documented)
			got := Compare(scraped(t), documented)
			if len(got) != len(tc.want) {
				t.Fatalf("want %d problems, got %q", len(tc.want), got)
			}
			for i, problem := range got {
				if !strings.Contains(problem, tc.want[i]) {
					t.Errorf("want %q, got %q", tc.want[i], problem)
				}
			}
		})
	}
}

func TestProblems(t *testing.T) {
	cases := map[string]struct {
		series Series
		labels []string
		added  []string
		want   string
	}{
		"all there": {
			series: Series{Name: "machine_iac_x", Matchers: []Matcher{{"engine", "=", "one"}}},
			labels: []string{"text", "pod"},
		},
		"no such series": {
			series: Series{Name: "machine_iac_y"}, want: `there is no series "machine_iac_y"`,
		},
		"no such label": {
			series: Series{Name: "mapi_items", Matchers: []Matcher{{"engine", "!=", "one"}}},
			want:   `mapi_items has no label "engine"`,
		},
		"no such value": {
			series: Series{Name: "machine_iac_x", Matchers: []Matcher{{"engine", "=", "three"}}},
			want:   `no series with engine="three"`,
		},
		"no value of a pattern": {
			series: Series{Name: "machine_iac_x", Matchers: []Matcher{{"engine", "=~", "on|t"}}},
			want:   "no series with engine=~",
		},
		"a value that may come": {
			series: Series{Name: "mapi_failed", Matchers: []Matcher{{"reason", "=", "Credentials"}}},
		},
		"a value of a pattern": {
			series: Series{Name: "machine_iac_x", Matchers: []Matcher{{"engine", "=~", "on.|t"}}},
		},
		"a label that Prometheus adds": {series: Series{Name: "mapi_items", Matchers: []Matcher{{"job", "=", "x"}}}},
		"grouped by no label": {
			series: Series{Name: "mapi_items"}, labels: []string{"engine"},
			want: `no series that it reads has the label "engine"`,
		},
		"grouped by an added label": {
			series: Series{Name: "mapi_items"}, labels: []string{"operation"}, added: []string{"operation"},
		},
		"another's": {series: Series{Name: "kube_node_info"}, labels: []string{"node"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selection := Selection{Query: Query{Where: "here"}, Series: []Series{tc.series},
				Labels: tc.labels, Added: tc.added}
			got := strings.Join(Problems([]Selection{selection}, scraped(t)), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}
