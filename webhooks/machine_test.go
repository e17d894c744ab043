package webhooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

const (
	badZone = `providerSpec.zone: Invalid value: "a/b": the module "kubemark" does not allow "a/b"; region and zone become values ` +
		`of labels: write at most 63 letters, digits, '-', '_' and '.', for example zone: zone-a.`
	badPods = `providerSpec.pods: Invalid value: 0: the module "kubemark" does not allow 0; pods is a whole number and at least 1: ` +
		`write it as pods: 110.`
	asBefore = " (accepted because it was there before)"
)

func TestMachineDefaulter(t *testing.T) {
	tests := map[string]struct {
		clusterID string
		labels    map[string]string
		want      map[string]string
	}{
		"no labels at all":                              {clusterID: "c1", want: map[string]string{builder.ClusterLabel: "c1"}},
		"other labels stay":                             {clusterID: "c1", labels: map[string]string{"a": "b"}, want: map[string]string{"a": "b", builder.ClusterLabel: "c1"}},
		"a label that is there is not overwritten":      {clusterID: "c1", labels: map[string]string{builder.ClusterLabel: "c2"}, want: map[string]string{builder.ClusterLabel: "c2"}},
		"nor one that is empty":                         {clusterID: "c1", labels: map[string]string{builder.ClusterLabel: ""}, want: map[string]string{builder.ClusterLabel: ""}},
		"a cluster that is not known is not written in": {},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			machine := machineWith(func(m *machinev1beta1.Machine) { m.Labels = tc.labels })
			if err := (&machineDefaulter{rules: testRules(t, tc.clusterID)}).Default(t.Context(), machine); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, machine.Labels); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// With --controllers=*,-machine, other actuators serve kinds that no module knows, as on bare metal.
func TestKindsOfOtherControllersAreAdmitted(t *testing.T) {
	rules := newRules(Options{Catalog: catalogOf(t, "kubemark"), ClusterID: "demo", ServedElsewhere: true})
	for name, machine := range map[string]*machinev1beta1.Machine{
		"a kind": machineWith(withValue(builder.ProviderSpec(nil))), "no kind": machineWith(withValue(&runtime.RawExtension{Raw: []byte(`{"apiVersion":"a/v1"}`)})),
	} {
		found := rules.newMachine(machine)
		if len(found.errs) > 0 || len(found.warnings) != 1 || !strings.HasSuffix(found.warnings[0], "(accepted because another controller serves Machines)") {
			t.Errorf("%s: errors %v, warnings %q; want one warning", name, found.errs, found.warnings)
		}
	}
	if found := rules.newMachine(machineWith(withValue(nil))); len(found.errs) != 1 {
		t.Errorf("without a providerSpec: %v, want the error of always", found.errs)
	}
}

func TestNewMachine(t *testing.T) {
	long := strings.Repeat("x", 1000)
	tests := map[string]struct {
		machine      *machinev1beta1.Machine
		clusterID    string
		wantErrs     []string
		wantWarnings []string
	}{
		"all is well": {machine: machineWith()},
		"no providerSpec": {
			machine: machineWith(withValue(nil)), wantErrs: []string{"providerSpec.value: Required value: a value must be provided"},
		},
		"a providerSpec of nothing": {
			machine:  machineWith(withValue(&runtime.RawExtension{})),
			wantErrs: []string{"providerSpec.value: Required value: a value must be provided"},
		},
		"a providerSpec without a kind": {
			machine: machineWith(withValue(&runtime.RawExtension{Raw: []byte(`{"apiVersion":"a/v1"}`)})),
			wantErrs: []string{`providerSpec.kind: Required value: a string is required, but it is missing; ` +
				`name a kind that a provider module serves`},
		},
		"a kind that no module serves names those that are": {
			machine: machineWith(withValue(builder.ProviderSpec(nil))),
			wantErrs: []string{`providerSpec.kind: Unsupported value: "TestMachineProviderSpec": no provider module serves ` +
				`apiVersion "machine.openshift.io/v1beta1", kind "TestMachineProviderSpec"; known are ` +
				`kubemarkproviderconfig.openshift.io/v1alpha1 KubemarkMachineProviderConfig, machine-iac.io/v1alpha1 TerraformMachineProviderSpec`},
		},
		"a kind of any length makes a short message": {
			machine: machineWith(withValue(builder.ProviderSpec(map[string]any{"kind": long}))),
			wantErrs: []string{`providerSpec.kind: Unsupported value: "` + long[:64] + `...": no provider module serves ` +
				`apiVersion "machine.openshift.io/v1beta1", kind "` + long[:64] + `..."; known are ` +
				`kubemarkproviderconfig.openshift.io/v1alpha1 KubemarkMachineProviderConfig, machine-iac.io/v1alpha1 TerraformMachineProviderSpec`},
		},
		"all problems are listed": {
			machine:  machineWith(withValue(kubemarkSpec(`,"zone":"a/b","pods":0`))),
			wantErrs: []string{badPods, badZone},
		},
		"a field inside a list": {
			machine: machineWith(withValue(kubemarkSpec(`,"taints":[{"key":"a","effect":"NoSchedule"},{"key":"b","effect":"No"}]`))),
			wantErrs: []string{`providerSpec.taints[1].effect: Unsupported value: "No": the module "kubemark" does not allow "No"; ` +
				`A taint's effect is one of NoSchedule, PreferNoSchedule and NoExecute: write it as effect: NoSchedule.`},
		},
		"the Machine's own name": {
			machine: machineWith(named(strings.Repeat("n", 64))),
			wantErrs: []string{`metadata.name: Invalid value: "` + strings.Repeat("n", 64) + `": the module "kubemark" does not allow "` +
				strings.Repeat("n", 64) + `"; The Machine's name becomes the label kubernetes.io/hostname, which has at most 63 characters: ` +
				`give the MachineSet a shorter name.`},
		},
		"every unknown field warns": {
			machine: machineWith(withValue(kubemarkSpec(`,"Zone":"a","taints":[{"key":"a","effect":"NoSchedule","x":1}]`))),
			wantWarnings: []string{
				`providerSpec.value: Unsupported value: "taints[0].x": Unknown field (taints[0].x) will be ignored`,
				`providerSpec.value: Unsupported value: "Zone": Unknown field (Zone) will be ignored; write it as zone`,
			},
		},
		"without the cluster's name nothing would be done": {
			machine: machineWith(func(m *machinev1beta1.Machine) { m.Labels = nil }),
			wantWarnings: []string{`metadata.labels: Required value: nothing is done for a Machine without the label ` +
				`machine.openshift.io/cluster-api-cluster; set it to the name of the cluster's infrastructure`},
		},
		"the cluster's name may be known": {machine: machineWith(func(m *machinev1beta1.Machine) { m.Labels = nil }), clusterID: "c1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := testRules(t, tc.clusterID).newMachine(tc.machine)
			if diff := cmp.Diff(tc.wantErrs, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func withHooks(preDrain, preTerminate []machinev1beta1.LifecycleHook) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Spec.LifecycleHooks = machinev1beta1.LifecycleHooks{PreDrain: preDrain, PreTerminate: preTerminate}
	}
}

func TestChangedMachine(t *testing.T) {
	bad, worse := withValue(kubemarkSpec(`,"zone":"a/b"`)), withValue(kubemarkSpec(`,"zone":"a/b","pods":0`))
	a, b := machinev1beta1.LifecycleHook{Name: "Aaa", Owner: "me"}, machinev1beta1.LifecycleHook{Name: "Aaa", Owner: "you"}
	hooks := func(hooks ...machinev1beta1.LifecycleHook) []machinev1beta1.LifecycleHook { return hooks }
	tests := map[string]struct {
		before, machine *machinev1beta1.Machine
		wantErrs        []string
		wantWarnings    []string
	}{
		"nothing changes":              {before: machineWith(), machine: machineWith()},
		"a providerSpec becomes wrong": {before: machineWith(), machine: machineWith(bad), wantErrs: []string{badZone}},
		"a label changes where a later rule forbids the providerSpec": {
			before: machineWith(bad), machine: machineWith(bad, builder.WithLabels(map[string]string{"a": "b"})), wantWarnings: []string{badZone + asBefore},
		},
		"the same providerSpec in other words": {
			before:       machineWith(withValue(kubemarkSpec(`,"zone":"a/b","pods":1`))),
			machine:      machineWith(withValue(kubemarkSpec(`,  "pods":1, "zone":"a/b"`))),
			wantWarnings: []string{badZone + asBefore},
		},
		"a number past 2^53 is another one": {
			before:   machineWith(withValue(kubemarkSpec(`,"zone":"a/b","cpu":9007199254740992`))),
			machine:  machineWith(withValue(kubemarkSpec(`,"zone":"a/b","cpu":9007199254740993`))),
			wantErrs: []string{badZone},
		},
		"a changed providerSpec is checked as a whole": {
			before: machineWith(bad), machine: machineWith(worse), wantErrs: []string{badPods, badZone},
		},
		"a kind whose module is gone": {
			before:  machineWith(withValue(builder.ProviderSpec(nil))),
			machine: machineWith(withValue(builder.ProviderSpec(nil)), builder.WithProviderID("a://b")),
			wantWarnings: []string{`providerSpec.kind: Unsupported value: "TestMachineProviderSpec": no provider module serves ` +
				`apiVersion "machine.openshift.io/v1beta1", kind "TestMachineProviderSpec"; known are ` +
				`kubemarkproviderconfig.openshift.io/v1alpha1 KubemarkMachineProviderConfig, machine-iac.io/v1alpha1 TerraformMachineProviderSpec` + asBefore},
		},
		"a Machine that never had a providerSpec": {
			before: machineWith(withValue(nil)), machine: machineWith(withValue(nil), builder.WithFinalizer()),
			wantWarnings: []string{"providerSpec.value: Required value: a value must be provided" + asBefore},
		},
		"unknown fields were reported when it was made": {
			before: machineWith(withValue(kubemarkSpec(`,"x":1`))), machine: machineWith(withValue(kubemarkSpec(`,"x":1`)), builder.WithFinalizer()),
		},
		"the last finalizer of a Machine that breaks every rule": {
			before:  machineWith(withValue(nil), leaving()),
			machine: machineWith(withValue(nil), leaving(), func(m *machinev1beta1.Machine) { m.Finalizers = nil }),
		},
		"metadata of a Machine that is deleted": {
			before: machineWith(worse, leaving()), machine: machineWith(worse, leaving(), builder.WithAnnotations(map[string]string{"a": "b"})),
		},
		"the credentials of a Machine that is deleted may be fixed in spite of other problems": {
			before: machineWith(bad, leaving()), machine: machineWith(withValue(kubemarkSpec(`,"zone":"a/b","cpu":2`)), leaving()),
			wantWarnings: []string{badZone + asBefore},
		},
		"a Machine that is deleted may not become worse": {
			before: machineWith(bad, leaving()), machine: machineWith(worse, leaving()),
			wantErrs: []string{badPods}, wantWarnings: []string{badZone + asBefore},
		},
		"hooks come while it lives": {before: machineWith(), machine: machineWith(withHooks(hooks(a), hooks(b)))},
		"hooks go while it is deleted": {
			before: machineWith(withHooks(hooks(a), hooks(b)), leaving()), machine: machineWith(leaving()),
		},
		"hooks come while it is deleted": {
			before: machineWith(leaving()), machine: machineWith(withHooks(hooks(a), hooks(b)), leaving()),
			wantErrs: []string{
				"spec.lifecycleHooks.preDrain: Forbidden: pre-drain hooks are immutable when machine is marked for deletion: " +
					"the following hooks are new or changed: [{Name:Aaa Owner:me}]",
				"spec.lifecycleHooks.preTerminate: Forbidden: pre-terminate hooks are immutable when machine is marked for deletion: " +
					"the following hooks are new or changed: [{Name:Aaa Owner:you}]",
			},
		},
		"a hook changes hands while it is deleted": {
			before: machineWith(withHooks(hooks(a), nil), leaving()), machine: machineWith(withHooks(hooks(b), nil), leaving()),
			wantErrs: []string{"spec.lifecycleHooks.preDrain: Forbidden: pre-drain hooks are immutable when machine is marked for deletion: " +
				"the following hooks are new or changed: [{Name:Aaa Owner:you}]"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := testRules(t, "").changedMachine(tc.before, tc.machine)
			if diff := cmp.Diff(tc.wantErrs, texts(got.errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantWarnings, got.warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
