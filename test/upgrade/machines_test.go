//go:build upgrade

package upgrade_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

// trace changes when anything is done to a Machine. A run acquires the state's lock, and so changes its Secret's
// resource version.
type trace struct {
	Machine, State string // resource versions
	Node           string // UID
}

// traces returns the traces of all settled Machines by name.
func (w *world) traces() map[string]trace {
	w.Helper()
	machines, states, err := w.seen(w.Context())
	w.must(err)
	found := map[string]trace{}
	for _, machine := range machines {
		state, known := states[string(machine.UID)]
		if machine.Status.NodeRef == nil || !known || busy(state) {
			continue
		}
		found[machine.Name] = trace{Machine: machine.ResourceVersion, State: state.ResourceVersion,
			Node: string(machine.Status.NodeRef.UID)}
	}
	return found
}

// seen returns the Machines, and the states by their Machines' UIDs.
func (w *world) seen(ctx context.Context) ([]machinev1beta1.Machine, map[string]corev1.Secret, error) {
	var machines machinev1beta1.MachineList
	var secrets corev1.SecretList
	err := errors.Join(
		w.client.List(ctx, &machines, client.InNamespace(lab.Namespace)),
		w.client.List(ctx, &secrets, client.InNamespace(lab.Namespace), client.HasLabels{observe.RoleLabel}),
	)
	states := map[string]corev1.Secret{}
	for _, secret := range secrets.Items {
		states[secret.Labels[observe.UIDLabel]] = secret
	}
	return machines.Items, states, err
}

// busy reports whether a run is in progress.
func busy(state corev1.Secret) bool {
	return state.Annotations[observe.LockAnnotation]+state.Annotations[observe.IntentAnnotation] != ""
}

// settled returns an error unless count Machines exist, all Running with a Node, and no run is in progress.
func (w *world) settled(ctx context.Context, count int) error {
	machines, states, err := w.seen(ctx)
	if err != nil {
		return err
	}
	phases, going := map[string]int{}, 0
	for _, machine := range machines {
		phases[phaseOf(&machine)]++
		if machine.Status.NodeRef == nil {
			going++
		}
	}
	for _, state := range states {
		if busy(state) {
			going++
		}
	}
	if phases[machinev1beta1.PhaseRunning] != count || len(machines) != count || len(states) != count || going > 0 {
		return fmt.Errorf("%d states, %d not settled, phases %v", len(states), going, phases)
	}
	return nil
}

// begun returns an error unless at least count instances are being created.
func (w *world) begun(ctx context.Context, count int) error {
	_, states, err := w.seen(ctx)
	found := 0
	for _, state := range states {
		if strings.Contains(state.Annotations[observe.IntentAnnotation], `"operation":"create"`) {
			found++
		}
	}
	if err == nil && found < count {
		err = fmt.Errorf("%d of %d", found, count)
	}
	return err
}

// create creates a MachineSet from the example.
func (w *world) create(name string, replicas int32, credentials string) {
	w.Helper()
	content, err := os.ReadFile(w.lab.Path("modules/kubemark/examples/machineset.yaml"))
	w.must(err)
	set := &machinev1beta1.MachineSet{}
	w.must(yaml.UnmarshalStrict(content, set))
	set.Name, set.Spec.Replicas = name, &replicas
	for _, labels := range []map[string]string{set.Spec.Selector.MatchLabels, set.Spec.Template.Labels} {
		labels["machine.openshift.io/cluster-api-machineset"] = name
	}
	fields := map[string]any{}
	w.must(json.Unmarshal(set.Spec.Template.Spec.ProviderSpec.Value.Raw, &fields))
	fields["credentialsSecret"] = map[string]any{"name": credentials}
	raw, err := json.Marshal(fields)
	w.must(err)
	set.Spec.Template.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: raw}
	w.must(w.client.Create(w.Context(), set))
}

// slowCredentials creates credentials that use the proxy, and returns the Secret's name.
func (w *world) slowCredentials() string {
	w.Helper()
	own := &corev1.Secret{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: lab.Namespace, Name: "kubemark-credentials"}, own))
	slowly := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: lab.Namespace, Name: "slow-credentials", Labels: map[string]string{references.Label: "true"},
		},
		Data: map[string][]byte{
			"server": []byte(w.proxy.Address()), "ca.crt": w.proxy.Authority(), "token": own.Data["token"],
		},
	}
	w.must(w.client.Create(w.Context(), slowly))
	return slowly.Name
}

func (w *world) until(what string, check func(context.Context) error) {
	w.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for err := check(ctx); err != nil; {
		if !w.leads.Running() {
			w.Fatalf("waiting until %s: the manager has ended: %s; its log is %s", what, w.leads.State(), w.leads.Log)
		}
		select {
		case <-ctx.Done():
			w.Fatalf("waiting until %s: %v", what, err)
		case <-time.After(time.Second):
		}
		if now := check(ctx); now == nil || ctx.Err() == nil { // ignore a check that the deadline cut off
			err = now
		}
	}
	w.Logf("%6.1f s until %s", time.Since(begun).Seconds(), what)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Error(err)
	}
}
