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

// settledMachines are the Machines that the last reconcile found Running and as they should be, and had nothing to write to, with the resource version that they had.
// Nothing but what the actuator reads can change what the next reconcile of that version finds.
type settledMachines struct {
	mutex    sync.Mutex
	versions map[types.NamespacedName]string
}

// set records the version of a Machine that is settled; an empty one says that it is not.
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

// settledVersion returns the resource version of a Machine that is settled; empty for one that is not, or to which there was something to write.
func (s *scope) settledVersion() string {
	if !s.settled || s.changed {
		return ""
	}
	return s.original.ResourceVersion
}

// unchanged reports whether a reconcile of the Machine would find what the last one has found, and after how long it is to be reconciled again if nothing
// happens before.
func (c *Controller) unchanged(ctx context.Context, machine *machinev1beta1.Machine) (after time.Duration, unchanged bool) {
	checker, ok := c.actuator.(actuators.UnchangedChecker)
	if !ok || !c.settled.has(client.ObjectKeyFromObject(machine), machine.ResourceVersion) {
		return 0, false
	}
	return checker.Unchanged(ctx, machine)
}
