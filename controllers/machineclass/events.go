package machineclass

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// sizeUnknown reports an instance of unknown size.
func sizeUnknown(class *unstructured.Unstructured, err error) events.Event {
	return events.Warning(class, "FailedUpdate", "Estimate",
		strings.ReplaceAll(err.Error(), "spec.providerSpec.value", "providerSpec")+
			"; until then nodeTemplate, which the autoscaler reads, is left unchanged; you can set it by hand")
}

// incomplete reports which fields must be set by hand.
func incomplete(class *unstructured.Unstructured, missing []string) events.Event {
	return events.Warning(class, "FailedUpdate", "Estimate",
		"cannot complete nodeTemplate, which the autoscaler reads: the providerSpec lacks "+
			strings.Join(missing, ", ")+"; set these fields and an empty capacity, and the rest is filled in")
}

// unreadable reports a nodeTemplate that MCM cannot read either.
func unreadable(class *unstructured.Unstructured, err error) events.Event {
	return events.Warning(class, "ReconcileError", "Estimate", err.Error()+"; see docs/gardener.md for the format")
}
