package install_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/test/controlplane"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// controlPlaneSet names two failure domains.
const controlPlaneSet = `
apiVersion: machine.openshift.io/v1
kind: ControlPlaneMachineSet
metadata: {name: cluster, namespace: openshift-machine-api}
spec:
  replicas: 3
  state: Inactive
  selector: {matchLabels: {machine.openshift.io/cluster-api-machine-role: master, machine.openshift.io/cluster-api-machine-type: master, machine.openshift.io/cluster-api-cluster: demo}}
  template:
    machineType: machines_v1beta1_machine_openshift_io
    machines_v1beta1_machine_openshift_io:
      failureDomains: {platform: VSphere, vsphere: [{name: control}, {name: elsewhere}]}
      metadata: {labels: {machine.openshift.io/cluster-api-machine-role: master, machine.openshift.io/cluster-api-machine-type: master, machine.openshift.io/cluster-api-cluster: demo}}
      spec: {providerSpec: {value: {}}}
`

// TestFailureDomainsThatAreInUseStay tries to remove each failure domain. All but the last are in use.
func TestFailureDomainsThatAreInUseStay(t *testing.T) {
	long.Test(t)
	c := start(t)
	if err := controlplane.InstallClusterConfig(c.plane.Config); err != nil {
		t.Fatal(err)
	}
	if err := c.plane.InstallControlPlaneMachineSets(); err != nil {
		t.Fatal(err)
	}
	set := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(controlPlaneSet), &set.Object); err != nil {
		t.Fatal(err)
	}
	infrastructure := failureDomains("machine", "set", "control", "free")
	labels := func(zone string) map[string]string {
		return map[string]string{"machine.openshift.io/region": "east", "machine.openshift.io/zone": zone}
	}
	selected := map[string]string{"set": "workers"}
	workers := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers"}}
	workers.Spec.Selector.MatchLabels = selected
	workers.Spec.Template.Labels = labels("set")
	workers.Spec.Template.Labels["set"] = "workers"
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, infrastructure, set, workers,
		&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "worker-1", Labels: labels("machine"),
		}},
		// It uses no failure domain, and blocks no removal.
		&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "worker-2", Labels: labels("nowhere"),
		}},
		&machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "worker-3"}},
	} {
		if err := c.plane.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	infrastructure.Status.PlatformStatus = &configv1.PlatformStatus{Type: configv1.VSpherePlatformType}
	infrastructure.Status.ControlPlaneTopology,
		infrastructure.Status.InfrastructureTopology = configv1.HighlyAvailableTopologyMode,
		configv1.HighlyAvailableTopologyMode
	if err := c.plane.Client.Status().Update(t.Context(), infrastructure); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "apply", "-k", filepath.Join(root, "install", "vsphere"))
	refused := map[string]string{
		"machine": "failure domain (region=east, zone=machine) that is still in use by Machine 'worker-1'",
		"set":     "failure domain (region=east, zone=set) that is still in use by MachineSet 'workers'",
		"control": "failure domain(s) still referenced by ControlPlaneMachineSet 'cluster': [control]",
	}
	for zone, want := range refused {
		c.refusesWithin(t, time.Minute, infrastructure, zone, want)
	}
	if err := c.removeDomain(t, infrastructure, "free"); err != nil {
		t.Errorf("removing a failure domain that is not in use: %v", err)
	}
}

// refusesWithin waits until a failure domain cannot be removed: new policies take effect with a delay.
func (c *cluster) refusesWithin(t *testing.T, limit time.Duration,
	infrastructure *configv1.Infrastructure, zone, want string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		err := c.removeDomain(t, infrastructure, zone)
		if apierrors.IsInvalid(err) &&
			strings.Contains(err.Error(), "Infrastructure update would remove vSphere "+want) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("removing the failure domain %s returns %v, want %q", zone, err, want)
			return
		}
	}
}

// removeDomain tries to remove a failure domain in a dry run.
func (c *cluster) removeDomain(t *testing.T, infrastructure *configv1.Infrastructure, zone string) error {
	t.Helper()
	changed := infrastructure.DeepCopy()
	domains := &changed.Spec.PlatformSpec.VSphere.FailureDomains
	var kept []configv1.VSpherePlatformFailureDomainSpec
	for _, domain := range *domains {
		if domain.Zone != zone {
			kept = append(kept, domain)
		}
	}
	*domains = kept
	return c.plane.Client.Update(t.Context(), changed, client.DryRunAll)
}

// failureDomains returns an Infrastructure with failure domains, named like their zones.
func failureDomains(names ...string) *configv1.Infrastructure {
	made := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	made.Spec.PlatformSpec.Type = configv1.VSpherePlatformType
	made.Spec.PlatformSpec.VSphere = &configv1.VSpherePlatformSpec{
		VCenters: []configv1.VSpherePlatformVCenterSpec{{Server: "vcenter.example.com", Datacenters: []string{"DC0"}}},
	}
	for _, name := range names {
		made.Spec.PlatformSpec.VSphere.FailureDomains = append(made.Spec.PlatformSpec.VSphere.FailureDomains,
			configv1.VSpherePlatformFailureDomainSpec{
				Name: name, Region: "east", Zone: name, Server: "vcenter.example.com",
				Topology: configv1.VSpherePlatformTopology{
					Datacenter: "DC0", ComputeCluster: "/DC0/host/" + name, Datastore: "/DC0/datastore/LocalDS_0",
					Networks: []string{"VM Network"},
				},
			})
	}
	return made
}
