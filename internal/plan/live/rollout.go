package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
)

// findDeployment reads a MachineDeployment and its Machines, the oldest revision first.
func (s *subject) findDeployment(ctx context.Context, reader client.Reader, request *preview.Request) error {
	_, namespace, name := request.Title()
	existing := &v1beta1.MachineDeployment{}
	found, err := get(ctx, reader, client.ObjectKey{Namespace: namespace, Name: name}, existing)
	if err != nil {
		return err
	}
	if !found {
		replicas, _ := request.Replicas()
		s.live.Rollout = preview.NewRollout(request.Deployment(), int(replicas))
		return nil
	}
	sets := &machinev1beta1.MachineSetList{}
	if err := reader.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the MachineSets of MachineDeployment %s/%s: %w", namespace, name, err)
	}
	revisions := slices.DeleteFunc(sets.Items, func(set machinev1beta1.MachineSet) bool {
		return !metav1.IsControlledBy(&set, existing)
	})
	slices.SortFunc(revisions, func(a, b machinev1beta1.MachineSet) int {
		return cmp.Or(cmp.Compare(v1beta1.Revision(&a), v1beta1.Revision(&b)), cmp.Compare(a.Name, b.Name))
	})
	restart := cmp.Or(request.Deployment().Spec.Restart(), existing.Spec.Restart())
	for i := range revisions {
		owned, err := machinesOf(ctx, reader, &revisions[i])
		if err != nil {
			return err
		}
		for n := range owned {
			one := newMachine(&owned[n], request.Machine())
			one.result.MachineSet = revisions[i].Name
			one.result.Revision = revisions[i].Annotations[v1beta1.RevisionAnnotation]
			one.restarted = revisions[i].Annotations[v1beta1.RestartedAtAnnotation] != restart
			s.machines = append(s.machines, one)
		}
	}
	s.count(request, existing.Spec.Replicas, "")
	replicas, _ := request.Replicas()
	s.live.Rollout = preview.NewRollout(request.Deployment(), int(replicas))
	for _, one := range s.machines {
		one.strategy = s.live.Rollout.Strategy
	}
	return nil
}

// decideWithoutPlan sets the result if the strategy does not ask for a plan, and reports whether it did.
func (m *machine) decideWithoutPlan() bool {
	was, is := specOf(m.existing.Spec.ProviderSpec.Value), specOf(m.edited.Spec.ProviderSpec.Value)
	differs, failed := m.restarted || !reflect.DeepEqual(was, is), m.result.Phase == machinev1beta1.PhaseFailed
	planned := m.strategy == v1beta1.InPlace || m.strategy == v1beta1.InPlaceOrReplace && !failed
	switch {
	case planned && !m.restarted, failed && !differs:
		return false
	case !differs:
		m.is(preview.Unchanged, "")
		return true
	case m.strategy == v1beta1.OnDelete:
		m.is(preview.NewMachine, "OnDelete replaces a Machine once it is deleted")
	case m.strategy == v1beta1.InPlace:
		m.is(preview.NewMachine, "a restart needs a new Machine")
	case m.restarted:
		m.is(preview.Replaced, "a restart replaces every Machine")
	case m.strategy == v1beta1.InPlaceOrReplace:
		m.is(preview.Replaced, "it has failed")
	default:
		m.is(preview.Replaced, fmt.Sprintf("%s replaces every Machine", m.strategy))
	}
	m.result.Fields = preview.Compare(was, is)
	for n := range m.result.Fields {
		m.result.Fields[n].Forces = m.strategy != v1beta1.InPlaceOrReplace
	}
	return true
}

func specOf(value *runtime.RawExtension) any {
	if value == nil {
		return nil
	}
	return decoded(value.Raw)
}

// withoutAlike returns the Machines without those whose plan another one's stands for, and a function that gives them
// its result. Drift is each Machine's own.
func (o Options) withoutAlike(all []*machine) (planned []*machine, share func()) {
	first, alike := map[string]*machine{}, map[*machine]*machine{}
	for _, one := range all {
		key := ""
		if !o.All && !o.Refresh {
			key = one.planKey()
		}
		if key != "" && first[key] != nil {
			alike[one] = first[key]
			continue
		}
		first[key] = one
		planned = append(planned, one)
	}
	return planned, func() {
		for one, other := range alike {
			result := other.result
			one.is(result.Result, result.Why)
			one.result.Module, one.result.Fields, one.result.PlannedAs = result.Module, result.Fields, result.Name
		}
	}
}

// planKey is the same for Machines of a MachineDeployment whose plans can only differ in their own names, or empty.
func (m *machine) planKey() string {
	if m.strategy == "" || m.inputs == nil {
		return ""
	}
	fields, err := json.Marshal(m.result.Fields)
	if err != nil {
		return ""
	}
	pinned := ""
	if m.inputs.pinned != nil {
		pinned = m.inputs.pinned.module.Reference()
	}
	return fmt.Sprintf("%s\n%s\n%s\n%q\n%s\n%s", m.result.MachineSet, m.inputs.module.Reference(), pinned, m.result.Notes,
		m.existing.Spec.ProviderSpec.Value.Raw, fields)
}

// rollOut says what the strategy does with Machines that need a new one, and what would hold it.
func (s *subject) rollOut(ctx context.Context, reader client.Reader) error {
	if s.live.Rollout == nil {
		return nil
	}
	nodes := map[string]string{}
	for _, one := range s.machines {
		if one.strategy == v1beta1.InPlaceOrReplace && one.result.Result == preview.NewMachine {
			one.result.Result = preview.Replaced
		}
		if node := one.existing.Status.NodeRef; node != nil && one.result.Result == preview.Replaced {
			nodes[node.Name] = one.result.Name
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	budgets, err := budgetsOf(ctx, reader, nodes)
	if inspect.Denied(err) {
		s.live.Rollout.Notes = append(s.live.Rollout.Notes,
			"You may not list PodDisruptionBudgets and Pods: budgets that would hold a drain are not shown.")
		return nil
	}
	s.live.Rollout.Budgets = budgets
	return err
}

// budgetsOf returns the PodDisruptionBudgets that allow no eviction now of Pods on these Nodes, whose values are
// Machines.
func budgetsOf(ctx context.Context, reader client.Reader, nodes map[string]string) ([]preview.Budget, error) {
	all := &policyv1.PodDisruptionBudgetList{}
	if err := reader.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	var budgets []preview.Budget
	for i := range all.Items {
		budget := &all.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || budget.Status.DisruptionsAllowed > 0 || selector.Empty() && budget.Spec.Selector == nil {
			continue
		}
		pods := &corev1.PodList{}
		if err := reader.List(ctx, pods, client.InNamespace(budget.Namespace),
			client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, fmt.Errorf("listing the Pods of PodDisruptionBudget %s/%s: %w", budget.Namespace, budget.Name, err)
		}
		one := preview.Budget{Namespace: budget.Namespace, Name: budget.Name}
		for n := range pods.Items {
			if machine := nodes[pods.Items[n].Spec.NodeName]; machine != "" && isEvicted(&pods.Items[n]) {
				one.Machines = append(one.Machines, machine)
			}
		}
		if len(one.Machines) > 0 {
			slices.Sort(one.Machines)
			one.Machines = slices.Compact(one.Machines)
			budgets = append(budgets, one)
		}
	}
	return budgets, nil
}

// isEvicted reports whether a drain evicts a Pod: one that runs, and that its Node or a DaemonSet would not run again.
func isEvicted(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && !mirror &&
		(owner == nil || owner.Kind != "DaemonSet")
}
