package machine

import (
	"context"
	"sync"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/actuators"
)

// settledMachines holds the Machines that the last reconcile found Running and up to date, with
// nothing to write, and their resource versions. Only the actuator's inputs can change the result
// of another reconcile of that version.
type settledMachines struct {
	mutex    sync.Mutex
	versions map[types.NamespacedName]string
}

// set records the version of a settled Machine; an empty version means that it is not settled.
func (l *settledMachines) set(name types.NamespacedName, version string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if version == "" {
		delete(l.versions, name)
		return
	}
	if l.versions == nil {
		l.versions = map[types.NamespacedName]string{}
	}
	l.versions[name] = version
}

func (l *settledMachines) has(name types.NamespacedName, version string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return version != "" && l.versions[name] == version
}

// settledVersion returns the resource version of a settled Machine. It is empty if the Machine is
// not settled or there was something to write.
func (s *scope) settledVersion() string {
	if !s.settled || s.changed {
		return ""
	}
	return s.original.ResourceVersion
}

// unchanged reports whether a reconcile of the Machine would repeat the last result, and the delay
// before the next reconcile is due.
func (c *Controller) unchanged(ctx context.Context,
	machine *machinev1beta1.Machine) (after time.Duration, unchanged bool) {
	checker, ok := c.actuator.(actuators.UnchangedChecker)
	if !ok || !c.settled.has(client.ObjectKeyFromObject(machine), machine.ResourceVersion) {
		return 0, false
	}
	return checker.Unchanged(ctx, machine)
}
