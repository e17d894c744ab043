package desired

import (
	"context"
	"io/fs"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/modules"
)

func TestASecretOfManyMachinesIsReadOnceInAWhile(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "credentials"}}
	reads := 0
	api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(secret).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, object, options...)
		},
	})
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	machine := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: "4b0c2d0e-9a2b-4a8e-8f5d-6f8f0d7a1c11"}}
	r := &Reader{states: withVersion(machine, "7"), client: api, clock: now}
	read := &Basis{state: "7", secrets: [2]version{{secret.Name, secret.ResourceVersion}}}
	check := func(when string, want bool, wantReads int) {
		t.Helper()
		reads = 0
		for range 100 {
			if got := r.Unchanged(t.Context(), machine, read); got != want {
				t.Fatalf("%s, unchanged is %t, want %t", when, got, want)
			}
		}
		if reads != wantReads {
			t.Errorf("%s, 100 Machines had the Secret read %d times, want %d", when, reads, wantReads)
		}
	}
	check("first", true, 1)
	check("right afterwards", true, 0)

	secret.Labels = map[string]string{"changed": "yes"}
	if err := api.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	now.SetTime(now.Now().Add(recently - time.Millisecond))
	check("when it has just changed", true, 0)
	now.SetTime(now.Now().Add(time.Millisecond))
	check("a while later", false, 100) // what may have changed is always read
	read.secrets[0].version = secret.ResourceVersion
	check("once it was reconciled", true, 0)

	if err := api.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	now.SetTime(now.Now().Add(recently))
	check("when it is gone", false, 100)
}

// A read may take as long as it likes: what it found is not newer than its beginning.
func TestAReadCountsFromWhenItBegan(t *testing.T) {
	var v recentReads
	began := time.Unix(1700000000, 0)
	one, other := key("one"), key("other")
	has := func(name client.ObjectKey, at time.Time) bool { return v.get(name, at) == "1" }
	v.keep(one, "1", began.Add(5*time.Second))
	v.keep(other, "1", began)
	if has(other, began.Add(6*time.Second)) {
		t.Error("a read that began before the first of those that are kept is kept with them")
	}
	if !has(one, began.Add(14*time.Second)) || has(one, began.Add(15*time.Second)) {
		t.Error("a read does not count for ten seconds from when it began")
	}
	v.keep(other, "1", began.Add(15*time.Second))
	if has(one, began.Add(16*time.Second)) {
		t.Error("it counts again with the next")
	}
}

// awsMachine returns a Machine of the example of AWS.
func awsMachine(t *testing.T) *machinev1beta1.Machine {
	t.Helper()
	content, err := fs.ReadFile(modules.FS, "aws/examples/machineset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := &machinev1beta1.MachineSet{}
	if err := yaml.Unmarshal(content, set); err != nil {
		t.Fatal(err)
	}
	machine := render.MachineOf(set)
	machine.Name, machine.UID, machine.Namespace = "worker-1", "uid-1", "openshift-machine-api"
	return machine
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "ns", Name: name} }
