package compute_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/machine-iac/machine-iac-operator/test/gcp/compute"
	"github.com/machine-iac/machine-iac-operator/test/rights"
)

func TestRequestsNeedThePermissionsOfGoogle(t *testing.T) {
	const project = "https://compute.googleapis.com/compute/v1/projects/" + compute.Project
	for name, tc := range map[string]struct {
		method, address, body, want string
	}{
		"who asks":            {http.MethodGet, "https://openidconnect.googleapis.com/v1/userinfo", "", ""},
		"the project":         {http.MethodGet, project, "", "compute.projects.get"},
		"a zone":              {http.MethodGet, zone, "", "compute.zones.get"},
		"a machine type":      {http.MethodGet, zone + "/machineTypes/n", "", "compute.machineTypes.get"},
		"an image":            {http.MethodGet, project + "/global/images/i", "", "compute.images.get"},
		"a family":            {http.MethodGet, project + "/global/images/family/f", "", "compute.images.getFromFamily"},
		"an operation":        {http.MethodGet, zone + "/operations/o", "", "compute.zoneOperations.get"},
		"an awaited one":      {http.MethodPost, zone + "/operations/o/wait", "", "compute.zoneOperations.get"},
		"instances":           {http.MethodGet, zone + "/instances", "", "compute.instances.list"},
		"a delete":            {http.MethodDelete, zone + "/disks/d", "", "compute.disks.delete"},
		"an action":           {http.MethodPost, zone + "/instances/i/setLabels", "", "compute.instances.setLabels"},
		"a group's instances": {http.MethodPost, zone + "/instanceGroups/g/listInstances", "", "compute.instanceGroups.list"},
		"a member of a group": {
			http.MethodPost, zone + "/instanceGroups/g/addInstances", `{"instances":[{"instance":"i"}]}`,
			"compute.instanceGroups.update compute.instances.use",
		},
		"a search": {
			http.MethodGet, "https://cloudasset.googleapis.com/v1/projects/" + compute.Project + ":searchAllResources", "",
			"cloudasset.assets.searchAllResources",
		},
		"a disk": {
			http.MethodPost, zone + "/disks",
			`{"name":"d","sourceImage":"i","labels":{"a":"b"},"params":{"resourceManagerTags":{"a":"b"}}}`,
			"compute.disks.create compute.disks.createTagBinding compute.disks.setLabels " +
				"compute.images.useReadOnly",
		},
		"a plain instance": {
			http.MethodPost, zone + "/instances",
			`{"name":"p","disks":[],"labels":{},"metadata":{},"tags":{},"networkInterfaces":[{"network":"n","subnetwork":""}]}`,
			"compute.instances.create",
		},
		"an instance": {
			http.MethodPost, zone + "/instances",
			`{"name":"i","labels":{"a":"b"},"metadata":{"items":[{"key":"k"}]},"tags":{"items":["t"]},
				"serviceAccounts":[{"email":"e"}],"params":{"resourceManagerTags":{"a":"b"}},
				"networkInterfaces":[{"subnetwork":"s","accessConfigs":[{}]}],
				"disks":[{"initializeParams":{"sourceImage":"i","labels":{"a":"b"},"resourceManagerTags":{"a":"b"}}},{"source":"d"}]}`,
			"compute.disks.create compute.disks.createTagBinding compute.disks.setLabels compute.disks.use " +
				"compute.images.useReadOnly compute.instances.create compute.instances.createTagBinding " +
				"compute.instances.setLabels compute.instances.setMetadata compute.instances.setServiceAccount " +
				"compute.instances.setTags compute.subnetworks.use compute.subnetworks.useExternalIp " +
				"iam.serviceAccounts.actAs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.Fields(tc.want)
			var body any
			if tc.body != "" {
				body = json.RawMessage(tc.body)
			}
			guard := &rights.Guard{}
			c, _ := newClient(t, compute.Options{Allowed: guard.Allows})
			for at := range want {
				guard.Grant(slices.Delete(slices.Clone(want), at, at+1))
				if status, _ := c.ask(tc.method, tc.address, body); status != http.StatusForbidden {
					t.Errorf("without %s: %d, want %d", want[at], status, http.StatusForbidden)
				}
			}
			guard.Grant(want)
			if status, _ := c.ask(tc.method, tc.address, body); status == http.StatusForbidden {
				t.Error("it is refused")
			}
			if diff := cmp.Diff(want, guard.Called(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the permissions (-want +got):\n%s", diff)
			}
		})
	}
}
