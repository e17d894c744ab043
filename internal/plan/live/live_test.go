package live

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/desired"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// machineOf returns the only Machine of the plan, and checks its result.
func machineOf(t *testing.T, planned *preview.Preview, want preview.EditResult) *preview.LiveMachine {
	t.Helper()
	machines := planned.Sets[0].Live.Machines
	if len(machines) != 1 {
		t.Fatalf("the plan has %d Machines; want one", len(machines))
	}
	if machines[0].Result != want {
		t.Errorf("the result is %s (%s); want %s", machines[0].Result, machines[0].Why, want)
	}
	return machines[0]
}

func wantText(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("it says %q; want %q in it", text, want)
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestMachinesThatAnEditDoesNothingTo(t *testing.T) {
	shared, spec := newKubemark(t)
	cases := map[string]struct {
		change func(*bench, *machinev1beta1.Machine)
		want   preview.EditResult
		why    string
	}{
		"one without an instance": {want: preview.NotMade, why: "it has no instance yet"},
		"one that is deleted": {
			change: func(b *bench, machine *machinev1beta1.Machine) {
				machine.Finalizers = []string{builder.MachineFinalizer}
				b.must(b.client.Update(b.t.Context(), machine))
				b.must(b.client.Delete(b.t.Context(), machine))
			},
			want: preview.Gone, why: "it is being deleted",
		},
		"one that has failed": {
			change: func(b *bench, machine *machinev1beta1.Machine) {
				machine.Status.Phase = ptr.To(machinev1beta1.PhaseFailed)
				b.must(b.client.Status().Update(b.t.Context(), machine))
			},
			want: preview.Gone, why: "it has failed",
		},
		"one that had an instance, and whose state is gone": {
			change: func(b *bench, machine *machinev1beta1.Machine) {
				machine.Spec.ProviderID = ptr.To("kubemark://gone")
				b.must(b.client.Update(b.t.Context(), machine))
			},
			want: preview.Undecided, why: "there may be an instance that its state lacks",
		},
		"one that is being made": {
			change: func(b *bench, machine *machinev1beta1.Machine) { b.lock(machine, "create") },
			want:   preview.NotMade, why: "it is being created (create of run run-9 by owner-9",
		},
		"one whose state cannot be read": {
			change: func(b *bench, machine *machinev1beta1.Machine) {
				key := keyOf(machine)
				b.create(&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
					Data:       map[string][]byte{"tfstate": []byte("nonsense")},
				})
			},
			want: preview.Undecided, why: "cannot read state",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := *shared
			b.t = t
			set := b.set(1, spec)
			machine := b.machine(set, "a")
			if tc.change != nil {
				tc.change(&b, machine)
			}
			wantText(t, machineOf(t, b.plan(set, nil), tc.want).Why, tc.why)
		})
	}
}

// lock locks a Machine's state, as a run does.
func (b *bench) lock(machine *machinev1beta1.Machine, operation string) {
	b.t.Helper()
	_, err := b.store().Acquire(b.t.Context(), keyOf(machine),
		state.AcquireOptions{Lock: state.Lock{Owner: "owner-9", Run: "run-9", Operation: operation}})
	b.must(err)
}

func TestWhatIsReadOfTheCluster(t *testing.T) {
	long.Test(t)
	b, spec := newKubemark(t)
	set := b.set(1, spec)
	machine := b.machine(set, "a")
	b.bring(machine)
	refreshed := func(o *Options) { o.Refresh = true }

	t.Run("a state that a run has is planned from what was saved last", func(t *testing.T) {
		b.lock(machine, "update")
		found := machineOf(t, b.plan(edited(set, with(spec, map[string]any{"zone": "zone-b"})), nil), preview.InPlace)
		wantText(t, strings.Join(found.Notes, " "), "A run has its state now (update of run run-9 by owner-9")
	})
	t.Run("drift is reported where it is checked", func(t *testing.T) {
		node := &corev1.Node{}
		b.must(b.client.Get(t.Context(), client.ObjectKey{Name: machine.Name}, node))
		node.Labels["node.kubernetes.io/instance-type"] = "other"
		b.must(b.client.Update(t.Context(), node))
		if found := machineOf(t, b.plan(set, nil), preview.Unchanged); found.Drift != "" {
			t.Errorf("drift is reported that nobody asked for: %s", found.Drift)
		}
		machineOf(t, b.plan(set, refreshed), preview.Unchanged) // labels are ignored by the module
		b.must(b.client.Delete(t.Context(), node))
		found := machineOf(t, b.plan(set, refreshed), preview.Gone)
		wantText(t, found.Why, "instance kubectl_manifest.this is gone")
		wantText(t, found.Drift, "instance kubectl_manifest.this is gone")
	})
	t.Run("credentials are read for a refresh only", func(t *testing.T) {
		b.must(b.client.Delete(t.Context(),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "credentials"}}))
		machineOf(t, b.plan(set, nil), preview.Unchanged)
		found := machineOf(t, b.plan(set, refreshed), preview.Undecided)
		wantText(t, found.Why, "credentials, named in spec.providerSpec.value, does not exist")
	})
}

func TestReplicas(t *testing.T) {
	b, spec := newKubemark(t)
	set := b.set(2, spec)
	b.machine(set, "a")
	b.machine(set, "b")
	b.create(builder.In(b.namespace, builder.Machine(builder.WithLabels(set.Spec.Template.Labels)))) // an orphan
	for name, tc := range map[string]struct {
		replicas               *int32
		wantReplicas           int32
		wantCreate, wantDelete int
	}{
		"as many":                     {replicas: ptr.To[int32](2), wantReplicas: 2},
		"more":                        {replicas: ptr.To[int32](5), wantReplicas: 5, wantCreate: 3},
		"fewer":                       {replicas: ptr.To[int32](0), wantReplicas: 0, wantDelete: 2},
		"none said, so as there were": {wantReplicas: 2},
	} {
		t.Run(name, func(t *testing.T) {
			changed := set.DeepCopy()
			changed.Spec.Replicas = tc.replicas
			planned := b.plan(changed, nil)
			live := planned.Sets[0].Live
			if live.Create != tc.wantCreate || live.Delete != tc.wantDelete ||
				planned.Sets[0].Replicas != tc.wantReplicas || live.DeletePolicy != "Random" ||
				len(live.Machines) != 2 {
				t.Errorf("the plan has %d replicas and %+v", planned.Sets[0].Replicas, live)
			}
			if want := 2 * tc.wantCreate; planned.Summary.Add != want {
				t.Errorf("%d resources would be added; want %d", planned.Summary.Add, want)
			}
		})
	}
	t.Run("of a MachineSet that is not there", func(t *testing.T) {
		planned := b.plan(builder.In(b.namespace,
			builder.MachineSet(builder.WithReplicas(3), func(s *machinev1beta1.MachineSet) {
				s.Spec.Template.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
			})), nil)
		if live := planned.Sets[0].Live; live.Exists || live.Create != 3 {
			t.Errorf("the plan is %+v", live)
		}
	})
}

func TestAMachineByItself(t *testing.T) {
	b, spec := newKubemark(t)
	machine := builder.In(b.namespace, builder.Machine())
	machine.Spec.ProviderSpec.Value = builder.ProviderSpec(spec)
	if live := b.plan(machine, nil).Sets[0].Live; live.Exists || live.Create != 1 {
		t.Errorf("the plan of a Machine that does not exist is %+v", live)
	}
	b.create(machine)
	b.bring(machine)
	changed := machine.DeepCopy()
	changed.Spec.ProviderSpec.Value = builder.ProviderSpec(with(spec, map[string]any{"zone": "zone-b"}))
	machineOf(t, b.plan(changed, nil), preview.InPlace)
}

// changedModule returns the kubemark module with replacements in its main.tf, as pairs of old and new.
func changedModule(t *testing.T, replaced ...string) *module.Module {
	t.Helper()
	return changedWith(t, fstest.MapFS{}, replaced...)
}

// changedWith is changedModule with additional files.
func changedWith(t *testing.T, files fstest.MapFS, replaced ...string) *module.Module {
	t.Helper()
	shipped, err := fs.Sub(modules.FS, "kubemark")
	if err != nil {
		t.Fatal(err)
	}
	err = fs.WalkDir(shipped, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(shipped, name)
		files[name] = &fstest.MapFile{Data: []byte(strings.NewReplacer(replaced...).Replace(string(raw)))}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := load.Module(files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestAModuleThatHasChanged(t *testing.T) {
	long.Test(t)
	b, spec := newKubemark(t)
	set := b.set(1, spec)
	b.bring(b.machine(set, "a"))
	const os = `"kubernetes.io/os"                 = "linux"`
	inPlace := func(o *Options) { o.ModuleUpdates = desired.ModuleUpdatesInPlace }

	b.load([]*module.Module{changedModule(t, os, `"kubernetes.io/os" = "other"`)})
	t.Run("is not the Machine's while that is held", func(t *testing.T) {
		found := machineOf(t, b.plan(set, nil), preview.Unchanged)
		wantText(t, strings.Join(found.Notes, " "), "the Machine stays on module kubemark@sha256:")
		if found.Module == b.catalog.Modules()[0].Reference() {
			t.Errorf("it is planned with the current module %s", found.Module)
		}
	})
	t.Run("is the Machine's where that is allowed", func(t *testing.T) {
		found := machineOf(t, b.plan(set, inPlace), preview.InPlace)
		wantText(t, strings.Join(found.Notes, " "), "updating the Machine to module kubemark@sha256:")
	})
	t.Run("is not the Machine's where that would replace it", func(t *testing.T) {
		b.load([]*module.Module{changedModule(t, "name        = var.machine.name", `name = "${var.machine.name}-x"`)})
		found := machineOf(t, b.plan(set, inPlace), preview.Unchanged)
		wantText(t, strings.Join(found.Notes, " "), "since the current one cannot be applied in place: the change "+
			"cannot be made in place")
	})
}

func TestNothingCanBeWritten(t *testing.T) {
	guarded, object := readOnly{plane.Client}, &corev1.Secret{}
	for name, err := range map[string]error{
		"create":       guarded.Create(t.Context(), object),
		"update":       guarded.Update(t.Context(), object),
		"patch":        guarded.Patch(t.Context(), object, client.RawPatch("", nil)),
		"delete":       guarded.Delete(t.Context(), object),
		"delete all":   guarded.DeleteAllOf(t.Context(), object),
		"status":       guarded.Status().Update(t.Context(), object),
		"status patch": guarded.Status().Patch(t.Context(), object, client.RawPatch("", nil)),
		"token":        guarded.SubResource("token").Create(t.Context(), object, object),
	} {
		if err == nil {
			t.Errorf("%s is let through", name)
		}
	}
}
