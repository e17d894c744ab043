package iac

import (
	"encoding/json"
	"slices"

	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// asJSON returns an identity as a run keeps it.
func asJSON(who identity) string {
	raw, err := json.Marshal(who)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// fingerprint is that of what a Machine asks for.
const fingerprint = "fingerprint"

// stateOf returns a state with an instance, or a part of one.
func stateOf(instances, tainted int) *statefile.State {
	return &statefile.State{Resources: []statefile.Resource{
		{Mode: statefile.ModeManaged, Type: "thing", Name: "this", Instances: instances, Tainted: tainted},
	}}
}

// lostCreate is the intent of a create that may have made an instance.
func lostCreate() *lifecycle.Intent { return &lifecycle.Intent{Operation: runs.Create, Run: "lost"} }

// hasAddress reports whether a Machine has an IP address.
func hasAddress(machine *machinev1beta1.Machine) bool {
	return slices.ContainsFunc(machine.Status.Addresses, func(one corev1.NodeAddress) bool {
		return one.Type == corev1.NodeInternalIP || one.Type == corev1.NodeExternalIP
	})
}
