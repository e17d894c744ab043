package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// extensions are those of the golden files, by format.
var extensions = map[string]string{"table": "txt", "wide": "wide.txt", "json": "json", "yaml": "yaml"}

func printed(t *testing.T, format string, value any) string {
	t.Helper()
	var out strings.Builder
	if err := Print(&out, format, value); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTree(t *testing.T) {
	forest, err := Tree(everything(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for format, extension := range extensions {
		t.Run(format, func(t *testing.T) { golden(t, "tree."+extension, printed(t, format, forest)) })
	}
	t.Run("a table is what is printed when nobody asks", func(t *testing.T) {
		if got := printed(t, "", forest); got != printed(t, "table", forest) {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("of all namespaces", func(t *testing.T) {
		facts := everything()
		facts.Namespace, facts.Machines[4].Namespace = "", "elsewhere"
		forest, err := Tree(facts, nil)
		if got := printed(t, "", forest); err != nil || !strings.Contains(got, "\nMachine/elsewhere/new ") || !strings.Contains(got, "─ Machine/openshift-machine-api/workers-a ") {
			t.Errorf("%v; it prints\n%s", err, got)
		}
	})
	t.Run("without Nodes", func(t *testing.T) {
		facts := everything()
		facts.Nodes = nil
		forest, err := Tree(facts, []string{"workers-a"})
		if got := printed(t, "", forest); err != nil || !strings.Contains(got, "Node/ready ") || !strings.Contains(got, "NotRead") {
			t.Errorf("%v; it prints\n%s", err, got)
		}
	})
}

func TestTreeOfNames(t *testing.T) {
	cases := map[string]struct {
		names   []string
		want    []string
		wantErr string
	}{
		"all":                               {want: []string{"broken", "workers", "alone", "new"}},
		"a MachineSet":                      {names: []string{"workers"}, want: []string{"workers"}},
		"a Machine of a MachineSet":         {names: []string{"workers-b"}, want: []string{"workers-b"}},
		"in the order in which they stand":  {names: []string{"new", "broken", "new"}, want: []string{"new", "broken"}},
		"a slip":                            {names: []string{"wrokers-a"}, wantErr: `there is no MachineSet or Machine "wrokers-a" in namespace openshift-machine-api; did you mean workers-a`},
		"a beginning":                       {names: []string{"wor"}, wantErr: "did you mean workers, workers-a, workers-b?"},
		"something else":                    {names: []string{"alone", "nothing-like-it"}, wantErr: "'kubectl machine tree' shows what there is"},
		"an instance, which is not a thing": {names: []string{"vm-17"}, wantErr: `"vm-17"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			forest, err := Tree(everything(), tc.names)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("it answers %v; want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range forest.Items {
				got = append(got, item.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("in an empty namespace", func(t *testing.T) {
		_, err := Tree(&Facts{Namespace: "default"}, []string{"a"})
		if err == nil || !strings.Contains(err.Error(), "name the namespace with -n, for example -n openshift-machine-api") {
			t.Errorf("it answers %v", err)
		}
	})
}

func TestPrint(t *testing.T) {
	t.Run("a format that is not known", func(t *testing.T) {
		if err := Print(&strings.Builder{}, "xml", &Forest{}); err == nil || !strings.Contains(err.Error(), `"xml" is not known; write -o table`) {
			t.Errorf("it answers %v", err)
		}
	})
	t.Run("what is no table", func(t *testing.T) {
		if err := Print(&strings.Builder{}, "", 1); err == nil {
			t.Error("it prints a number as a table")
		}
	})
	t.Run("a terminal is left alone", func(t *testing.T) {
		got := printed(t, "", &Forest{Items: []*Item{{Kind: kindMachine, Name: "a\x1b[2J", Status: "b\nc\u009b1m"}}})
		if strings.ContainsAny(got, "\x1b\u009b") || strings.Count(got, "\n") != 2 {
			t.Errorf("it prints %q", got)
		}
	})
	t.Run("a long text is cut, but not in a wide table", func(t *testing.T) {
		long := strings.Repeat("ä", 101)
		forest := &Forest{Items: []*Item{{Kind: kindMachine, Notes: []string{long}}}}
		if got := printed(t, "", forest); !strings.Contains(got, strings.Repeat("ä", 97)+"...\n") {
			t.Errorf("it prints %q", got)
		}
		if got := printed(t, "wide", forest); !strings.Contains(got, long) {
			t.Errorf("wide, it prints %q", got)
		}
	})
}
