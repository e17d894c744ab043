package chaos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const setLabel = "machine.openshift.io/cluster-api-machineset"

// runDirs are the folders of runs in a manager's work folder.
var runDirs = []string{"runs", "pulumi/runs"}

// facts takes a snapshot.
func (r *round) facts(ctx context.Context) (*Facts, error) {
	var machines machinev1beta1.MachineList
	var nodes corev1.NodeList
	var states corev1.SecretList
	err := errors.Join(
		r.client.List(ctx, &states, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel}),
		r.client.List(ctx, &nodes),
		r.client.List(ctx, &machines, client.InNamespace(lab.Namespace)),
	)
	if err != nil {
		return nil, err
	}
	pools, err := r.pools(ctx)
	if err != nil {
		return nil, err
	}
	f := &Facts{Kubelets: r.kubelets.all(), Pools: pools}
	for i := range machines.Items {
		f.Machines = append(f.Machines, machineOf(&machines.Items[i]))
	}
	for _, node := range nodes.Items {
		if uid := node.Labels[observe.UIDLabel]; uid != "" {
			f.Items = append(f.Items, Item{Kind: "Node", ID: string(node.UID), Name: node.Name, Machine: uid})
		}
	}
	for _, made := range r.cloud.History() {
		if made.Removed.IsZero() {
			f.Items = append(f.Items, Item{Kind: made.Kind, ID: made.ID, Name: made.Name, Machine: made.Machine})
		}
	}
	for _, secret := range states.Items {
		f.States = append(f.States, State{
			Name: secret.Name, Machine: secret.Labels[observe.UIDLabel],
			Owner: secret.Annotations[observe.OwnerAnnotation], Role: secret.Labels[observe.RoleLabel],
			Lock: secret.Annotations[observe.LockAnnotation], Intent: secret.Annotations[observe.IntentAnnotation],
		})
	}
	return f, r.processes(f)
}

func machineOf(m *machinev1beta1.Machine) Machine {
	machine := Machine{
		Name: m.Name, UID: string(m.UID), Set: m.Labels[setLabel], Deleting: m.DeletionTimestamp != nil,
		Linked: m.Status.NodeRef != nil,
	}
	if m.Status.Phase != nil {
		machine.Phase = *m.Status.Phase
	}
	var problems []string
	if m.Status.ErrorMessage != nil {
		problems = append(problems, *m.Status.ErrorMessage)
	}
	for _, c := range m.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			problems = append(problems, string(c.Type)+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
		}
	}
	machine.Problem = strings.Join(problems, "; ")
	return machine
}

// processes adds the processes and leftovers of runs. Warm providers and the supervisor of a live manager are neither.
func (w *world) processes(f *Facts) error {
	running, err := w.running()
	if err != nil {
		return err
	}
	keeps := map[int]bool{} // a warm Pulumi bridge has its own provider
	for _, process := range running {
		keeps[process.PID] = process.Kept() && w.isManager(process.Parent)
	}
	for _, process := range running {
		kept := keeps[process.PID] || process.Kept() && keeps[process.Parent] ||
			process.Supervises() != "" && w.isManager(process.Parent)
		if !kept && !w.isManager(process.PID) {
			f.Running = append(f.Running, process.String())
		}
	}
	leads, _ := w.leader() // the other one cleans up when it leads again; it is still searched for secrets
	for _, folder := range runDirs {
		entries, err := os.ReadDir(filepath.Join(leads.workDir(), folder))
		if err != nil {
			continue // no run ever started
		}
		for _, entry := range entries {
			f.Folders = append(f.Folders, filepath.Join(leads.workDir(), folder, entry.Name()))
		}
	}
	return nil
}

// running returns the processes of the managers' runs.
func (w *world) running() ([]observe.Process, error) {
	all, err := observe.Processes()
	if err != nil {
		return nil, err
	}
	var folders []string
	var parents []int
	for _, r := range w.replicas {
		folders = append(folders, r.workDir())
		if manager := r.current(); manager != nil {
			parents = append(parents, manager.PID())
		}
	}
	var found []observe.Process
	for _, process := range all {
		if process.State != 'Z' && process.PID != os.Getpid() &&
			(process.Within(folders, parents) || slices.Contains(folders, process.Supervises())) {
			found = append(found, process)
		}
	}
	return found, nil
}
