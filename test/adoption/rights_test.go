package adoption

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
	"github.com/machine-iac/machine-iac-operator/test/gcp/compute"
	"github.com/machine-iac/machine-iac-operator/test/rights"
)

// simulation is a simulated cloud that grants what a guard does.
type simulation struct {
	module string
	mirror func(t *testing.T) string
	// start returns the environment of runs, and the credentials.
	start func(t *testing.T, guard *rights.Guard) (map[string]string, map[string][]byte)
}

var simulations = []simulation{
	{"azure", azurermMirror, func(t *testing.T, guard *rights.Guard) (map[string]string, map[string][]byte) {
		server, err := arm.Start(arm.Options{Dir: t.TempDir(), Allowed: guard.Allows})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		return server.Environment(), armCredentials()
	}},
	{"gcp", googleMirror, func(t *testing.T, guard *rights.Guard) (map[string]string, map[string][]byte) {
		server, err := compute.Start(compute.Options{Dir: t.TempDir(), Latency: time.Millisecond, Allowed: guard.Allows})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		key, err := server.Credentials()
		if err != nil {
			t.Fatal(err)
		}
		return server.Environment(), map[string][]byte{"service_account.json": key}
	}},
}

// googleMirror returns a mirror with the provider, or skips the test if it is not built.
func googleMirror(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("terraform-provider-google")
	if err != nil {
		t.Skip("there is no terraform-provider-google on PATH")
	}
	return mirrorOf(t, program, "google", "7.45.0")
}

// TestRightsAreWhatProvidersCall takes a Machine of each life in test/rights from create to delete, with no rights but
// its own, and compares the calls. The first is looked up and adopted as well.
func TestRightsAreWhatProvidersCall(t *testing.T) {
	for _, on := range simulations {
		t.Run(on.module, func(t *testing.T) {
			mirror := on.mirror(t)
			lives, err := rights.Lives(on.module)
			if err != nil {
				t.Fatal(err)
			}
			var first []string
			for n, one := range lives {
				t.Run(one.Life, func(t *testing.T) {
					called := on.live(t, mirror, one, n == 0)
					if n == 0 {
						first = called
					}
					want := slices.Sorted(slices.Values(slices.Concat(one.Calls, lives[0].Refused)))
					got := slices.Sorted(slices.Values(slices.Concat(first, called)))
					got = slices.DeleteFunc(got, func(call string) bool { return slices.Contains(one.Without, call) })
					if diff := cmp.Diff(slices.Compact(want), slices.Compact(got)); diff != "" {
						t.Errorf("calls (-listed +called):\n%s", diff)
					}
				})
			}
		})
	}
}

// live returns what a provider calls in the life of a Machine.
func (s simulation) live(t *testing.T, mirror string, life rights.Life, searched bool) []string {
	w, guard := newWorldIn(t, s.module, mirror), &rights.Guard{}
	environment, credentials := s.start(t, guard)
	machine := exampleMachine(t, s.module, life)
	cluster := &module.Cluster{ResourceTags: life.Tags}
	w.renderIn(cluster, machine, clusterID, credentials, environment)
	guard.Grant(w.rights(cluster, machine))
	w.apply()
	if left := changes(w.plan()); len(left) > 0 {
		t.Errorf("after the apply a plan has %v", left)
	}
	if searched {
		w.forget()
		w.link(w.module.LookupFiles()...)
		w.apply()
		w.forget()
		w.adopt("", "")
		w.apply()
		w.link()
	}
	w.destroy()
	return guard.Called()
}

// rights returns what a Machine needs by its module's spec.rights.
func (w *world) rights(cluster *module.Cluster, machine *machinev1beta1.Machine) (needed []string) {
	input := render.Input{Machine: machine, ClusterID: clusterID, Module: w.module, Cluster: cluster}
	for _, entry := range render.Rights(input) {
		needed = append(needed, entry.Actions...)
	}
	return needed
}

// exampleMachine returns a Machine of a module's example with the fields and labels of a life.
func exampleMachine(t *testing.T, name string, life rights.Life) *machinev1beta1.Machine {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "modules", name, "examples", "machineset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set := &machinev1beta1.MachineSet{}
	if err := yaml.Unmarshal(content, set); err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{}
	if err := json.Unmarshal(set.Spec.Template.Spec.ProviderSpec.Value.Raw, &spec); err != nil {
		t.Fatal(err)
	}
	maps.Copy(spec, life.Fields)
	machine := machineOf("worker-1", spec)
	maps.Copy(machine.Labels, life.Labels)
	return machine
}
