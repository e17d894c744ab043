package machineclass

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/events"
)

// sizeUnknown reports that nobody knows what an instance of the class would offer.
func sizeUnknown(class *unstructured.Unstructured, err error) events.Event {
	return events.Warning(class, "FailedUpdate", "Estimate", strings.ReplaceAll(err.Error(), "spec.providerSpec.value", "providerSpec")+
		"; until then nodeTemplate, which an autoscaler reads, is not changed, and can be written by hand")
}

// incomplete reports what is to be written by hand.
func incomplete(class *unstructured.Unstructured, missing []string) events.Event {
	return events.Warning(class, "FailedUpdate", "Estimate", "nodeTemplate, which an autoscaler reads, is not completed: the providerSpec does not say "+
		strings.Join(missing, ", ")+"; write that, beside an empty capacity, and the rest is filled in")
}

// unreadable reports a nodeTemplate that is not what MCM reads either.
func unreadable(class *unstructured.Unstructured, err error) events.Event {
	return events.Warning(class, "ReconcileError", "Estimate", err.Error()+"; write it as docs/gardener.md has it")
}
