package inspect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

func TestFormatsOfKubectlGet(t *testing.T) {
	runs := Runs(only(withRuns(), "workers-b", "new"), false)
	states, err := States(withStates())
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		value     print.Report
		arguments []string
		want      string
		wantErr   string
	}{
		"names of Machines": {value: runs, arguments: []string{"-o", "name"}, want: "machine.machine.openshift.io/workers-b\nmachine.machine.openshift.io/new\n"},
		"names of a tree": {
			value: Tree(everything()), arguments: []string{"-o", "name"},
			want: "machineset.machine.openshift.io/broken\nmachineset.machine.openshift.io/workers\nmachine.machine.openshift.io/alone\nmachine.machine.openshift.io/new\n",
		},
		"a path":                     {value: runs, arguments: []string{"-o", "jsonpath={.items[*].machine} {.items[0].last.result}"}, want: "workers-b new Failed"},
		"a path that is none":        {value: runs, arguments: []string{"-o", "jsonpath={.items"}, wantErr: "unclosed action"},
		"a template":                 {value: runs, arguments: []string{"--template", "{{range .items}}{{.phase}},{{end}}"}, want: "Running,Queued,"},
		"columns":                    {value: runs, arguments: []string{"-o", "custom-columns=NAME:.machine,PHASE:.phase"}, want: "NAME        PHASE\nworkers-b   Running\nnew         Queued\n"},
		"columns without titles":     {value: states, arguments: []string{"-o", "custom-columns=:.machine,:.serial", "--no-headers"}, want: "departed    2\nedited      2\nworkers-a   2\nworkers-b   2\nworkers-c   <none>\n"},
		"no columns":                 {value: runs, arguments: []string{"-o", "custom-columns"}, wantErr: "no custom columns given"},
		"a tree without titles":      {value: Tree(only(everything(), "new")), arguments: []string{"--no-headers"}, want: "MachineSet/broken    0/1 ready   60m   InvalidConfiguration: the template has no providerSpec; is being deleted\nMachineSet/workers   1/3 ready   2d\nMachine/new          -           0s\n"},
		"nothing as a table":         {value: &RunList{listing: listing{namespace: "x"}}, want: ""},
		"nothing as a tree":          {value: &Forest{}, want: ""},
		"a format that is not known": {value: runs, arguments: []string{"-o", "xml"}, wantErr: `unable to match a printer suitable for the output format "xml"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := printing.With(tc.value, tc.arguments...)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("it returns %v; want %q", err, tc.wantErr)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v; printed (-want +got):\n%s", err, diff)
			}
		})
	}
}
