package driver

import (
	"encoding/json"
	"strings"
	"testing"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	kubemark  = `{"apiVersion":"kubemarkproviderconfig.openshift.io/v1alpha1","kind":"KubemarkMachineProviderConfig","cpu":2}`
	openstack = `{"apiVersion":"machine.openshift.io/v1alpha1","kind":"OpenstackProviderSpec"}`
)

func class(provider, spec string) *mcm.MachineClass {
	return &mcm.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: "small"}, Provider: provider,
		ProviderSpec: runtime.RawExtension{Raw: []byte(spec)}, SecretRef: &corev1.SecretReference{Namespace: "shoot", Name: "worker"},
	}
}

func machineOf(name string) *mcm.Machine {
	return &mcm.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, UID: "1234", CreationTimestamp: metav1.Now()}}
}

func secretWith(keys ...string) *corev1.Secret {
	data := map[string][]byte{}
	for _, key := range keys {
		data[key] = []byte("a " + key)
	}
	return &corev1.Secret{Data: data}
}

func TestProviderSpecsOfClasses(t *testing.T) {
	kept := class(Provider, openstack)
	kept.CredentialsSecretRef = &corev1.SecretReference{Namespace: "shoot", Name: "cloudprovider"}
	cases := map[string]struct {
		class  *mcm.MachineClass
		secret *corev1.Secret
		want   string
	}{
		"user data are the Machine's, credentials the class's": {
			class(Provider, kubemark), secretWith("userData", "token"),
			`{"credentialsSecret":{"name":"worker-machine-iac"},"userDataSecret":{"name":"m-user-data"}}`,
		},
		"a kind with another name for its Secret": {kept, secretWith("userData"), `{"cloudsSecret":{"name":"cloudprovider-machine-iac"},"userDataSecret":{"name":"m-user-data"}}`},
		"keys of Gardener": {
			class(Provider, kubemark), secretWith("accessKeyID", "secretAccessKey"), `{"credentialsSecret":{"name":"worker-machine-iac"}}`,
		},
		"what the class names stays": {
			class(Provider, strings.Replace(kubemark, `"cpu":2`, `"cpu":2,"credentialsSecret":{"name":"x"},"userDataSecret":{"name":"y"}`, 1)),
			secretWith("userData"), `{"credentialsSecret":{"name":"x"},"userDataSecret":{"name":"y"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := newDesired(machineOf("m"), tc.class, tc.secret)
			if err != nil {
				t.Fatal(err)
			}
			var want, given map[string]any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(tc.class.ProviderSpec.Raw, &given); err != nil {
				t.Fatal(err)
			}
			for key, value := range given {
				if _, ok := want[key]; !ok {
					want[key] = value
				}
			}
			if diff := cmp.Diff(want, w.providerSpec); diff != "" {
				t.Errorf("the providerSpec differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGardenersCredentialsGetTheModulesNames(t *testing.T) {
	w, err := newDesired(machineOf("m"), class(Provider, kubemark), secretWith("userData", "clientID", "clientSecret", "subscriptionID", "tenantID"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{
		"clientID": []byte("a clientID"), "clientSecret": []byte("a clientSecret"), "subscriptionID": []byte("a subscriptionID"), "tenantID": []byte("a tenantID"),
		"azure_client_id": []byte("a clientID"), "azure_client_secret": []byte("a clientSecret"),
		"azure_subscription_id": []byte("a subscriptionID"), "azure_tenant_id": []byte("a tenantID"),
	}
	if diff := cmp.Diff(want, w.credentials.Data); diff != "" {
		t.Errorf("the credentials differ (-want +got):\n%s", diff)
	}
	if uses := [2]string{w.credentials.Labels[labelUsable], w.userData.Labels[labelUsable]}; uses != [2]string{"credentials", "user-data"} {
		t.Errorf("Machines may use the Secrets for %q, want each for its use", uses)
	}
}

func TestClassesThatAreRefused(t *testing.T) {
	cases := map[string]struct {
		class *mcm.MachineClass
		want  string
	}{
		"another provider": {class("AWS", kubemark), `provider is "AWS"`},
		"no kind":          {class(Provider, `{"apiVersion":"v1"}`), "providerSpec.kind: missing"},
		"no object":        {class(Provider, `[]`), "providerSpec: not an object"},
		"no providerSpec":  {class(Provider, ``), "providerSpec: not an object"},
		"Azure's, wrong":   {class("Azure", `{"properties":{"hardwareProfile":{"vmsize":"x"}}}`), "providerSpec.properties.hardwareProfile.vmsize"},
		"no class":         {nil, "no MachineClass"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newDesired(machineOf("m"), tc.class, secretWith("userData"))
			if codeOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want InvalidArgument with %q", err, tc.want)
			}
		})
	}
}

func TestVolumeIDs(t *testing.T) {
	csi := func(driver, handle string) *corev1.PersistentVolumeSpec {
		spec := &corev1.PersistentVolumeSpec{}
		spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
		return spec
	}
	cases := map[string]struct {
		spec *corev1.PersistentVolumeSpec
		want string
	}{
		"a disk":       {csi("ebs.csi.aws.com", "vol-1"), "vol-1"},
		"a file share": {csi("efs.csi.aws.com", "fs-1"), ""},
		"nothing":      {&corev1.PersistentVolumeSpec{}, ""},
		"no spec":      {nil, ""},
	}
	for name, tc := range cases {
		if got := volumeID(tc.spec); got != tc.want {
			t.Errorf("%s: the ID is %q, want %q", name, got, tc.want)
		}
	}
}

func TestAnInstanceOfAnotherProviderIsNotForgotten(t *testing.T) {
	cases := map[string]struct {
		provider, id string
		want         codes.Code
	}{
		"Gardener's, for Azure":   {"Azure", "azure:///westeurope/shoot--demo-worker-1", codes.FailedPrecondition},
		"the module's, for Azure": {"Azure", "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m", codes.NotFound},
		"none":                    {"Azure", "", codes.NotFound},
		"one of ours":             {Provider, "kubemark://m", codes.NotFound},
	}
	for name, tc := range cases {
		of := machineOf("m")
		of.Spec.ProviderID = tc.id
		if got := codeOf(missing(&driver.DeleteMachineRequest{Machine: of, MachineClass: class(tc.provider, kubemark)})); got != tc.want {
			t.Errorf("%s: the code is %v, want %v", name, got, tc.want)
		}
	}
}
