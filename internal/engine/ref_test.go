package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheInstanceIsFoundWithoutItsAddress(t *testing.T) {
	cases := map[string]struct {
		change Change
		want   bool
	}{
		"the instance":                                {Change{Ref: Ref{Name: "this"}, Address: "x_vm.this"}, true},
		"the instance, of a type with dots":           {Change{Ref: Ref{Name: "this"}, Address: "kubernetes:kubevirt.io/v1:VirtualMachine.this"}, true},
		"what belongs to it":                          {Change{Ref: Ref{Name: "disk"}, Address: "x_disk.disk"}, false},
		"one of that name in a module of the module":  {Change{Ref: Ref{Module: "module.disk", Name: "this"}, Address: "module.disk.x_disk.this"}, false},
		"a data source of that name":                  {Change{Ref: Ref{Name: "this", Data: true}, Address: "data.x_image.this"}, false},
		"what an engine has said nothing of but that": {Change{Address: "x_vm.this"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.change.Instance(); got != tc.want {
				t.Errorf("Instance() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTheInstanceOfACallIsTheInstanceWithin(t *testing.T) {
	report := &Report{Changes: []Change{
		{Ref: Ref{Module: "module.m1", Name: "this"}, Address: "module.m1.x_vm.this"},
		{Ref: Ref{Module: "module.m1.module.disk", Name: "this"}, Address: "module.m1.module.disk.x_disk.this"},
		{Ref: Ref{Module: "module.m10", Name: "this"}, Address: "module.m10.x_vm.this"},
	}}
	want := []Change{
		{Ref: Ref{Name: "this"}, Address: "x_vm.this"},
		{Ref: Ref{Module: "module.disk", Name: "this"}, Address: "module.disk.x_disk.this"},
	}
	if diff := cmp.Diff(want, report.ForModule("module.m1").Changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
