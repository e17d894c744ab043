package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

func someOrphans() *OrphanList {
	seen, kept := ago(26*time.Hour), ago(3*time.Minute)
	return &OrphanList{listing: listing{namespace, now}, Items: []Orphan{
		{
			Kind: OrphanState, Namespace: namespace, Machine: "workers-a", UID: uidOf("workers-a"), MachineSet: "workers", Secret: "tfstate-default-ma", Since: &seen,
			Resources: []statefile.ResourceID{{Address: "vsphere_virtual_machine.this", ID: "4225"}, {Address: "terraform_data.made_with"}}, Module: moduleRef,
		},
		{
			Kind: OrphanState, Namespace: namespace, Machine: "workers-b", UID: uidOf("workers-b"), Secret: "tfstate-default-mb", Resources: []statefile.ResourceID{}, Action: "Destroy",
			Lock: &state.Lock{Owner: "m", Run: "r", Operation: "destroy", Since: now.Add(-time.Minute)}, Problem: "no way to the vCenter", Claimed: "the Machine x names its instance: so it does",
		},
		{
			Kind: OrphanUnsaved, Namespace: namespace, Machine: "workers-a", UID: uidOf("workers-a"), Secret: "tfstate-default-ma-orphan-1", Since: &kept,
			Resources: []statefile.ResourceID{{Address: "vsphere_virtual_machine.this", ID: "4226"}}, Problem: "run 1 of manager m could not save it",
		},
		newInstance(namespace, "ours", lifecycle.OrphanedInstance{
			ListedInstance: lifecycle.ListedInstance{Name: "vm-9", ProviderID: "vsphere://4227", Installation: "theirs"}, Module: moduleRef, FirstSeen: now.Add(-time.Hour), Orphaned: true,
		}),
	}}
}

func TestOrphans(t *testing.T) {
	for format, extension := range map[string]string{"table": "txt", "wide": "wide.txt", "json": "json", "yaml": "yaml"} {
		t.Run(format, func(t *testing.T) {
			golden.Check(t, "testdata/orphans."+extension, printing.As(t, format, someOrphans()))
		})
	}
	t.Run("names", func(t *testing.T) {
		if got := printing.As(t, "name", someOrphans()); !strings.HasPrefix(got, "secret/tfstate-default-ma\n") {
			t.Errorf("it prints %s", got)
		}
	})
}

func TestOrphansOfNames(t *testing.T) {
	facts := &Facts{Machines: []v1beta1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "there"}}}}
	for name, tc := range map[string]struct {
		names []string
		want  int
		err   string
	}{
		"none stands for all":              {want: 4},
		"of a Machine":                     {names: []string{"workers-a"}, want: 2},
		"a UID":                            {names: []string{string(uidOf("workers-b"))}, want: 1},
		"a Secret":                         {names: []string{"tfstate-default-ma"}, want: 1},
		"an instance":                      {names: []string{"vm-9"}, want: 1},
		"an instance by its provider ID":   {names: []string{"vsphere://4227"}, want: 1},
		"a Secret as kubectl prints it":    {names: []string{"secret/tfstate-default-ma-orphan-1"}, want: 1},
		"of a Machine that exists":         {names: []string{"there"}, err: `the Machine "there" exists`},
		"one that is none":                 {names: []string{"workers-c"}, err: "did you mean workers-a, workers-b?"},
		"nothing":                          {names: []string{""}, err: "there is no orphan"},
		"one that is, and one that is not": {names: []string{"workers-a", "x"}, err: `there is no orphan "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			list := someOrphans()
			err := list.only(tc.names, facts)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) || err == nil && len(list.Items) != tc.want {
				t.Errorf("%d are left, error %v; want %d, error %q", len(list.Items), err, tc.want, tc.err)
			}
		})
	}
}
