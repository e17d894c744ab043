package iac

import (
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/engine"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// OpenShift's installer makes the servers of the control plane, and leaves their Machines without a
// provider ID and a status, whenever the operator has come. To take one over is a right, whatever
// the manager's policy is.
func TestAControlPlaneMachineGetsNoSecondServer(t *testing.T) {
	c := newCloud(t)
	master := c.machine()
	c.bring(master)
	made := c.Servers()
	c.restoreFromBefore(master)
	c.Set(master.Name, "machine-iac.io_machine-uid", "") // the installer writes none
	master.Labels[builder.RoleLabel] = "master"
	live := &machinev1beta1.Machine{}
	if err := c.client.Get(t.Context(), client.ObjectKeyFromObject(master), live); err != nil {
		t.Fatal(err)
	}
	live.Labels = master.Labels
	if err := c.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	c.adopts = adoption.Adopt
	c.start(shortdir.New(t), "owner-2")

	if err := c.drive(c.Create, master); !strings.Contains(fmt.Sprint(err), "looking up an instance of its name") {
		t.Errorf("Create: %v, want that an instance is looked up first", err)
	}
	planned := func() bool { return strings.Contains(fmt.Sprint(c.drive(c.Update, master)), "adoption planned") }
	for deadline := time.Now().Add(patience); !planned(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatal("no plan of the adoption in time")
		}
	}
	if got := c.Servers(); len(got) != 1 || ptr.Deref(master.Spec.ProviderID, "") != "" {
		t.Fatalf("%d servers, and the Machine has %v; want the one that was there, and nothing adopted", len(got), master.Spec.ProviderID)
	}
	c.ask(master, lifecycle.AdoptionAdopt)
	_ = c.drive(c.Update, master)
	if err := c.drive(c.Update, master); err != nil || ptr.Deref(master.Spec.ProviderID, "") != "openstack:///"+made[0].ID {
		t.Errorf("Update: %v, with the provider ID %v; want %s", err, ptr.Deref(master.Spec.ProviderID, ""), made[0].ID)
	}
}

func TestAnAdoptionChangesNothingOfTheControlPlane(t *testing.T) {
	report := &engine.Report{Changes: []engine.Change{
		{Address: "aws_instance.this", Action: engine.ActionUpdate, Import: true}, {Address: "terraform_data.made_with", Action: engine.ActionCreate},
	}}
	planned := &engine.PlannedObjects{Changed: map[string][]string{"aws_instance.this": {"tags"}}}
	machine := builder.Machine()
	of := &adopt{task: &task{run: run{machine: machine}}}
	if refused := of.changesControlPlane(report, planned); refused != "" {
		t.Errorf("a worker is refused: %s", refused)
	}
	machine.Labels = map[string]string{builder.RoleLabel: "master"}
	if refused := of.changesControlPlane(report, planned); !strings.Contains(refused, "would change aws_instance.this: tags") {
		t.Errorf("a change of a master is answered with %q", refused)
	}
	report.Changes[0].Action = engine.ActionNoOp
	if refused := of.changesControlPlane(report, planned); refused != "" {
		t.Errorf("a master that stays as it is is refused: %s", refused)
	}
}
