package print_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

// machines are a report in rows.
type machines struct {
	Items []machine `json:"items"`
	// all says that they are of all namespaces.
	all bool
}

type machine struct {
	Name string `json:"name"`
	Size uint64 `json:"size"`
	Text string `json:"text"`
}

func (m *machines) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for _, one := range m.Items {
		objects = append(objects, print.MachineReference("ns", one.Name))
	}
	return objects
}

func (m *machines) WithNamespaces() bool { return m.all }

func (m *machines) Rows(wide bool) [][]string {
	rows := [][]string{{"MACHINE", "TEXT"}}
	for _, one := range m.Items {
		rows = append(rows, []string{one.Name, print.Cut(one.Text, wide)})
	}
	return rows
}

// page is a report in a form of its own.
type page struct {
	Title string `json:"title"`
}

func (page) Objects() []metav1.PartialObjectMetadata { return nil }

func (p page) Text(wide, headers bool) []byte {
	rows := [][]string{{"TITLE"}, {p.Title}}
	if !headers {
		rows = rows[1:]
	}
	if wide {
		rows[0] = append(rows[0], "wide")
	}
	return print.Aligned(rows)
}

// formless has no form for people.
type formless struct{}

func (formless) Objects() []metav1.PartialObjectMetadata { return nil }

func TestFormats(t *testing.T) {
	long := strings.Repeat("ä", 101)
	some := &machines{Items: []machine{{Name: "a", Size: 12345678901234567890, Text: "<b>\n\x1b[2J"}, {Name: "b", Text: long}}}
	one := &machines{Items: some.Items[:1]}
	cases := map[string]struct {
		value     print.Report
		arguments []string
		want      string
		wantErr   string
	}{
		"a table":                      {value: some, want: "MACHINE   TEXT\na         <b> \\u001b[2J\nb         " + long[:2*97] + "...\n"},
		"a wide table without titles":  {value: some, arguments: []string{"-o", "wide", "--no-headers"}, want: "a     <b> \\u001b[2J\nb     " + long + "\n"},
		"a table of several spaces":    {value: &machines{all: true, Items: some.Items[:1]}, arguments: []string{"-o", "table"}, want: "NAMESPACE   MACHINE   TEXT\nns          a         <b> \\u001b[2J\n"},
		"names":                        {value: some, arguments: []string{"-o", "name"}, want: "machine.machine.openshift.io/a\nmachine.machine.openshift.io/b\n"},
		"numbers as they are, in YAML": {value: one, arguments: []string{"-o", "yaml"}, want: "items:\n- name: a\n  size: 12345678901234567890\n  text: \"<b>\\n\\e[2J\"\n"},
		"columns":                      {value: one, arguments: []string{"-o", "custom-columns=SIZE:.size"}, want: "SIZE\n12345678901234567890\n"},
		"a path":                       {value: some, arguments: []string{"-o", "jsonpath={.items[*].name}"}, want: "a b"},
		"a text":                       {value: page{"x"}, want: "TITLE\nx\n"},
		"a wide text without titles":   {value: page{"x"}, arguments: []string{"-o", "wide", "--no-headers"}, want: "x   wide\n"},
		"columns of what is no list":   {value: page{"x"}, arguments: []string{"-o", "custom-columns=T:.title"}, want: "T\nx\n"},
		"no form for people":           {value: formless{}, wantErr: "has no form for people"},
		"a format that is not known":   {value: some, arguments: []string{"-o", "xml"}, wantErr: `unable to match a printer suitable for the output format "xml"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := printing.With(tc.value, tc.arguments...)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("it returns %v; want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTexts(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, got := range map[string]string{
		"5m":                print.Age(now.Add(-5*time.Minute), now),
		"0s":                print.Age(now.Add(time.Minute), now), // another clock
		"-":                 print.AgeOf(nil, now),
		"acme@0123456789ab": print.Short("acme@sha256:0123456789abcdef"),
		"acme":              print.Short("acme"),
		`a b\u202ec\u200bd`: print.OneLine("a\nb\u202ec\u200bd"),
	} {
		if got != want {
			t.Errorf("it is %q; want %q", got, want)
		}
	}
}
