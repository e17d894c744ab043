package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roleLabels say what a Machine's Node is for. "master" is a control-plane Node.
var roleLabels = []string{
	"machine.openshift.io/cluster-api-machine-role", "machine.openshift.io/cluster-api-machine-type",
}

// ControlPlane reports whether a Machine is meant for a control-plane Node.
func ControlPlane(machine metav1.Object) bool {
	for _, name := range roleLabels {
		if machine.GetLabels()[name] == "master" {
			return true
		}
	}
	return false
}
