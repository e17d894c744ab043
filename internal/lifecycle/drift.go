package lifecycle

import (
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// DriftSetting is a Machine's drift policy.
type DriftSetting struct {
	Policy v1alpha1.DriftPolicy
	// Misread says why the Machine's policy is invalid, or is empty.
	Misread string
}

// DriftOf returns the drift policy of a Machine. An invalid policy falls back to Report.
func DriftOf(machine *machinev1beta1.Machine) DriftSetting {
	policy, err := render.DriftPolicy(machine)
	if err != nil {
		return DriftSetting{Policy: v1alpha1.DriftReport, Misread: err.Error()}
	}
	return DriftSetting{Policy: policy}
}

// repairDue reports whether drift is to be repaired now: a check has found drift since the last
// repair, and the backoff has expired.
func repairDue(f *Facts, interval time.Duration, now time.Time) bool {
	last, found := f.Record.Repair, f.Record.Check
	if f.Drift.Policy != v1alpha1.DriftRepair || found == nil || found.Result != record.DriftChanged {
		return false
	}
	return last == nil || found.At.After(last.At) && !now.Before(last.Until(interval))
}
