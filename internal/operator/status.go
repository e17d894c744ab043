package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of conditions, as machine-api-operator has them.
const (
	reasonAsExpected   = "AsExpected"
	reasonInitializing = "Initializing"
	reasonSyncing      = "SyncingResources"
	reasonFailed       = "SyncingFailed"
	// reasonDowngrade is not machine-api-operator's, which applies whatever it carries.
	reasonDowngrade = "DowngradeRefused"
	// reasonMissingCRDs is this operator's own. machine-api-operator leaves its CRDs to the cluster's version operator.
	reasonMissingCRDs = "CRDsMissing"
	// reasonCrash is this operator's own, too: machine-api-operator says that its Deployment is not ready.
	reasonCrash = "ControllersCrash"
	// reasonSandbox says that engines may run unconfined.
	reasonSandbox = "SandboxNotRequired"
)

// enginesConfined is a condition that is there once engines were allowed to run unconfined.
const enginesConfined configv1.ClusterStatusConditionType = "EnginesConfined"

// changesReverted is a condition that is there once the operator has reverted what others changed. It
// is True for revertedFor.
const (
	changesReverted configv1.ClusterStatusConditionType = "ChangesReverted"
	reasonReverted                                      = "ChangedByOthers"
	revertedFor                                         = time.Hour
)

// upgradePatience is how long an upgrade may fail before the operator is degraded.
const upgradePatience = 20 * time.Minute

// versionName is the name of the operator's version among those that are reported.
const versionName = "operator"

// outcome is how a sync went.
type outcome struct {
	// rolledOut is true if everything is applied and runs.
	rolledOut bool
	// failure is why it is not; nil while it merely takes its time.
	failure error
	// unconfined is the flag that allows engines to run unconfined, empty where none does.
	unconfined string
	// reverted is the change of somebody else that was reverted, or empty.
	reverted string
}

// downgradeError says that a newer operator has applied the operands, so that nothing was.
type downgradeError struct{ message string }

func (e *downgradeError) Error() string { return e.message }

// missingCRDsError names CRDs of the Machine API that the cluster does not have.
type missingCRDsError struct{ names []string }

func (e *missingCRDsError) Error() string {
	return fmt.Sprintf("the cluster has no CRD %s; apply the CRDs of this release again (install/kubernetes/crds), and "+
		"restore the objects from a backup", strings.Join(e.names, ", "))
}

// next returns the status after a sync, by machine-api-operator's rules: Available is only
// withdrawn if a CRD was deleted, the version is reported once it has been rolled out, and an
// upgrade may fail for a while before the operator becomes degraded.
func next(before configv1.ClusterOperatorStatus, version string, related []configv1.ObjectReference, now time.Time,
	o outcome) configv1.ClusterOperatorStatus {
	after := *before.DeepCopy()
	after.RelatedObjects = related
	set := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) {
		setCondition(&after.Conditions, configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, Reason: reason,
			Message: message}, now)
	}
	if len(before.Conditions) == 0 {
		set(configv1.OperatorAvailable, configv1.ConditionFalse, reasonInitializing, "Operator is initializing")
		set(configv1.OperatorDegraded, configv1.ConditionFalse, reasonInitializing, "Operator is initializing")
	}
	set(configv1.OperatorUpgradeable, configv1.ConditionTrue, reasonAsExpected, "")
	remarks(before, now, o, set)
	if o.rolledOut {
		set(configv1.OperatorAvailable, configv1.ConditionTrue, reasonAsExpected,
			"Cluster Machine API Operator is available at operator: "+version)
		set(configv1.OperatorProgressing, configv1.ConditionFalse, reasonAsExpected, "")
		set(configv1.OperatorDegraded, configv1.ConditionFalse, reasonAsExpected, "")
		after.Versions = []configv1.OperandVersion{{Name: versionName, Version: version}}
		return after
	}
	if stopped(before, o.failure, set) {
		return after
	}
	recovered(before, set)
	upgrading := reported(before) != version
	if upgrading {
		set(configv1.OperatorProgressing, configv1.ConditionTrue, reasonSyncing, "Progressing towards operator: "+version)
	}
	if o.failure == nil {
		return after
	}
	if !upgrading {
		set(configv1.OperatorDegraded, configv1.ConditionTrue, reasonFailed,
			fmt.Sprintf("Failed to resync for operator: %s because %v", version, o.failure))
	} else if now.Sub(since(before, configv1.OperatorProgressing, now)) > upgradePatience {
		set(configv1.OperatorDegraded, configv1.ConditionTrue, reasonFailed,
			fmt.Sprintf("Failed when progressing towards operator: %s because %v", version, o.failure))
	}
	return after
}

// setter sets a condition.
type setter func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string)

// remarks sets the conditions that are there only once they have been of interest.
func remarks(before configv1.ClusterOperatorStatus, now time.Time, o outcome, set setter) {
	if o.unconfined != "" {
		set(enginesConfined, configv1.ConditionFalse, reasonSandbox,
			fmt.Sprintf("The ConfigMap %s has %s in %s: where that confines nothing, a provider can read the token of the controllers' "+
				"service account, which may list all Secrets of the namespace", SettingsName, o.unconfined, settingArguments))
	} else if condition(before, enginesConfined) != nil {
		set(enginesConfined, configv1.ConditionTrue, reasonAsExpected, "")
	}
	if o.reverted != "" {
		set(changesReverted, configv1.ConditionTrue, reasonReverted, fmt.Sprintf("The operator reverted a change of %s; "+
			"change the settings in the ConfigMap %s instead", o.reverted, SettingsName))
	} else if condition(before, changesReverted) != nil && now.Sub(since(before, changesReverted, now)) > revertedFor {
		set(changesReverted, configv1.ConditionFalse, reasonAsExpected, "")
	}
}

// stopped sets the conditions at once for failures that do not pass by waiting, and reports whether
// this is one.
func stopped(before configv1.ClusterOperatorStatus, failure error, set setter) bool {
	reason := ""
	if _, ok := errors.AsType[*downgradeError](failure); ok {
		reason = reasonDowngrade
	} else if _, ok := errors.AsType[*missingCRDsError](failure); ok {
		reason = reasonMissingCRDs
		if !initial(before) {
			set(configv1.OperatorAvailable, configv1.ConditionFalse, reason, failure.Error())
		}
	} else if _, ok := errors.AsType[*crashError](failure); ok {
		reason = reasonCrash
	} else {
		return false
	}
	set(configv1.OperatorProgressing, configv1.ConditionFalse, reason, "")
	set(configv1.OperatorDegraded, configv1.ConditionTrue, reason, failure.Error())
	return true
}

// recovered withdraws what no longer holds: a downgrade that is allowed now, CRDs that are back, and a
// crash after which the Pods start.
func recovered(before configv1.ClusterOperatorStatus, set setter) {
	was := condition(before, configv1.OperatorDegraded)
	if was != nil && slices.Contains([]string{reasonDowngrade, reasonMissingCRDs, reasonCrash}, was.Reason) {
		set(configv1.OperatorDegraded, configv1.ConditionFalse, reasonAsExpected, "")
	}
	was = condition(before, configv1.OperatorAvailable)
	if was != nil && was.Reason == reasonMissingCRDs {
		set(configv1.OperatorAvailable, configv1.ConditionTrue, reasonAsExpected,
			"Cluster Machine API Operator is available at operator: "+reported(before))
	}
}

// setCondition sets a condition. Its transition time changes only with its status.
func setCondition(conditions *[]configv1.ClusterOperatorStatusCondition, to configv1.ClusterOperatorStatusCondition,
	now time.Time) {
	to.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	at := slices.IndexFunc(*conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == to.Type })
	if at < 0 {
		*conditions = append(*conditions, to)
		return
	}
	if (*conditions)[at].Status == to.Status {
		to.LastTransitionTime = (*conditions)[at].LastTransitionTime
	}
	(*conditions)[at] = to
}

// condition returns a condition, or nil.
func condition(status configv1.ClusterOperatorStatus,
	kind configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	at := slices.IndexFunc(status.Conditions,
		func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &status.Conditions[at]
}

// since returns when a condition became true, or now if it is not true.
func since(status configv1.ClusterOperatorStatus, kind configv1.ClusterStatusConditionType, now time.Time) time.Time {
	if found := condition(status, kind); found != nil && found.Status == configv1.ConditionTrue {
		return found.LastTransitionTime.Time
	}
	return now
}

// reported returns the version that was rolled out last.
func reported(status configv1.ClusterOperatorStatus) string {
	for _, one := range status.Versions {
		if one.Name == versionName {
			return one.Version
		}
	}
	return ""
}

// initial reports whether nothing has been rolled out yet.
func initial(status configv1.ClusterOperatorStatus) bool {
	found := condition(status, configv1.OperatorAvailable)
	return found == nil || found.Reason == reasonInitializing
}
