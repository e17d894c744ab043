package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/plan/offline"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// deploy creates a MachineDeployment with one revision.
func (b *bench) deploy(spec map[string]any) (*v1beta1.MachineDeployment, *machinev1beta1.MachineSet) {
	b.t.Helper()
	set := builder.In(b.namespace, builder.MachineSet(builder.WithReplicas(3)))
	set.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	d := &v1beta1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: set.Name}}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](3), set.Spec.Selector
	set.Spec.Template.DeepCopyInto(&d.Spec.Template)
	b.create(d)
	set.Annotations = map[string]string{v1beta1.RevisionAnnotation: "1"}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, v1beta1.GroupVersion.WithKind(v1beta1.MachineDeploymentKind))}
	b.create(set)
	return d, set
}

// counting counts what a planner plans.
type counting struct {
	preview.Planner
	inputs int
}

func (c *counting) Plan(ctx context.Context, m offline.Module, inputs []offline.Input) []offline.Outcome {
	c.inputs += len(inputs)
	return c.Planner.Plan(ctx, m, inputs)
}

func TestRollout(t *testing.T) {
	long.Test(t)
	b, spec := newKubemark(t)
	d, set := b.deploy(spec)
	for _, name := range []string{"a", "b", "c"} {
		machine := b.machine(set, name)
		b.bring(machine)
		b.onNode(machine)
	}
	restart := ptr.To(metav1.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		restart    *metav1.Time
		strategy   v1beta1.MachineDeploymentStrategyType
		change     map[string]any
		all        bool
		want       preview.EditResult
		wantFields []string
		wantPlans  int
	}{
		"in place":                          {change: map[string]any{"zone": "zone-b"}, want: preview.InPlace, wantPlans: 2},
		"in place, each Machine":            {change: map[string]any{"zone": "zone-b"}, all: true, want: preview.InPlace, wantPlans: 4},
		"replaced":                          {change: map[string]any{"cpu": 8, "zone": "zone-b"}, want: preview.Replaced, wantFields: []string{"cpu"}, wantPlans: 4},
		"in place only":                     {strategy: v1beta1.InPlace, change: map[string]any{"cpu": 8}, want: preview.NewMachine, wantFields: []string{"cpu"}, wantPlans: 2},
		"replaced by a strategy":            {strategy: v1beta1.RollingUpdate, change: map[string]any{"zone": "zone-b"}, want: preview.Replaced, wantFields: []string{"zone"}, wantPlans: 1},
		"replaced on delete":                {strategy: v1beta1.OnDelete, change: map[string]any{"zone": "zone-b"}, want: preview.NewMachine, wantFields: []string{"zone"}, wantPlans: 1},
		"restarted":                         {restart: restart, want: preview.Replaced, wantPlans: 1},
		"restarted, in place only":          {restart: restart, strategy: v1beta1.InPlace, want: preview.NewMachine, wantPlans: 1},
		"nothing to replace":                {strategy: v1beta1.Recreate, want: preview.Unchanged, wantPlans: 1},
		"nothing, which is planned as well": {want: preview.Unchanged, wantPlans: 2},
	} {
		t.Run(name, func(t *testing.T) {
			edit := d.DeepCopy()
			edit.Spec.Strategy.Type, edit.Spec.RestartedAt = tc.strategy, tc.restart
			edit.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(with(spec, tc.change))
			planner := &counting{Planner: b.planner}
			live := b.plan(edit, func(o *Options) { o.Planner, o.All = planner, tc.all }).Sets[0].Live
			for _, one := range live.Machines {
				if one.Result != tc.want || one.Revision != "1" || one.MachineSet != set.Name {
					t.Errorf("got %+v, want %s of revision 1", one, tc.want)
				}
			}
			if len(live.Machines) != 3 || planner.inputs != tc.wantPlans || !slices.Equal(live.Rollout.Fields, tc.wantFields) {
				t.Errorf("got %d Machines, %d plans and fields %v, want 3, %d and %v", len(live.Machines), planner.inputs, live.Rollout.Fields, tc.wantPlans,
					tc.wantFields)
			}
		})
	}
	t.Run("a drain that would be held", func(t *testing.T) { b.holds(t, d, set, with(spec, map[string]any{"cpu": 8})) })
	t.Run("a Machine with another providerSpec is planned by itself", func(t *testing.T) {
		machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: set.Name + "-c"}}
		other := builder.ProviderSpec(with(spec, map[string]any{"zone": "zone-b"}))
		edit := d.DeepCopy()
		edit.Spec.Template.Spec.ProviderSpec.Value = other
		b.must(b.client.Get(t.Context(), client.ObjectKeyFromObject(machine), machine))
		machine.Spec.ProviderSpec.Value = other
		b.must(b.client.Update(t.Context(), machine))
		planner := &counting{Planner: b.planner}
		b.plan(edit, func(o *Options) { o.Planner = planner })
		if planner.inputs != 3 {
			t.Errorf("got %d plans, want those of a new Machine, of a and b, and of c", planner.inputs)
		}
	})
}

// onNode names the Node of a Machine in its status, as the manager does.
func (b *bench) onNode(machine *machinev1beta1.Machine) {
	b.t.Helper()
	before := machine.DeepCopy()
	machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: machine.Name}
	b.must(b.client.Status().Patch(b.t.Context(), machine, client.MergeFrom(before)))
}

// holds checks which PodDisruptionBudgets a rollout names.
func (b *bench) holds(t *testing.T, d *v1beta1.MachineDeployment, set *machinev1beta1.MachineSet, spec map[string]any) {
	pod := func(name, node string, change func(*corev1.Pod)) {
		made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if change != nil {
			change(made)
		}
		b.create(made, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}}})
	}
	pod("cart", set.Name+"-a", nil)
	pod("elsewhere", "other", nil)
	pod("agent", set.Name+"-a", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "u", Controller: ptr.To(true)}}
	})
	pod("over", set.Name+"-b", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	pod("spare", set.Name+"-b", nil)
	spare := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "spare"}}
	b.must(b.client.Get(t.Context(), client.ObjectKeyFromObject(spare), spare))
	spare.Status.DisruptionsAllowed = 1
	b.must(b.client.Status().Update(t.Context(), spare))
	edit := d.DeepCopy()
	edit.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	planned := b.plan(edit, nil)
	want := []preview.Budget{{Namespace: b.namespace, Name: "cart", Machines: []string{set.Name + "-a"}}}
	if diff := cmp.Diff(want, planned.Sets[0].Live.Rollout.Budgets); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
	var out strings.Builder
	b.must(preview.Print(&out, planned, "", false))
	wantText(t, out.String(), fmt.Sprintf("PodDisruptionBudget %s/cart allows no eviction now", b.namespace))
	wantText(t, out.String(), "The surge needs 1 more instance of type hollow in zone-a.")
}
