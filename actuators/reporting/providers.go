package reporting

import (
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
)

// ProvidersChanged is the condition that reports that the last run used other provider binaries
// than the last applied one.
const ProvidersChanged = "ProvidersChanged"

// UsedProviders are the provider binaries of a run.
type UsedProviders struct{ used string }

// Note records the providers that an operation used, or "" if its engine does not know them. It
// sends an event if they differ from those of earlier runs.
func (u *UsedProviders) Note(
	used string, known *record.Providers, about *machinev1beta1.Machine, to clientevents.EventRecorder,
) {
	if used == "" || used == u.used {
		return
	}
	u.used = used
	if _, changed := known.After(used, false); changed {
		providersChanged(about, known.Applied, used).Send(to)
	}
}

// Record adds the used providers to the record of earlier runs.
func (u *UsedProviders) Record(p record.Patch, known *record.Providers, applied bool) {
	next, _ := known.After(u.used, applied)
	if next != (record.Providers{}) && (known == nil || next != *known) {
		p.SetProviders(next)
	}
}

// SetProvidersChanged sets or removes the condition ProvidersChanged.
func SetProvidersChanged(conditions *[]metav1.Condition, known *record.Providers, now time.Time) {
	setOrRemove(conditions, ProvidersChanged, "OtherBinaries", known.Changed(), now)
}

// ProviderAvailable is the condition that reports a provider that the Machine's module needs and the
// manager lacks.
const ProviderAvailable = "ProviderAvailable"

// SetProviderAvailable sets the condition ProviderAvailable to False if the last attempt failed for
// want of a provider, and removes it otherwise. Without a message, a condition that is set stays.
func SetProviderAvailable(
	conditions *[]metav1.Condition, failed *v1alpha1.FailureStatus, message string, now time.Time,
) {
	if failed == nil || failed.Class != string(failure.ProviderNotInstalled) {
		meta.RemoveStatusCondition(conditions, ProviderAvailable)
		return
	}
	if message != "" {
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: ProviderAvailable, Status: metav1.ConditionFalse, Reason: string(failure.ProviderNotInstalled),
			Message: message, LastTransitionTime: metav1.NewTime(now),
		})
	}
}

// OutlivesMachine is the condition that names what is kept when the Machine is deleted.
const OutlivesMachine = "OutlivesMachine"

// SetOutlivesMachine sets the condition OutlivesMachine, or removes it if nothing is kept.
func SetOutlivesMachine(conditions *[]metav1.Condition, named []string, now time.Time) {
	message := ""
	if len(named) > 0 {
		message = "kept when the Machine is deleted, as its providerSpec requests: " + strings.Join(named, "; ")
	}
	setOrRemove(conditions, OutlivesMachine, "AsRequested", message, now)
}

// Throttled is the condition that reports that the infrastructure throttles the runs.
const Throttled = "Throttled"

// SetThrottled sets the condition Throttled, or removes it if since is zero.
func SetThrottled(conditions *[]metav1.Condition, since, now time.Time) {
	message := ""
	if !since.IsZero() {
		message = ThrottledSince(since) + "; its runs start one by one, after growing pauses, until requests succeed; if this " +
			"persists, raise the API's limits or find the other clients that use them"
	}
	setOrRemove(conditions, Throttled, "TooManyRequests", message, now)
}

// ThrottledSince says since when a Machine's credentials are throttled.
func ThrottledSince(since time.Time) string {
	return "the infrastructure has throttled the credentials Secret since " + since.UTC().Format(time.RFC3339)
}

// setOrRemove sets a condition to True, or removes it if the message is empty.
func setOrRemove(conditions *[]metav1.Condition, name, reason, message string, now time.Time) {
	if message == "" {
		meta.RemoveStatusCondition(conditions, name)
		return
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: name, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now),
	})
}
