package load_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-iac/machine-iac-operator/internal/module/contract"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/test/moduletest"
)

func TestAStackMayAdopt(t *testing.T) {
	loaded := moduletest.LoadStack(t, moduletest.WithAdoption()...)
	if diff := cmp.Diff([]string{"adopt/Pulumi.yaml"}, loaded.AdoptFiles()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !loaded.AdoptAbsent("instance not there") || loaded.AdoptAbsent("no such instance") || loaded.Absent("instance not there") {
		t.Error("the words for absence are those of another search")
	}
	if without := moduletest.LoadStack(t); len(without.AdoptFiles()) != 0 || without.AdoptCreates() != nil {
		t.Error("want no adoption where there is none")
	}
}

func TestLoadRefusesAnAdoptionThatBreaksTheContractOfStacks(t *testing.T) {
	for name, tc := range map[string]struct {
		change moduletest.Change
		want   string // the whole text of the only breach
	}{
		"module.yaml does not know of it": {
			change: moduletest.Change{"module.yaml", "  adopt:\n    absent: ['not there']\n    creates: ['random:index/randomId:RandomId']\n", ""},
			want:   "adopt/Pulumi.yaml: exists, but module.yaml has no spec.adopt; add spec.adopt: {}",
		},
		"it is not there": {
			change: moduletest.Change{"adopt/Pulumi.yaml", "", ""},
			want:   "module.yaml:18: spec.adopt is set, but there is no adopt/Pulumi.yaml; create it, or remove spec.adopt",
		},
		"it does not take what it adopts": {
			change: moduletest.Change{"adopt/Pulumi.yaml", "  adopt:\n    type: object\n", "  machine:\n    type: object\n"},
			want:   "adopt/Pulumi.yaml: config.adopt is missing; add adopt: {type: object}",
		},
		"the program takes what only an adoption is given": {
			change: moduletest.Change{"Pulumi.yaml", "  machine:\n", "  adopt: {type: object}\n  machine:\n"},
			want:   "Pulumi.yaml:5: config.adopt is passed to adopt/Pulumi.yaml only; remove it",
		},
		"it makes something": {
			change: moduletest.Change{"adopt/Pulumi.yaml", "    get:\n      id: instances/${adopt.id}\n", ""},
			want:   "adopt/Pulumi.yaml:9: resources.this would be created; add get: an adoption only reads",
		},
		"it reads something else": {
			change: moduletest.Change{"adopt/Pulumi.yaml", "example:index:Instance", "example:index:Disk"},
			want: "adopt/Pulumi.yaml:6: does not read example:index/instance:Instance.this; " +
				"read the instance with the same name and type as in the program",
		},
		"it goes by the providerSpec": {
			change: moduletest.Change{"adopt/Pulumi.yaml", "${adopt.id}", "${provider_spec.size}"},
			want: "adopt/Pulumi.yaml:12: resources.this.get refers to provider_spec, which says nothing about an existing instance; " +
				"use adopt, or the result of a function",
		},
		"it may create what the program does not make": {
			change: moduletest.Change{"module.yaml", "random:index/randomId:RandomId", "random:RandomID"},
			want: `module.yaml:20: spec.adopt.creates[0] is "random:RandomID", which is not the type of a resource of the module; ` +
				"use the type of a resource that cannot be imported",
		},
		"an inventory, which a stack has not": {
			change: moduletest.Change{"module.yaml", "  lookup:\n", "  inventory: {}\n  lookup:\n"},
			want:   "module.yaml:21: spec.inventory is set, but stacks have no inventory; remove it",
		},
		"the program of an inventory, which a stack has not": {
			change: moduletest.Change{"inventory/Pulumi.yaml", "", "name: example\n"},
			want:   "inventory/Pulumi.yaml: exists, but stacks have no inventory; remove it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load.Module(moduletest.FS(moduletest.ChangedStack(t, append(moduletest.WithAdoption(), tc.change)...)))
			var broken *contract.Error
			if !errors.As(err, &broken) || len(broken.Breaches) != 1 || broken.Breaches[0].String() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
