package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// destroysDeleted does as a manager does about Machines that are deleted once they have adopted their instance, until the test ends.
func (w *backupWorld) destroysDeleted(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			machines := &machinev1beta1.MachineList{}
			_ = w.Client.List(ctx, machines, client.InNamespace(w.namespace))
			for i := range machines.Items {
				machine := &machines.Items[i]
				adopt := machine.Annotations[lifecycle.AdoptionAnnotation] == string(lifecycle.AdoptionAdopt)
				if adopt && !machine.DeletionTimestamp.IsZero() {
					machine.Finalizers = nil
					_ = w.Client.Update(ctx, machine) // it is tried again
				}
			}
		}
	}()
}

// deletedFor returns the Machines that were deleted while they were to adopt their instance, from now on until it is called: the manager adopts and
// destroys such an instance.
func (w *backupWorld) deletedFor(t *testing.T) func() []string {
	t.Helper()
	watching, err := client.NewWithWatch(w.Config, client.Options{Scheme: w.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watching.Watch(t.Context(), &machinev1beta1.MachineList{}, client.InNamespace(w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan []string, 1)
	go func() {
		var names []string
		for event := range events.ResultChan() {
			machine, ok := event.Object.(*machinev1beta1.Machine)
			if ok && !machine.DeletionTimestamp.IsZero() && machine.Annotations[lifecycle.AdoptionAnnotation] == string(lifecycle.AdoptionAdopt) {
				names = append(names, machine.Name)
			}
		}
		found <- names
	}()
	return func() []string {
		time.Sleep(200 * time.Millisecond) // for the last event
		events.Stop()
		return <-found
	}
}

// begins does as a manager does that begins an adoption and refuses it only then.
func (w *backupWorld) begins(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
			machine := &machinev1beta1.Machine{}
			if w.Client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: name}, machine) != nil {
				continue
			}
			metav1.SetMetaDataAnnotation(&machine.ObjectMeta, record.WitnessAnnotation, `{"uid":"`+string(machine.UID)+`"}`)
			if w.Client.Update(ctx, machine) == nil {
				w.report(ctx, machine, v1alpha1.AdoptionStatus{Refused: "it is in use"})
			}
		}
	}()
}

// listed writes an inventory.
func (w *backupWorld) listed(t *testing.T, listedBy string, names ...string) {
	t.Helper()
	var report lifecycle.InventoryReport
	for _, name := range names {
		report.Instances = append(report.Instances, lifecycle.OrphanedInstance{
			ListedInstance: lifecycle.ListedInstance{Name: name, ProviderID: "cloud:///" + name}, ListedBy: listedBy, Orphaned: true,
		})
	}
	raw, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: lifecycle.InventoryConfigMap}, Data: map[string]string{lifecycle.InventoryKey: string(raw)},
	}); err != nil {
		t.Fatal(err)
	}
}

func (w *backupWorld) isGone(t *testing.T, name string) {
	t.Helper()
	err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, &machinev1beta1.Machine{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Machine %s is there: %v", name, err)
	}
}

func TestAnOrphanedInstanceGetsAMachine(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	w.listed(t, "kept", "vm-1", "vm-2", "vm-3", "VM_4", "kept")
	w.reports(t, map[string]v1alpha1.AdoptionStatus{
		"vm-1": {Imports: []string{"server.this"}}, "vm-2": {Refused: "the server belongs to the cluster other"}, "vm-3": {Imports: []string{"server.this", "port.this"}},
		lifecycle.OrphanMachineNames("VM_4", "cloud:///VM_4")[0]: {Imports: []string{"server.this"}},
		lifecycle.OrphanMachineNames("kept", "cloud:///kept")[1]: {Imports: []string{"server.this"}},
	})
	w.destroysDeleted(t)

	w.expect(t, "orphans vm-1 --adopt-as kept", 1, "there is already a Machine kept")
	w.expect(t, "orphans vm-1 vm-2 --adopt-as vm-1", 1, "gives one orphan a Machine")
	w.expect(t, "orphans vm-1 --adopt-as vm-1", 0, "machine/vm-1 has adopted cloud:///vm-1")
	made := w.get(t, "vm-1")
	like := w.get(t, "kept")
	if string(made.Spec.ProviderSpec.Value.Raw) != string(like.Spec.ProviderSpec.Value.Raw) || len(made.Labels) != 1 || *made.Spec.ProviderID != "cloud:///vm-1" {
		t.Errorf("the Machine is %+v", made)
	}
	deleted := w.deletedFor(t)
	w.expect(t, "orphans vm-2 --adopt-as vm-2", 1, "cloud:///vm-2 is not adopted: the server belongs to the cluster other")
	w.isGone(t, "vm-2")
	if names := deleted(); len(names) > 0 {
		t.Errorf("to withdraw an adoption that is refused, %v was deleted so that the manager would destroy its instance", names)
	}
	w.begins(t, "begun")
	w.expect(t, "orphans vm-3 --adopt-as begun", 1, "it is in use", "the Machine begun has begun to adopt the instance")
	if begun := w.get(t, "begun"); !begun.DeletionTimestamp.IsZero() {
		t.Error("a Machine that has begun to adopt an instance is deleted, which destroys the instance")
	}
	w.expect(t, "orphans --destroy vm-2 --yes", 1, "cannot be adopted, and so is not destroyed: the server belongs", "nothing was changed")
	w.isGone(t, "vm-2")
	w.expect(t, "orphans --destroy vm-3", 1, "  server.this\n  port.this\nDestroy this?", "it was not confirmed; nothing was changed")
	w.isGone(t, "vm-3")
	w.expect(t, "orphans --destroy vm-3 --yes --wait 0", 1, "leave out --wait 0")
	for _, name := range []string{"vm-3", "VM_4", "cloud:///kept"} {
		w.expect(t, "orphans --destroy "+name+" --yes", 0, " is destroyed\n")
	}
	w.isGone(t, "vm-3")
	w.expect(t, "orphans vm-3 --adopt-as silent --wait 1s", 1, "has not adopted cloud:///vm-3 within 1s", "kubectl annotate machine", lifecycle.AdoptionAnnotation+"=Plan")
	if asked := w.get(t, "silent").Annotations[lifecycle.AdoptionAnnotation]; asked != string(lifecycle.AdoptionAdopt) {
		t.Errorf("the request is %q", asked)
	}
}

func TestAnOrphanedStateGetsAMachine(t *testing.T) {
	long.Test(t)
	w := newBackupWorld(t)
	of := func(name string) state.Key {
		return w.orphanWith(t, name, strings.Replace(stateBody(1), `"lineage":"l"`, `"lineage":"`+name+`"`, 1))
	}
	gone, back := of("departed"), of("back")
	w.expect(t, "orphans departed --adopt-as another", 1, "write --adopt-as departed")
	w.expect(t, "orphans departed --adopt-as departed", 1, "name one with --machine-set")
	w.expect(t, "orphans departed --adopt-as departed --machine-set nobody", 1, `"nobody" not found`)
	w.expect(t, "orphans departed --adopt-as departed --machine-set workers", 1, "would delete one for departed: scale it to")
	set := &machinev1beta1.MachineSet{}
	if err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "workers"}, set); err != nil {
		t.Fatal(err)
	}
	set.Spec.Replicas = ptr.To[int32](10)
	if err := w.Client.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "orphans departed --adopt-as departed --machine-set workers", 0, "machine/departed has the state of the Machine with UID uid-of-departed")
	made := w.get(t, "departed")
	if _, asked := made.Annotations[lifecycle.AdoptionAnnotation]; asked {
		t.Errorf("its annotations are %v", made.Annotations)
	}
	w.has(t, made.UID, gone)

	there := w.make(t, "back", "")
	w.expect(t, "orphans back --adopt-as back", 0, "machine/back has the state")
	w.has(t, there.UID, back)
}

// has expects a state to be under the UID of a Machine, and not where it was.
func (w *backupWorld) has(t *testing.T, uid types.UID, was state.Key) {
	t.Helper()
	if now, err := w.states.Get(t.Context(), state.KeyFor(w.namespace, uid)); err != nil || now.Raw == nil {
		t.Errorf("the state of %s: %v", uid, err)
	}
	if _, err := w.states.Get(t.Context(), was); err == nil {
		t.Errorf("the state %s is there still", was)
	}
}
