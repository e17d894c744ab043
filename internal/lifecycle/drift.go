package lifecycle

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// DriftSetting is what a Machine asks to be done about drift.
type DriftSetting struct {
	Policy v1alpha1.DriftPolicy
	// Misread says why the policy is not the one that the Machine names; empty when it is.
	Misread string
}

// DriftOf returns what a Machine asks to be done about drift. A policy that cannot be read is Report.
func DriftOf(machine *machinev1beta1.Machine) DriftSetting {
	policy, err := render.DriftPolicy(machine)
	if err != nil {
		return DriftSetting{Policy: v1alpha1.DriftReport, Misread: err.Error()}
	}
	return DriftSetting{Policy: policy}
}

// repairDue reports whether an instance is to be brought back now: a check after the last repair found it changed, and its pause is over.
func repairDue(f *Facts, interval time.Duration, now time.Time) bool {
	last, found := f.Record.Repair, f.Record.Check
	if f.Drift.Policy != v1alpha1.DriftRepair || found == nil || found.Result != record.DriftChanged {
		return false
	}
	return last == nil || found.At.After(last.At) && !now.Before(last.Until(interval))
}
