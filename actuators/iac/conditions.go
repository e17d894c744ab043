package iac

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
)

// driftCondition tells what the last check found and what comes of it; nil before the first.
func driftCondition(f *lifecycle.Facts, interval time.Duration, now time.Time) *metav1.Condition {
	told := &metav1.Condition{Type: drifted, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	found, last := f.Record.Check, f.Record.Repair
	if f.Drift.Policy == v1alpha1.DriftIgnore && (found == nil || found.Result != lifecycle.DriftMissing) {
		told.Status, told.Reason, told.Message = metav1.ConditionUnknown, "Ignored", "drift is not looked for, nor an instance that is gone: the drift policy is Ignore"
		return told
	}
	if found == nil {
		return nil
	}
	told.LastTransitionTime = metav1.NewTime(found.At.Truncate(time.Second))
	told.Status, told.Reason = metav1.ConditionFalse, "AsApplied"
	if found.Result != lifecycle.DriftNone {
		told.Status, told.Reason, told.Message = metav1.ConditionTrue, "Instance"+string(found.Result), found.Summary
	}
	if found.Result == lifecycle.DriftChanged && f.Drift.Policy == v1alpha1.DriftRepair && last != nil {
		told.Message += "; " + last.Message(interval)
	}
	if f.Drift.Misread != "" {
		told.Message = joined(told.Message, f.Drift.Misread+"; until then drift is reported")
	}
	return told
}

// joined puts what is not empty behind one another.
func joined(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// moduleCurrent is the condition in the provider status that tells whether the instance was made with the module as it is now.
const moduleCurrent = "ModuleCurrent"

// moduleCondition tells how a Machine's own module stands to the current one; withheld says why it does not get that although it may.
// A Machine that is bound to no module has no such condition.
func moduleCondition(c *choices, withheld *actuators.MachineError) *metav1.Condition {
	if c.bound == "" {
		return nil
	}
	told := &metav1.Condition{Type: moduleCurrent, Status: metav1.ConditionFalse}
	switch {
	case c.current == nil:
		told.Reason, told.Message = reasonNotServed, fmt.Sprintf("no module serves the providerSpec any more; the Machine keeps %s", short(c.bound))
	case !c.other():
		told.Status, told.Reason = metav1.ConditionTrue, reasonCurrent
	case withheld != nil:
		told.Reason, told.Message = reasonUpdateRefused, fmt.Sprintf("the Machine keeps module %s and does not get %s: %s",
			short(c.bound), short(c.current.Reference()), withheld.Message)
	case c.own == nil:
		told.Reason, told.Message = reasonContentLost, c.lostMessage()
	case c.renewable():
		told.Reason, told.Message = reasonUpdating, fmt.Sprintf("the Machine gets module %s in place of %s", short(c.current.Reference()), short(c.bound))
	default:
		told.Reason, told.Message = reasonUpdateHeld, fmt.Sprintf("the Machine keeps module %s, which its instance was made with; the current one is %s, "+
			"and the annotation %s: %s lets the instance be brought to it in place", short(c.bound), short(c.current.Reference()),
			ModuleUpdatesAnnotation, ModuleUpdatesInPlace)
	}
	if c.misread != "" {
		told.Message = joined(told.Message, c.misread)
	}
	return told
}

// Reasons of moduleCurrent.
const (
	reasonCurrent       = "AsRecorded"
	reasonUpdateHeld    = "UpdateHeld"
	reasonUpdating      = "Updating"
	reasonUpdateRefused = "UpdateRefused"
	reasonContentLost   = "ContentLost"
	reasonNotServed     = "NotServed"
)
