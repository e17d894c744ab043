package desired

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
)

// The installer leaves Machines of the control plane without a provider ID and a status, and may do
// so after the operator has come.
func TestAnInstanceOfTheInstallersIsSearchedBeforeTheFirstCreate(t *testing.T) {
	catalog, err := module.NewCatalog(shipped(t, "aws"), shipped(t, "vsphere"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1700000000, 0)
	live := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: installation.SecretName, CreationTimestamp: metav1.NewTime(began)},
		Data:       map[string][]byte{"uid": []byte("i"), "key": make([]byte, 32)},
	}).Build()
	own, err := installation.Read(t.Context(), live, "ns")
	if err != nil {
		t.Fatal(err)
	}
	master := func(m *machinev1beta1.Machine) {
		m.Labels["machine.openshift.io/cluster-api-machine-role"] = "master"
	}
	set := func(m *machinev1beta1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Controller: ptr.To(true)}}
	}
	older := func(m *machinev1beta1.Machine) { m.CreationTimestamp = metav1.NewTime(began.Add(-time.Second)) }
	asking := func(m *machinev1beta1.Machine) {
		m.Annotations = map[string]string{lifecycle.AdoptionAnnotation: "Adopt"}
	}
	granted := func(m *machinev1beta1.Machine) {
		asking(m)
		grant, err := adoption.NewGrant(own, m, "alice", m.CreationTimestamp.Time)
		if err != nil {
			t.Fatal(err)
		}
		m.Annotations[adoption.GrantAnnotation] = grant
	}
	for name, tc := range map[string]struct {
		policy adoption.Policy
		mods   []func(*machinev1beta1.Machine)
		want   lifecycle.Adoption
	}{
		"a worker is created":                     {adoption.OnRequest, nil, lifecycle.AdoptionNone},
		"a master is searched":                    {adoption.OnRequest, []func(*machinev1beta1.Machine){master}, lifecycle.AdoptionPlan},
		"and with every policy":                   {adoption.Never, []func(*machinev1beta1.Machine){master}, lifecycle.AdoptionPlan},
		"one of a MachineSet is created":          {adoption.OnRequest, []func(*machinev1beta1.Machine){master, set}, lifecycle.AdoptionNone},
		"a policy is no right":                    {adoption.Adopt, []func(*machinev1beta1.Machine){master}, lifecycle.AdoptionPlan},
		"nor is a request":                        {adoption.Adopt, []func(*machinev1beta1.Machine){master, asking}, lifecycle.AdoptionPlan},
		"a grant is":                              {adoption.OnRequest, []func(*machinev1beta1.Machine){master, granted}, lifecycle.AdoptionAdopt},
		"an older worker is searched":             {adoption.OnRequest, []func(*machinev1beta1.Machine){older}, lifecycle.AdoptionPlan},
		"and adopted where the policy says so":    {adoption.Adopt, []func(*machinev1beta1.Machine){older}, lifecycle.AdoptionAdopt},
		"a provider ID needs no search by a name": {adoption.OnRequest, []func(*machinev1beta1.Machine){master, func(m *machinev1beta1.Machine) { m.Spec.ProviderID = ptr.To("aws:///a/i-1") }}, lifecycle.AdoptionNone},
	} {
		t.Run(name, func(t *testing.T) {
			machine := awsMachine(t)
			machine.CreationTimestamp = metav1.NewTime(began.Add(time.Hour))
			for _, mod := range tc.mods {
				mod(machine)
			}
			reader, err := NewReader(Options{Client: live, Catalog: catalog, Installation: own, Clock: clock.RealClock{}, Adoption: adoption.Rules{Policy: tc.policy}})
			if err != nil {
				t.Fatal(err)
			}
			f, err := reader.FactsOf(t.Context(), machine, nil)
			if err != nil || f.Adoption.Adoption != tc.want {
				t.Errorf("got %q (%+v), %v; want %q", f.Adoption.Adoption, f.Adoption, err, tc.want)
			}
		})
	}
}

// A virtual machine of the installer's has the name and the folder of its Machine: a clone would
// fail, and tell people to remove it.
func TestModulesOfOpenShiftsPlatformsSearchByName(t *testing.T) {
	for _, name := range []string{"aws", "azure", "gcp", "nutanix", "openstack", "vsphere"} {
		if !shipped(t, name).AdoptsByName() {
			t.Errorf("the module %s cannot find what the installer has made", name)
		}
	}
}
