//go:build life

package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/inspect"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	replicas = 3
	upToDate = machinev1beta1.ConditionType("InstanceUpToDate")
)

// change changes a providerSpec.
func change(spec *machinev1beta1.MachineSpec, how func(map[string]any)) error {
	fields := map[string]any{}
	if err := json.Unmarshal(spec.ProviderSpec.Value.Raw, &fields); err != nil {
		return err
	}
	how(fields)
	raw, err := json.Marshal(fields)
	spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	return err
}

// frame are the fields of a PulumiMachineProviderSpec that are the same for all stacks; a stack's own are under values.
var frame = []string{"apiVersion", "kind", "stack", "values", "credentialsSecret", "userDataSecret"}

// with sets a field of a providerSpec, where its kind has it.
func with(field string, value any) func(map[string]any) {
	return func(spec map[string]any) {
		if values, ok := spec["values"].(map[string]any); ok && !slices.Contains(frame, field) {
			spec = values
		}
		spec[field] = value
	}
}

// otherCredentials is a second Secret with what signs in.
const otherCredentials = "life-other-credentials"

// otherSecret makes that Secret, and has a providerSpec name it.
func (w *world) otherSecret(field string, data map[string][]byte) func(map[string]any) {
	w.t.Helper()
	w.create(secret(otherCredentials, data))
	return with(field, map[string]any{"name": otherCredentials})
}

// example returns the MachineSet of the module's example, with a change of the providerSpec.
func (w *world) example(how func(map[string]any)) *machinev1beta1.MachineSet {
	w.t.Helper()
	set := &machinev1beta1.MachineSet{}
	err := yaml.UnmarshalStrict([]byte(w.read(w.lab.Path(w.platform.module, "examples", "machineset.yaml"))), set)
	if err == nil && how != nil {
		err = change(&set.Spec.Template.Spec, how)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

func (w *world) read(file string) string {
	w.t.Helper()
	content, err := os.ReadFile(file) //nolint:gosec // one of the repository's or of a simulator
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

// edit changes the providerSpec of a Machine, as kubectl edit does.
func (w *world) edit(t *testing.T, name string, how func(map[string]any)) {
	t.Helper()
	w.until(t, name+" is edited", func(ctx context.Context) error {
		machine, err := w.get(ctx, name)
		if err == nil {
			err = errors.Join(change(&machine.Spec, how), w.client.Update(ctx, machine))
		}
		return err
	})
}

func (w *world) get(ctx context.Context, name string) (*machinev1beta1.Machine, error) {
	machine := &machinev1beta1.Machine{}
	return machine, w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, machine)
}

// scale gives the MachineSet, which is made where it is not there, a size.
func (w *world) scale(t *testing.T, count int32) {
	t.Helper()
	w.until(t, "the MachineSet is scaled", func(ctx context.Context) error {
		set := &machinev1beta1.MachineSet{}
		err := w.client.Get(ctx, client.ObjectKeyFromObject(w.set), set)
		if apierrors.IsNotFound(err) {
			set = w.set.DeepCopy()
			set.Spec.Replicas = &count
			return w.client.Create(ctx, set)
		}
		if err != nil {
			return err
		}
		set.Spec.Replicas, set.Spec.Template = &count, w.set.Spec.Template
		return w.client.Update(ctx, set)
	})
}

// machines returns the Machines of the set, by name.
func (w *world) machines(ctx context.Context) ([]machinev1beta1.Machine, error) {
	var list machinev1beta1.MachineList
	err := w.client.List(ctx, &list, client.InNamespace(lab.Namespace), client.MatchingLabels(w.set.Spec.Selector.MatchLabels))
	slices.SortFunc(list.Items, func(a, b machinev1beta1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range list.Items {
		w.known(list.Items[i].Name)
	}
	return list.Items, err
}

func (w *world) known(name string) {
	if !slices.Contains(w.names, name) {
		w.names = append(w.names, name)
	}
}

// running waits until the set has so many Machines, all Running and up to date, and returns their names.
func (w *world) running(t *testing.T, count int) (names []string) {
	t.Helper()
	w.scale(t, int32(count))
	w.until(t, fmt.Sprintf("%d Machines are Running and up to date", count), func(ctx context.Context) error {
		machines, err := w.machines(ctx)
		names = nil
		for i := range machines {
			err = errors.Join(err, w.runs(ctx, &machines[i]))
			names = append(names, machines[i].Name)
		}
		if err == nil && len(names) != count {
			err = fmt.Errorf("there are %v", names)
		}
		return err
	})
	return names
}

// runs returns nil for a Machine that is Running and up to date, and plays its kubelet until then.
func (w *world) runs(ctx context.Context, machine *machinev1beta1.Machine) error {
	if !w.nodes && machine.Spec.ProviderID != nil && machine.Status.NodeRef == nil && machine.DeletionTimestamp == nil {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + machine.Name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
			Spec:       corev1.NodeSpec{ProviderID: *machine.Spec.ProviderID},
		}
		if err := client.IgnoreAlreadyExists(w.client.Create(ctx, node)); err != nil {
			return err
		}
	}
	if machine.DeletionTimestamp != nil || phaseOf(machine) != machinev1beta1.PhaseRunning || conditionOf(machine, upToDate).Status != corev1.ConditionTrue {
		return errors.New(describe(machine))
	}
	return nil
}

// alone makes a Machine like those of the set, and waits until it is Running.
func (w *world) alone(t *testing.T, name string) {
	t.Helper()
	w.ask(t, name, nil)
	w.runsNow(t, name)
}

// runsNow waits until a Machine is Running.
func (w *world) runsNow(t *testing.T, name string) {
	t.Helper()
	w.until(t, name+" is Running", func(ctx context.Context) error {
		machine, err := w.get(ctx, name)
		if err != nil {
			return err
		}
		return w.runs(ctx, machine)
	})
}

// ask creates a Machine like those of the set, one of an instance that there is with its provider ID.
func (w *world) ask(t *testing.T, name string, providerID *string) {
	t.Helper()
	template := w.set.Spec.Template.DeepCopy()
	delete(template.Labels, "machine.openshift.io/cluster-api-machineset")
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: name, Labels: template.Labels}, Spec: template.Spec}
	machine.Spec.ProviderID = providerID
	w.known(name)
	if err := w.client.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
}

// delete deletes a Machine and waits until nothing is left of it: no Machine, Node, state or instance.
func (w *world) delete(t *testing.T, name string) {
	t.Helper()
	w.must(t, "delete", "machine", name, "--wait=false")
	w.gone(t, name)
}

func (w *world) gone(t *testing.T, name string) {
	t.Helper()
	w.until(t, "nothing is left of "+name, func(ctx context.Context) error {
		if machine, err := w.get(ctx, name); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New(describe(machine)))
		}
		var states corev1.SecretList
		if err := w.client.List(ctx, &states, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel}); err != nil {
			return err
		}
		for _, state := range states.Items {
			if state.Annotations[observe.OwnerAnnotation] == name {
				return fmt.Errorf("its state %s is there still", state.Name)
			}
		}
		if err := w.client.Get(ctx, types.NamespacedName{Name: "node-of-" + name}, &corev1.Node{}); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("its Node is there still"))
		}
		if left, err := w.left(ctx, []string{name}); err != nil || len(left) > 0 {
			return fmt.Errorf("there are %v still: %w", left, err)
		}
		return nil
	})
}

// clean has the drift of Machines checked now, and wants all as they were made, up to date.
func (w *world) clean(t *testing.T, names ...string) {
	t.Helper()
	for name, result := range w.drift(t, names...) {
		if result.Result != inspect.DriftAsApplied {
			t.Errorf("a drift check of %s finds %s: %s", name, result.Result, result.Message)
		}
	}
	for _, name := range names {
		machine, err := w.get(t.Context(), name)
		if err == nil {
			err = w.runs(t.Context(), machine)
		}
		if err != nil {
			t.Errorf("after a drift check: %v", err)
		}
	}
}

func (w *world) drift(t *testing.T, names ...string) map[string]inspect.MachineDrift {
	t.Helper()
	out := w.must(t, append([]string{"machine", "drift", "--now", "--wait=2m", "-o", "json"}, names...)...)
	var list struct{ Items []inspect.MachineDrift }
	if err := json.Unmarshal(out, &list); err != nil || len(list.Items) != len(names) {
		t.Fatalf("kubectl machine drift prints %s: %v", out, err)
	}
	found := map[string]inspect.MachineDrift{}
	for _, one := range list.Items {
		found[one.Machine] = one
	}
	return found
}

// id returns the ID of the one instance of a name.
func (w *world) id(t *testing.T, name string) string {
	t.Helper()
	ids, err := w.look(t.Context(), name)
	if err != nil || len(ids) != 1 {
		t.Fatalf("the instances of %s are %v, %v; want one", name, ids, err)
	}
	return ids[0]
}

// afresh removes by force whatever a step that failed has left.
func (w *world) afresh(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	problems := []error{w.manager.Kill()}
	for _, kind := range []string{"machinehealthchecks", "machinedeployments", "machinesets"} {
		_, err := w.kubectl(ctx, "delete", kind, "--all")
		problems = append(problems, err)
	}
	var machines machinev1beta1.MachineList
	var states corev1.SecretList
	problems = append(problems, w.client.List(ctx, &machines, client.InNamespace(lab.Namespace)), w.client.List(ctx, &states, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel}))
	for i := range machines.Items {
		w.known(machines.Items[i].Name)
		problems = append(problems, w.force(ctx, &machines.Items[i]))
	}
	for i := range states.Items {
		problems = append(problems, w.force(ctx, &states.Items[i]))
	}
	for _, name := range w.names {
		_ = w.remove(ctx, name) // most are gone
		problems = append(problems, client.IgnoreNotFound(w.client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + name}})))
	}
	if err := errors.Join(problems...); err != nil {
		t.Fatalf("removing what is left by force: %v", err)
	}
	if w.lost != nil {
		w.lost()
	}
	w.userDataIs(t, "first")
	w.again()
}

// force removes an object, whatever holds it.
func (w *world) force(ctx context.Context, object client.Object) error {
	if err := w.client.Delete(ctx, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
}
