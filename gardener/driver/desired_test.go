package driver

import (
	"encoding/json"
	"regexp"
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
	csi := func(driver, handle string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}
	}
	cases := map[string]struct {
		source corev1.PersistentVolumeSource
		want   string
		// attached is its name in Node.status.volumesAttached, which MCM matches.
		attached string
	}{
		"AWS, in tree": {corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{
			VolumeID: "aws://eu-west-1a/vol-1"}}, "vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"},
		"AWS, in tree, without a zone": {corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{
			VolumeID: "vol-1"}}, "vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"},
		"EBS": {csi("ebs.csi.aws.com", "vol-1"), "vol-1", "kubernetes.io/csi/ebs.csi.aws.com^vol-1"},
		"EFS": {csi("efs.csi.aws.com", "fs-1"), "", ""},
		"Azure, in tree": {corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "disk"}}, "disk",
			"kubernetes.io/csi/disk.csi.azure.com^/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/disk"},
		"Azure": {csi("disk.csi.azure.com", "/subscriptions/s/resourceGroups/g.x/providers/Microsoft.Compute/disks/pv-1"),
			`/subscriptions/s/resourceGroups/g\.x/providers/Microsoft\.Compute/disks/pv-1`,
			"kubernetes.io/csi/disk.csi.azure.com^/subscriptions/s/resourceGroups/g.x/providers/Microsoft.Compute/disks/pv-1"},
		"Azure Files": {csi("file.csi.azure.com", "share"), "", ""},
		"GCE, in tree": {corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
			"disk", "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/z/disks/disk"},
		"GCE": {csi("pd.csi.storage.gke.io", "projects/p/zones/z/disks/pv-1"), "projects/p/zones/z/disks/pv-1",
			"kubernetes.io/csi/pd.csi.storage.gke.io^projects/p/zones/z/disks/pv-1"},
		"Cinder, in tree": {corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "c-1"}}, "c-1",
			"kubernetes.io/csi/cinder.csi.openstack.org^c-1"},
		"Cinder": {csi("cinder.csi.openstack.org", "c-1"), "c-1", "kubernetes.io/csi/cinder.csi.openstack.org^c-1"},
		"Manila": {csi("nfs.manila.csi.openstack.org", "m-1"), "", ""},
		"vSphere, in tree": {corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{
			VolumePath: "[ds] kubevols/pv-1.vmdk"}}, `\[ds\] kubevols/pv-1\.vmdk`,
			"kubernetes.io/csi/csi.vsphere.vmware.com^[ds] kubevols/pv-1.vmdk"},
		"vSphere":  {csi("csi.vsphere.vmware.com", "v-1"), "v-1", "kubernetes.io/csi/csi.vsphere.vmware.com^v-1"},
		"Alicloud": {csi("diskplugin.csi.alibabacloud.com", "d-1"), "d-1", "kubernetes.io/csi/diskplugin.csi.alibabacloud.com^d-1"},
		"Longhorn": {csi("driver.longhorn.io", "pvc-1"), "pvc-1", "kubernetes.io/csi/driver.longhorn.io^pvc-1"},
		"RBD":      {csi("rook-ceph.rbd.csi.ceph.com", "0001-1"), "0001-1", "kubernetes.io/csi/rook-ceph.rbd.csi.ceph.com^0001-1"},
		"CephFS":   {csi("rook-ceph.cephfs.csi.ceph.com", "0001-1"), "", ""},
		"a folder": {corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}, "", ""},
	}
	for name, tc := range cases {
		got := volumeID(&corev1.PersistentVolumeSpec{PersistentVolumeSource: tc.source})
		if got != tc.want {
			t.Errorf("%s: the ID is %q, want %q", name, got, tc.want)
		}
		if found, err := regexp.MatchString(got, tc.attached); err != nil || !found {
			t.Errorf("%s: MCM does not find %q in %q: %v", name, got, tc.attached, err)
		}
	}
	if got := volumeID(nil); got != "" {
		t.Errorf("no spec: the ID is %q, want none", got)
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
