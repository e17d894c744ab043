package iac

import (
	"context"
	"encoding/json"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// readMachine reads a Machine from the API server. It returns nil if none has that UID.
func (a *Actuator) readMachine(ctx context.Context, key types.NamespacedName,
	uid types.UID) (*machinev1beta1.Machine, error) {
	machine := &machinev1beta1.Machine{}
	err := a.client.Get(ctx, key, machine)
	switch {
	case apierrors.IsNotFound(err), err == nil && machine.UID != uid:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the Machine: %w", err)
	}
	return machine, nil
}

// checkWitness reports an unreadable witness. A decision takes it for a missing one.
func (a *Actuator) checkWitness(machine *machinev1beta1.Machine, f *lifecycle.Facts) {
	err := record.UnreadableWitness(machine)
	if err == nil {
		return
	}
	fix := "restore its value from a backup, or remove the annotation if the Machine never had an instance"
	if f.HasInstance() {
		fix = "it is written again from the state"
	}
	reporting.InvalidAnnotation(machine, record.WitnessAnnotation, err, fix).Send(a.recorder)
}

// writeWitness signs a witness and writes it on the Machine. It needs no resource version, because
// only this operator writes the annotation.
func (a *Actuator) writeWitness(ctx context.Context, machine *machinev1beta1.Machine, w record.Witness) error {
	return a.patchWitness(ctx, machine, w.SignedFor(machine, a.installation))
}

// removeWitness removes the witness from a Machine whose instance is released.
func (a *Actuator) removeWitness(ctx context.Context, machine *machinev1beta1.Machine) error {
	return a.patchWitness(ctx, machine, nil)
}

// patchWitness sets the annotation to a value; nil removes it.
func (a *Actuator) patchWitness(ctx context.Context, machine *machinev1beta1.Machine, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": machine.UID, "annotations": map[string]any{record.WitnessAnnotation: value},
	}})
	if err != nil {
		return fmt.Errorf("writing annotation %s: %w", record.WitnessAnnotation, err)
	}
	target := machine.DeepCopy()
	if err := a.client.Patch(ctx, target, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("writing annotation %s on the Machine: %w", record.WitnessAnnotation, err)
	}
	return nil
}
