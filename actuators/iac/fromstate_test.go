package iac

import (
	"io/fs"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
)

// needsUserData has a variable refuse user data that is empty, as modules/azure does.
var needsUserData = []string{`nothing."
  sensitive   = true
}`, `nothing."
  sensitive   = true

  validation {
    condition     = var.user_data != ""
    error_message = "Nothing boots without user data."
  }
}`}

// needsTemplate has a create read an object that people remove later, and hold conditions on it and
// on the user data.
func needsTemplate(template string) string {
	return `
provider "kubectl" {
  apply_retry_count = var.provider_spec.cpu - var.provider_spec.cpu
}

data "kubectl_objects" "template" {
  api_version    = "v1"
  resource       = "nodes"
  field_selector = "metadata.name=` + template + `"

  lifecycle {
    postcondition {
      condition     = length(self.objects) == 1
      error_message = "There is no template."
    }
  }
}

resource "terraform_data" "template" {
  input = jsondecode(data.kubectl_objects.template.objects[0]).metadata.name

  lifecycle {
    precondition {
      condition     = nonsensitive(var.user_data) == "` + hidden + `"
      error_message = "The user data is not what was given."
    }
  }
}
`
}

// changed returns the kubemark module of a bench's engine with changes; what is added is added to
// HCL alone.
func (b *bench) changed(added string, replaced ...string) *module.Module {
	b.t.Helper()
	folders := fs.FS(modules.FS)
	if b.uses == v1alpha1.EnginePulumi {
		folders = stacks.FS
	}
	return changed(b.t, folders, added, replaced...)
}

// needy has a bench serve a module, or stack, that needs more for a create than for anything else.
// The returned function takes that away.
func (b *bench) needy(userData string) (remove func()) {
	b.t.Helper()
	template := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-template"}}
	if err := plane.Create(b.t.Context(), template); err != nil {
		b.t.Fatal(err)
	}
	b.upgrade(b.changed(needsTemplate(template.Name), needsUserData...), "owner-2")
	return func() {
		b.t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: userData}}
		for _, gone := range []client.Object{template, secret} {
			if err := b.client.Delete(b.t.Context(), gone); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func TestAMachineIsDeletedByItsStateAlone(t *testing.T) {
	eachEngine(t, aMachineIsDeletedByItsStateAlone)
}

func aMachineIsDeletedByItsStateAlone(t *testing.T, b *bench) {
	remove := b.needy("mine")
	machine := b.machine(b.userData("mine", nil))
	b.bring(machine)
	remove()
	set(machine, b, "cpu", -1)
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance gone", err)
	}
}

func TestMachinesAreDeletedTogetherByTheirStatesAlone(t *testing.T) {
	b := newBench(t)
	b.batch = 10
	remove := b.needy("mine")
	machines := b.machines(3, b.userData("mine", nil))
	for _, machine := range machines {
		b.bring(machine)
	}
	remove()
	if starts := b.atOnce(b.Delete, machines); starts > 2 {
		t.Errorf("%d processes of the engine removed %d Machines, want one", starts, len(machines))
	}
	for _, machine := range machines {
		if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
			t.Errorf("Delete: %v, want the instance gone", err)
		}
	}
}

// What an interrupted create has made is looked up by the module itself, which needs user data that
// is not stored, and which is not used for anything.
func TestALostCreateIsDeletedWithoutItsUserData(t *testing.T) {
	b := newBench(t)
	b.upgrade(b.changed("", needsUserData...), "owner-2")
	machine := b.machine(b.userData("mine", nil))
	b.bring(machine)
	b.interrupted(machine, "mine")
	if err := b.drive(b.Delete, machine); err != nil || b.node(machine) != nil {
		t.Errorf("Delete: %v, want the instance gone", err)
	}
}
