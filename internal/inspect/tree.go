package inspect

import (
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/inspect/print"
)

// Item is a MachineDeployment, a MachineSet, a Machine, an instance or a Node, with what belongs to it.
type Item struct {
	// Kind is MachineDeployment, MachineSet, Machine, Instance or Node.
	Kind string `json:"kind"`
	// Namespace of a MachineDeployment, a MachineSet and a Machine.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object; of an instance, the infrastructure's own. Empty while there is none.
	Name string `json:"name,omitempty"`
	// Status in a word or two.
	Status string `json:"status"`
	// Created is when the object was made; not known of instances.
	Created *metav1.Time `json:"created,omitempty"`
	// Failure says why a MachineSet or a Machine has failed for good.
	Failure string `json:"failure,omitempty"`
	// Conditions that matter.
	Conditions []Condition `json:"conditions,omitempty"`
	// Provider is an instance's provider status, as the operator wrote it.
	Provider *v1alpha1.TerraformMachineProviderStatus `json:"providerStatus,omitempty"`
	// Notes are what else is to be known.
	Notes []string `json:"notes,omitempty"`
	// Children belong to the item.
	Children []*Item `json:"children,omitempty"`
}

// Kinds of items, and of objects.
const (
	kindDeployment = v1beta1.MachineDeploymentKind
	kindSet        = "MachineSet"
	kindMachine    = "Machine"
	kindInstance   = "Instance"
	kindNode       = "Node"
	kindNamespace  = "Namespace"
)

// Forest is the result of Tree.
type Forest struct {
	// Items are MachineDeployments, MachineSets without one, and Machines without a MachineSet.
	Items []*Item `json:"items"`

	now time.Time
}

// Tree puts objects under their controllers, and instances and Nodes under their Machines. It leaves out the old, empty
// MachineSets of a MachineDeployment, which are its history.
func Tree(f *Facts) *Forest {
	forest := &Forest{Items: []*Item{}, now: f.Now}
	owners, current := map[types.UID]*Item{}, map[types.UID]string{}
	place := func(object metav1.Object, item *Item) {
		owners[object.GetUID()] = item
		if owner := ownerOf(object); owner != "" && owners[owner] != nil {
			owners[owner].Children = append(owners[owner].Children, item)
		} else {
			forest.Items = append(forest.Items, item)
		}
	}
	for i := range f.Deployments {
		one := &f.Deployments[i]
		place(one, deploymentItem(one))
		current[one.UID] = one.Annotations[v1beta1.RevisionAnnotation]
	}
	history := map[*Item]bool{}
	for i := range f.Sets {
		set := &f.Sets[i]
		item := setItem(set)
		place(set, item)
		revision, of := current[ownerOf(set)]
		history[item] = of && ptr.Deref(set.Spec.Replicas, 1) == 0 && set.Annotations[v1beta1.RevisionAnnotation] != revision
	}
	for i := range f.Machines {
		place(&f.Machines[i], f.machineItem(&f.Machines[i]))
	}
	for _, item := range forest.Items {
		item.Children = slices.DeleteFunc(item.Children, func(c *Item) bool { return history[c] && len(c.Children) == 0 })
	}
	return forest
}

func deploymentItem(d *v1beta1.MachineDeployment) *Item {
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	item := &Item{
		Kind: kindDeployment, Namespace: d.Namespace, Name: d.Name, Created: &d.CreationTimestamp,
		Status: fmt.Sprintf("%d/%d ready", d.Status.ReadyReplicas, replicas), Conditions: providerConditions(d.Status.Conditions),
	}
	if revision := d.Annotations[v1beta1.RevisionAnnotation]; revision != "" {
		item.note("revision " + revision)
	}
	if d.Status.UpdatedReplicas < replicas {
		item.note(fmt.Sprintf("%d/%d updated", d.Status.UpdatedReplicas, replicas))
	}
	if d.DeletionTimestamp != nil {
		item.note("is being deleted")
	}
	return item
}

func setItem(set *machinev1beta1.MachineSet) *Item {
	item := &Item{
		Kind: kindSet, Namespace: set.Namespace, Name: set.Name, Created: &set.CreationTimestamp,
		Status:     fmt.Sprintf("%d/%d ready", set.Status.ReadyReplicas, ptr.Deref(set.Spec.Replicas, 1)),
		Failure:    failure(set.Status.ErrorReason, set.Status.ErrorMessage),
		Conditions: machineConditions(set.Status.Conditions),
	}
	if set.DeletionTimestamp != nil {
		item.note("is being deleted")
	}
	return item
}

func (f *Facts) machineItem(machine *machinev1beta1.Machine) *Item {
	item := &Item{
		Kind: kindMachine, Namespace: machine.Namespace, Name: machine.Name, Created: &machine.CreationTimestamp,
		Status: phase(machine), Failure: failure(machine.Status.ErrorReason, machine.Status.ErrorMessage),
		Conditions: machineConditions(machine.Status.Conditions),
	}
	if machine.DeletionTimestamp != nil {
		item.note("deletion was requested " + print.Age(machine.DeletionTimestamp.Time, f.Now) + " ago")
	}
	if instance := f.instanceItem(machine); instance != nil {
		item.Children = append(item.Children, instance)
	}
	if ref := machine.Status.NodeRef; ref != nil {
		item.Children = append(item.Children, f.nodeItem(ref.Name))
	}
	return item
}

// instanceItem returns nil where no instance is known.
func (f *Facts) instanceItem(machine *machinev1beta1.Machine) *Item {
	status := ProviderStatus(machine)
	name := status.InstanceID
	if name == "" {
		name = ptr.Deref(machine.Spec.ProviderID, "")
	}
	item := &Item{Kind: kindInstance, Name: name, Status: status.InstanceState, Conditions: providerConditions(status.Conditions)}
	if status.Kind != "" {
		item.Provider = &status
	}
	if name == "" && status.Run == nil && len(item.Conditions) == 0 {
		return nil
	}
	switch {
	case name == "":
		item.Status = "NotMade"
	case item.Status == "":
		item.Status = "Unknown"
	}
	for _, label := range []string{"machine.openshift.io/instance-type", "machine.openshift.io/region", "machine.openshift.io/zone"} {
		item.note(machine.Labels[label])
	}
	item.note(print.Short(status.Module))
	switch run := status.Run; {
	case run != nil && run.WaitsFor != "":
		item.note(fmt.Sprintf("%s waits: %s", run.Operation, run.WaitsFor))
	case run != nil && run.StartedAt != nil:
		item.note(fmt.Sprintf("%s running for %s", run.Operation, print.Age(run.StartedAt.Time, f.Now)))
	case run != nil:
		item.note(fmt.Sprintf("%s queued or running", run.Operation))
	}
	if status.LastDriftCheckTime != nil {
		item.note("drift checked " + print.Age(status.LastDriftCheckTime.Time, f.Now) + " ago")
	}
	return item
}

func (f *Facts) nodeItem(name string) *Item {
	item := &Item{Kind: kindNode, Name: name, Status: "NotRead"}
	if f.Nodes == nil {
		return item
	}
	node := f.Nodes[name]
	if node == nil {
		item.Status = "Gone"
		return item
	}
	item.Created, item.Status = &node.CreationTimestamp, nodeStatus(node)
	item.Conditions = nodeConditions(node.Status.Conditions)
	item.note(node.Status.NodeInfo.KubeletVersion)
	return item
}

// nodeStatus is what kubectl get nodes shows.
func nodeStatus(node *corev1.Node) string {
	status := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			status = "Ready"
		} else if c.Type == corev1.NodeReady {
			status = "NotReady"
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func (i *Item) note(text string) {
	if text != "" {
		i.Notes = append(i.Notes, text)
	}
}

// Objects implements print.Report.
func (t *Forest) Objects() []metav1.PartialObjectMetadata {
	var objects []metav1.PartialObjectMetadata
	for _, item := range t.Items {
		objects = append(objects, print.Reference(machinev1beta1.GroupVersion.WithKind(item.Kind), item.Namespace, item.Name))
	}
	return objects
}

// Text draws a tree: kubectl's printer of tables counts bytes, so that branches would move the columns.
func (t *Forest) Text(wide, headers bool) []byte {
	if len(t.Items) == 0 {
		return nil
	}
	rows := t.rows(wide)
	if !headers {
		rows = rows[1:]
	}
	return print.Aligned(rows)
}

func (t *Forest) rows(wide bool) [][]string {
	rows := [][]string{{"NAME", "STATUS", "AGE", "DETAILS"}}
	spread := map[string]bool{}
	for _, item := range t.Items {
		spread[item.Namespace] = true
	}
	var add func(item *Item, lead, branch string)
	add = func(item *Item, lead, branch string) {
		name := item.Kind
		switch {
		case item.Name != "" && item.Namespace != "" && len(spread) > 1:
			name += "/" + item.Namespace + "/" + item.Name
		case item.Name != "":
			name += "/" + item.Name
		}
		var details []string
		if item.Failure != "" {
			details = append(details, item.Failure)
		}
		for _, c := range item.Conditions {
			details = append(details, c.String())
		}
		details = append(details, item.Notes...)
		made := ""
		if item.Created != nil {
			made = print.Age(item.Created.Time, t.now)
		}
		rows = append(rows, []string{lead + branch + name, item.Status, made, print.Cut(strings.Join(details, "; "), wide)})
		under := map[string]string{"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
		for i, child := range item.Children {
			next := "├─ "
			if i == len(item.Children)-1 {
				next = "└─ "
			}
			add(child, lead+under, next)
		}
	}
	for _, item := range t.Items {
		add(item, "", "")
	}
	return rows
}
