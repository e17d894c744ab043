package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/hack/lab"
)

// workloads say how to create MachineSets from the examples, and how to edit their Machines.
var workloads = map[Workload]struct {
	example string
	// inValues means that the fields are a stack's values.
	inValues bool
	// refused is an edit that cannot be applied to an instance.
	refused map[string]any
}{
	Kubemark: {example: "modules/kubemark/examples/machineset.yaml", refused: map[string]any{"memory": "32Gi"}},
	KubemarkPulumi: {example: "stacks/kubemark/examples/machineset.yaml", inValues: true,
		refused: map[string]any{"memory": "32Gi"}},
	OpenStack: {example: "modules/openstack/examples/machineset.yaml",
		refused: map[string]any{"configDrive": true}},
}

// object returns the MachineSet or the MachineDeployment with a name.
func (r *round) object(name string) client.Object {
	if slices.ContainsFunc(r.plan.Sets, func(s Set) bool { return s.Pool && s.Name == name }) {
		return &v1beta1.MachineDeployment{ObjectMeta: inNamespace(name)}
	}
	return &machinev1beta1.MachineSet{ObjectMeta: inNamespace(name)}
}

// newObject returns a MachineSet, or a MachineDeployment with the same fields.
func (w *world) newObject(set Set) (client.Object, error) {
	made, err := w.newSet(set)
	if err != nil || !set.Pool {
		return made, err
	}
	surge, unavailable := intstr.FromInt(set.Surge), intstr.FromInt(set.Unavailable)
	return &v1beta1.MachineDeployment{ObjectMeta: made.ObjectMeta, Spec: v1beta1.MachineDeploymentSpec{
		Replicas: made.Spec.Replicas, Selector: made.Spec.Selector, Template: made.Spec.Template,
		Strategy: v1beta1.MachineDeploymentStrategy{
			RollingUpdate: &v1beta1.RollingUpdateBounds{MaxSurge: &surge, MaxUnavailable: &unavailable},
		},
	}}, nil
}

// newSet returns a MachineSet object.
func (w *world) newSet(set Set) (*machinev1beta1.MachineSet, error) {
	content, err := os.ReadFile(w.lab.Path(workloads[set.On].example))
	if err != nil {
		return nil, err
	}
	made := &machinev1beta1.MachineSet{}
	if err := yaml.UnmarshalStrict(content, made); err != nil {
		return nil, err
	}
	made.Name, made.Spec.Replicas = set.Name, &set.Replicas
	for _, labels := range []map[string]string{made.Spec.Selector.MatchLabels, made.Spec.Template.Labels} {
		labels[setLabel] = set.Name
	}
	spec := map[string]any{}
	if err := json.Unmarshal(made.Spec.Template.Spec.ProviderSpec.Value.Raw, &spec); err != nil {
		return nil, err
	}
	Quicken(spec)
	spec["userDataSecret"] = map[string]any{"name": userDataSecret}
	if set.On == OpenStack {
		spec["cloudsSecret"] = map[string]any{"name": openstackCredentials}
	} else {
		spec["credentialsSecret"] = map[string]any{"name": kubemarkCredentials}
	}
	raw, err := json.Marshal(spec)
	made.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return made, err
}

func (w *world) edit(ctx context.Context, on Workload, machine string, fields map[string]any) error {
	return w.patchSpec(ctx, on, &machinev1beta1.Machine{ObjectMeta: inNamespace(machine)}, fields)
}

// patchSpec changes the providerSpec of a Machine, or that of a MachineDeployment's template.
func (w *world) patchSpec(ctx context.Context, on Workload, object client.Object, fields map[string]any) error {
	value := fields
	if workloads[on].inValues {
		value = map[string]any{"values": fields}
	}
	spec := map[string]any{"providerSpec": map[string]any{"value": value}}
	if _, pool := object.(*v1beta1.MachineDeployment); pool {
		spec = map[string]any{"template": map[string]any{"spec": spec}}
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	return w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

func (r *round) scale(ctx context.Context, set string, replicas int) error {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	return r.client.Patch(ctx, r.object(set), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// machines returns a MachineSet's Machines by name, except those being deleted.
func (w *world) machines(ctx context.Context, set string) ([]machinev1beta1.Machine, error) {
	var list machinev1beta1.MachineList
	if err := w.client.List(ctx, &list, client.InNamespace(lab.Namespace),
		client.MatchingLabels{setLabel: set}); err != nil {
		return nil, err
	}
	alive := slices.DeleteFunc(list.Items, func(m machinev1beta1.Machine) bool { return m.DeletionTimestamp != nil })
	slices.SortFunc(alive, func(a, b machinev1beta1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return alive, nil
}
