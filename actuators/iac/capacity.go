package iac

import (
	"context"
	"errors"
	"maps"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/reporting"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// osLabel is the label of a Machine that selects Windows.
const osLabel = "machine.openshift.io/os-id"

// Capacity implements actuators.CapacityEstimator from the provider module's metadata, and from the
// infrastructure if only that knows the instance type.
func (a *Actuator) Capacity(ctx context.Context, machine *machinev1beta1.Machine) (*actuators.Capacity, error) {
	return a.capacity(ctx, machine, true)
}

// catalogs is the estimator that asks no infrastructure.
type catalogs struct{ *Actuator }

// Catalogs returns an estimator for objects that no webhook reviews: it uses no Secret that they name.
func (a *Actuator) Catalogs() actuators.CapacityEstimator { return catalogs{a} }

func (c catalogs) Capacity(ctx context.Context, machine *machinev1beta1.Machine) (*actuators.Capacity, error) {
	return c.capacity(ctx, machine, false)
}

func (a *Actuator) capacity(
	ctx context.Context, machine *machinev1beta1.Machine, asks bool,
) (*actuators.Capacity, error) {
	machine, served, err := a.desired.Complete(machine)
	if err != nil {
		return nil, reporting.Typed(runs.Create, err)
	}
	if served.Spec().Capacity == nil {
		return nil, nil
	}
	providerSpec, err := render.ProviderSpec(machine, served)
	if err != nil {
		return nil, actuators.InvalidConfiguration("%s", err.Error())
	}
	size, err := module.SizeOf(served, providerSpec)
	if unknown, ok := errors.AsType[*module.UnknownTypeError](err); ok {
		typeErr := actuators.UnknownInstanceType(unknown.Type, unknown.Module, "%s.%s", render.ValuesPath(machine), unknown)
		if !asks || len(served.CapacityFiles()) == 0 {
			return nil, typeErr
		}
		size, err = a.sizes.read(ctx, a, sizeRequest{machine: machine, served: served, providerSpec: providerSpec,
			unknown: typeErr})
	}
	if _, waiting := actuators.AsRequeueAfter(err); waiting || actuators.IsUnknownInstanceType(err) {
		return nil, err
	}
	if err != nil {
		return nil, actuators.InvalidConfiguration("%s.%s", render.ValuesPath(machine), err)
	}
	labels := map[string]string{corev1.LabelOSStable: "linux"}
	if machine.Labels[osLabel] == "Windows" {
		labels[corev1.LabelOSStable] = "windows"
	}
	maps.Copy(labels, size.Labels)
	return &actuators.Capacity{CPU: size.CPU, MemoryMiB: size.MemoryMiB, GPU: size.GPU, Architecture: size.Architecture,
		Labels: labels}, nil
}

// VolumeWait implements actuators.VolumeWaiter. It uses the Machine's current module, even if
// another created the instance. Without a module there is no wait: Delete reports why it cannot
// proceed.
func (a *Actuator) VolumeWait(machine *machinev1beta1.Machine) time.Duration {
	_, serving, err := a.desired.Complete(machine)
	if err != nil || serving == nil {
		return 0
	}
	return serving.VolumeWait()
}
