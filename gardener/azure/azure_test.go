package azure

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole is a providerSpec with most fields, as Gardener writes it for a worker pool.
const whole = `{
  "location": "westeurope", "resourceGroup": "shoot--demo", "tags": {"Name": "shoot--demo", "kubernetes.io-cluster-shoot--demo": "1", "kubernetes.io-role-node": "1"},
  "subnetInfo": {"vnetName": "net", "vnetResourceGroup": "nets", "subnetName": "nodes"},
  "cloudConfiguration": {"name": "AzurePublic"},
  "properties": {
    "hardwareProfile": {"vmSize": "Standard_D4s_v3"},
    "storageProfile": {
      "imageReference": {"urn": "sap:gardenlinux:greatest:1.2.3", "skipMarketplaceAgreement": true},
      "osDisk": {"name": "", "caching": "None", "diskSizeGB": 50, "createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}},
      "dataDisks": [{"name": "kubelet", "lun": 0, "caching": "None", "diskSizeGB": 100, "storageAccountType": "Standard_LRS"}, {"lun": 1, "diskSizeGB": 8}]
    },
    "osProfile": {"adminUsername": "core", "linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": {"path": "/home/core/.ssh/authorized_keys", "keyData": "ssh-rsa AAAA"}}}},
    "networkProfile": {"acceleratedNetworking": true},
    "zone": 2, "identityID": "/subscriptions/s/identity",
    "securityProfile": {"securityType": "TrustedLaunch", "uefiSettings": {"vtpmEnabled": true}},
    "diagnosticsProfile": {"enabled": true},
    "capacityReservation": {"capacityReservationGroupID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/capacityReservationGroups/c"}
  }
}`

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAClassOfGardenerBecomesTheModules(t *testing.T) {
	got, err := ProviderSpec(decode(t, whole))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/module.json") // a test beside modules/azure has the module take it
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, string(want)), decode(t, string(raw))); diff != "" {
		t.Errorf("it differs (-want +got):\n%s", diff)
	}
}

func TestAvailabilitySets(t *testing.T) {
	for _, properties := range []string{
		`{"availabilitySet": {"id": "/subscriptions/s/availabilitySets/workers"}}`,
		`{"machineSet": {"kind": "availabilityset", "id": "/subscriptions/s/availabilitySets/workers"}}`,
	} {
		spec := decode(t, whole)
		inner := spec["properties"].(map[string]any)
		delete(inner, "zone")
		for name, value := range decode(t, properties) {
			inner[name] = value
		}
		got, err := ProviderSpec(spec)
		if err != nil || got["availabilitySet"] != "workers" {
			t.Errorf("%s gives %v, %v", properties, got["availabilitySet"], err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	const storage = "providerSpec.properties.storageProfile."
	cases := map[string]struct{ edit, want string }{
		"an unknown field":    {`{"properties": {"hardwareProfile": {"vmsize": "x"}}}`, "providerSpec.properties.hardwareProfile.vmsize: Gardener's provider for Azure has no such field"},
		"a scale set":         {`{"properties": {"virtualMachineScaleSet": {"id": "x"}}}`, "providerSpec.properties.virtualMachineScaleSet.id: not supported"},
		"a scale set, older":  {`{"properties": {"machineSet": {"kind": "vmo", "id": "x"}}}`, `providerSpec.properties.machineSet.kind is "vmo"`},
		"a shared gallery":    {`{"properties": {"storageProfile": {"imageReference": {"sharedGalleryImageID": "x"}}}}`, storage + "imageReference.sharedGalleryImageID: not supported"},
		"a data disk's image": {`{"properties": {"storageProfile": {"dataDisks": [{"lun": 0, "diskSizeGB": 1, "imageRef": {"id": "x"}}]}}}`, storage + "dataDisks[].imageRef.id: not supported"},
		"a URN in parts":      {`{"properties": {"storageProfile": {"imageReference": {"urn": "a:b:c"}}}}`, storage + "imageReference.urn is \"a:b:c\""},
		"two images":          {`{"properties": {"storageProfile": {"imageReference": {"id": "x", "urn": "a:b:c:d"}}}}`, storage + "imageReference: id and urn are mutually exclusive"},
		"an attached disk":    {`{"properties": {"storageProfile": {"osDisk": {"createOption": "Attach"}}}}`, storage + `osDisk.createOption is "Attach"`},
		"a disk of no size":   {`{"properties": {"storageProfile": {"osDisk": {"diskSizeGB": 0}}}}`, storage + "osDisk.diskSizeGB: required"},
		"half a disk":         {`{"properties": {"storageProfile": {"osDisk": {"diskSizeGB": 1.5}}}}`, storage + "osDisk.diskSizeGB is 1.5"},
		"half a zone":         {`{"properties": {"zone": "two"}}`, "providerSpec.properties.zone is two"},
		"no tag of a cluster": {`{"tags": {"kubernetes.io-cluster-shoot--demo": null, "a": "b"}}`, `providerSpec.tags: a tag with the prefix "kubernetes.io-cluster-" is missing`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := decode(t, whole)
			merge(spec, decode(t, tc.edit))
			_, err := ProviderSpec(spec)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

// merge merges as RFC 7386 does.
func merge(into, edit map[string]any) {
	for name, value := range edit {
		inner, object := value.(map[string]any)
		old, same := into[name].(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case object && same:
			merge(old, inner)
		default:
			into[name] = value
		}
	}
}

// The table in the README is that of the code, and the code knows the fields that Gardener's
// provider has, which testdata/fields.txt lists.
func TestEveryFieldIsInTheTable(t *testing.T) {
	listed, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := []string{}
	for name := range fields {
		known = append(known, name)
	}
	slices.Sort(known)
	if diff := cmp.Diff(strings.Fields(string(listed)), known); diff != "" {
		t.Errorf("the fields differ from those of Gardener's provider (-want +got):\n%s", diff)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known {
		row := fmt.Sprintf("| `%s` | %s | %s |\n", name, fields[name].as, fields[name].why)
		if !strings.Contains(string(readme), row) {
			t.Errorf("README.md lacks the row\n%s", row)
		}
	}
	if rows := strings.Count(string(readme), "\n| `"); rows != len(fields) {
		t.Errorf("README.md has %d rows, and there are %d fields", rows, len(fields))
	}
}
