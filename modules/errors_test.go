package modules_test

import (
	"strings"
	"testing"
)

// TestFinalErrors has errors of each infrastructure, as its provider writes them, that end a Machine, and some that are retried.
func TestFinalErrors(t *testing.T) {
	const (
		ec2    = "creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: 59d8, api error "
		arm    = "creating Linux Virtual Machine (Subscription: \"s\"): performing CreateOrUpdate: unexpected status 400 (400 Bad Request) with error: "
		limits = "expected gib to be at least (1), got 0\nwith example.this"
	)
	cases := map[string]struct{ final, retried []string }{
		"aws": {
			final: []string{
				ec2 + "InvalidParameterValue: Invalid availability zone: [us-east-1z]", ec2 + "InvalidAMIID.NotFound: The image id '[ami-1]' does not exist",
				ec2 + "InvalidSubnetID.NotFound: The subnet ID 'subnet-1' does not exist", ec2 + "InvalidBlockDeviceMapping: Volume of size 1GB is smaller than snapshot",
				ec2 + "Unsupported: Your requested instance type (m5.large) is not supported in your requested Availability Zone (us-east-1e)",
				ec2 + "InvalidKeyPair.NotFound: The key pair 'k' does not exist", ec2 + "InvalidPlacementGroup.Unknown: The Placement Group 'g' is unknown.",
				ec2 + "UnsupportedOperation: something else", ec2 + "SpotMaxPriceTooLow: Your Spot request price of 0.01 is lower than the minimum",
				"creating EC2 Instance: InvalidAMIID.NotFound: The image id '[ami-1]' does not exist\n\tstatus code: 400, request id: 59d8",
				"creating EC2 Instance: collecting instance settings: couldn't find resource", "collecting instance settings: empty result",
				"Conflicting configuration arguments\n\"subnet_id\": conflicts with network_interface", "expected volume_type to be one of [\"gp2\" \"gp3\"], got gp9",
			},
			retried: []string{
				ec2 + "InvalidAMIID.Unavailable: The image ID 'ami-1' is not yet available",
				ec2 + "InsufficientInstanceCapacity: We currently do not have sufficient capacity",
				"reading EC2 Instance (i-1): operation error EC2: DescribeInstances, https response error StatusCode: 400, RequestID: 59d8, api error InvalidInstanceID.NotFound: The instance ID 'i-1' does not exist",
				ec2 + "UnauthorizedOperation: You are not authorized to perform this operation.", ec2 + "VcpuLimitExceeded: You have requested more vCPU capacity", "Your query returned no results. Please change your search criteria and try again.",
			},
		},
		"azure": {
			final: []string{
				arm + "InvalidParameter: The value of parameter vmSize is invalid.", arm + "PlatformImageNotFound: The platform image 'a:b:c:d' is not available.",
				arm + "InvalidResourceReference: Resource r was not found.", arm + "VMMarketplaceInvalidInput: The VM was created from a Marketplace image.",
				"creating Network Interface: performing CreateOrUpdate: unexpected status 404 (404 Not Found) with error: ResourceNotFound: The Resource s was not found.",
			},
			retried: []string{
				arm + "SubnetIsFull: Subnet s does not have enough capacity for 1 IP addresses.", arm + "OperationNotAllowed: exceeding approved Total Regional Cores quota.",
				"creating Network Interface: performing CreateOrUpdate: unexpected status 401 (401 Unauthorized) with error: InvalidAuthenticationToken: The access token is invalid.",
				"reading the image: unexpected status 404 (404 Not Found) with error: NotFound: not there",
			},
		},
		"gcp": {
			final: []string{
				"Error creating instance: googleapi: Error 400: Invalid value for field 'resource.machineType': 'zones/z/machineTypes/x'. Machine type does not exist., invalid",
				"Error creating instance: googleapi: Error 400: Disk size is too small., invalidParameter\nwith google_compute_instance.this",
				"Error creating instance: googleapi: Error 404: The resource 'projects/p/zones/z/acceleratorTypes/x' was not found, notFound",
				"Error creating Disk: googleapi: Error 404: The resource 'projects/p/zones/z/diskTypes/x' was not found, notFound",
				"Error loading zone 'z': googleapi: Error 404: The resource 'projects/p/zones/z' was not found, notFound",
				"Error reading instance: googleapi: Error 404: The resource 'projects/p' was not found, notFound",
			},
			retried: []string{
				"Error creating instance: googleapi: Error 400: The resource 'r' is not ready, resourceNotReady", "googleapi: Error 403: Quota 'CPUS' exceeded., quotaExceeded",
				"Error resolving image name 'i': Could not find image or family i", "googleapi: Error 404: The resource 'projects/p/zones/z/instanceGroups/g' was not found, notFound",
			},
		},
		"openstack": {
			final: []string{
				`Error creating OpenStack server: Bad request with: [POST https://n/servers], error message: {"badRequest": {"code": 400, "message": "Invalid input for field/attribute metadata. Value: a/b"}}`,
				`Error creating OpenStack server: Bad request with: [POST https://n/servers], error message: {"badRequest": {"code": 400, "message": "Flavor's disk is too small for requested image. Flavor disk is 1 bytes"}}`,
				`Error creating OpenStack server: Bad request with: [POST https://n/servers], error message: {"badRequest": {"code": 400, "message": "The requested availability zone is not available"}}`,
				"Unable to find flavor with name m1.huge", "Unable to find image with name rhcos", "Found 2 images matching rhcos",
				limits,
			},
			retried: []string{
				`Error creating OpenStack server: Bad request with: [POST https://n/servers], error message: {"badRequest": {"code": 400, "message": "Port id p could not be found."}}`,
				`Error creating OpenStack server: Bad request with: [POST https://n/servers], error message: {"badRequest": {"code": 400, "message": "Image i could not be found."}}`,
				"Error creating openstack_blockstorage_volume_v3: Invalid image identifier or unable to access requested image.", "No Image found",
			},
		},
		"nutanix": {
			final: []string{
				"the virtual machine w is not created: no image is called rhcos", "the virtual machine w is not created: several subnets are called net, and not exactly one of them is on the cluster",
				"the virtual machine w is not created: no cluster is called pe", "the virtual machine w is not created: no project is called team",
				"the virtual machine w is not created: there is no category AppType with the value a", limits,
			},
			retried: []string{
				"the virtual machine w is not created: no unused GPU of the cluster is called T4", "the virtual machine w is not created: the Infrastructure has no failure domain fd-1",
				"invalid auth Credentials", "looking for a image: Post https://pc:9440/api/nutanix/v3/images/list: connection refused",
				"error waiting for vm (u) to create: error_detail: Not enough resources, progress_message: create_vm_intentful",
			},
		},
		"vsphere": {
			final: []string{
				"error cloning virtual machine: A specified parameter was not correct: configSpec.guestId", limits,
				"error fetching datastore: datastore 'd' not found", "error fetching virtual machine: vm 't' not found", "error fetching virtual machine: path 't' resolves to multiple vms",
				"error fetching resource pool: path '*/Resources' resolves to multiple resource pools", "error fetching network: network 'n' not found", "folder '/dc1/vm/f' not found",
				`unable to get network for "n": the compute cluster c has none of this name`,
				"disk.0: disk name disk0 must be at least the same size of source when cloning (expected: >= 16 GiB)",
			},
			retried: []string{
				"error fetching datacenter: datacenter 'd' not found", "error fetching datastore: Post https://vcenter/sdk: connection refused", "A specified parameter was not correct: spec.location.host",
			},
		},
		"libvirt": {
			final:   []string{"Invalid Attribute Value\nAttribute memory value must be at least 1", limits},
			retried: []string{"error retrieving base volume: Storage volume not found: no storage vol with matching key 'rhcos'", "could not find or access /images/base.qcow2"},
		},
		"kubemark": {
			final: []string{
				`worker-1 failed to create: Node "worker-1" is invalid: metadata.labels: Invalid value: "a b": a valid label must be`,
				`worker-1 failed to create: Node "worker-1" is invalid: [metadata.name: Invalid value: "x_", spec.podCIDR: Invalid value: "y"]`,
			},
			retried: []string{`nodes "worker-1" is forbidden: exceeded quota`, `nodes "worker-1" not found`, "Unrecognized remote plugin message", `the request is invalid: spec.x`},
		},
		"kubevirt": {
			final:   []string{`VirtualMachine.kubevirt.io "vm" is invalid: spec.running: Invalid value: "string"`},
			retried: []string{`resource [kubevirt.io/v1/VirtualMachine] isn't valid for cluster, no matches for kind "VirtualMachine"`},
		},
	}
	each(t, func(t *testing.T, m kept) {
		tc, known := cases[m.Name()]
		if !known {
			t.Fatal("its final errors are not tested")
		}
		for _, text := range tc.final {
			if !m.Final(text) {
				t.Errorf("%q is retried", text)
			}
		}
		for _, text := range append(tc.retried, "Unrecognized remote plugin message", "timeout while waiting for plugin to start", "Error: unexpected EOF") {
			if m.Final(text) {
				t.Errorf("%q ends the Machine", text)
			}
		}
	})
}

// TestErrorsThatProveThatNothingWasMade has errors of creates as each provider writes them: refusals of the request that makes an instance, and what leaves it open.
func TestErrorsThatProveThatNothingWasMade(t *testing.T) {
	const v2 = "creating EC2 Instance: operation error EC2: RunInstances, "
	for name, tc := range map[string]struct{ nothing, open []string }{
		"aws": {
			nothing: []string{
				v2 + "https response error StatusCode: 403, RequestID: 59d8-1, api error UnauthorizedOperation: You are not authorized to perform this operation. Encoded authorization failure message: x",
				v2 + "https response error StatusCode: 403, RequestID: 59d8-1, api error AuthFailure: AWS was not able to validate the provided access credentials",
				v2 + "https response error StatusCode: 400, RequestID: 59d8-1, api error InvalidAMIID.NotFound: The image id '[ami-1]' does not exist",
				"creating EC2 Instance: UnauthorizedOperation: You are not authorized to perform this operation. User: arn:aws:iam::1:user/u\n\tstatus code: 403, request id: 59d8-1",
				"creating EC2 Instance: InvalidAMIID.NotFound: The image id '[ami-1]' does not exist\n\tstatus code: 400, request id: 59d8-1",
				"collecting instance settings: couldn't find resource",
				"collecting instance settings: operation error EC2: DescribeImages, https response error StatusCode: 403, RequestID: 1, api error UnauthorizedOperation: no",
			},
			open: []string{
				v2 + "https response error StatusCode: 503, RequestID: 59d8-1, api error RequestLimitExceeded: Request limit exceeded.",
				v2 + "exceeded maximum number of attempts, 5, https response error StatusCode: 0, RequestID: , request send failed, Post \"https://ec2\": EOF",
				"creating EC2 Instance: RequestLimitExceeded: Request limit exceeded.\n\tstatus code: 503, request id: 59d8-1",
				"creating EC2 Instance: RequestError: send request failed\ncaused by: Post \"https://ec2\": EOF",
				"waiting for EC2 Instance (i-1) create: operation error EC2: DescribeInstances, https response error StatusCode: 403, RequestID: 1, api error UnauthorizedOperation: no",
				"reading EC2 Instance (i-1): UnauthorizedOperation: no\n\tstatus code: 403, request id: 1",
				"waiting for EC2 Instance (i-1) create: unexpected state 'x', tag: " + v2 + "https response error StatusCode: 403, RequestID: 1, api error x",
			},
		},
		"azure": {
			nothing: []string{"creating Linux Virtual Machine (Subscription: \"s\"\nResource Group Name: \"g\"\nVirtual Machine Name: \"m\"): performing CreateOrUpdate: unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: The client does not have authorization"},
			open: []string{
				"creating Linux Virtual Machine (Subscription: \"s\"): performing CreateOrUpdate: unexpected status 503 (503 Service Unavailable) with response: x",
				"creating Linux Virtual Machine (Subscription: \"s\"): polling after CreateOrUpdate: unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: no",
			},
		},
		"gcp": {
			nothing: []string{"Error creating instance: googleapi: Error 403: Required 'compute.instances.create' permission for 'projects/p/zones/z/instances/i', forbidden"},
			open:    []string{"Error waiting for instance to create: googleapi: Error 403: no, forbidden", "Error creating instance: googleapi: Error 503: Backend Error, backendError"},
		},
		"kubemark": {
			nothing: []string{
				"m-1 failed to create kubernetes rest client for update of resource: Unauthorized",
				"m-1 failed to create kubernetes rest client for update of resource: Get \"https://a.invalid/api?timeout=32s\": dial tcp: lookup a.invalid: no such host",
				"m-1 failed to create kubernetes rest client for update of resource: Get \"https://[::1]:1/api\": dial tcp [::1]:1: connect: connection refused",
				"m-1 failed to create kubernetes rest client for update of resource: Get \"https://a/api\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
				`m-1 failed to run apply: error when creating "/tmp/1kubectl_manifest.yaml": nodes is forbidden: User "u" cannot create resource "nodes" in API group "" at the cluster scope`,
				"m-1 failed to run apply: error when retrieving current configuration of:\nResource: \"/v1, Resource=nodes\", GroupVersionKind: \"/v1, Kind=Node\"\nName: \"m-1\", Namespace: \"\"\nfrom server for: \"/tmp/1\": nodes \"m-1\" is forbidden: no",
				"m-1 failed to run apply: no objects passed to apply",
			},
			open: []string{
				`m-1 failed to run apply: error when creating "/tmp/1kubectl_manifest.yaml": Post "https://a/api/v1/nodes": EOF`,
				`m-1 failed to run apply: error when creating "/tmp/1kubectl_manifest.yaml": Post "https://a/api/v1/nodes": dial tcp [::1]:1: connect: connection refused`,
				`m-1 failed to fetch resource from kubernetes: Unauthorized`,
				`m-1 failed to fetch resource from kubernetes: m-1 failed to create kubernetes rest client for update of resource: forged by a server`,
			},
		},
		"openstack": {
			nothing: []string{`Error creating OpenStack server: Request forbidden: [POST https://n/servers], error message: {"forbidden": {"code": 403, "message": "Policy doesn't allow it."}}`},
			open: []string{
				`Error creating OpenStack server: Expected HTTP response code [200 202] when accessing [POST https://n/servers], but got 502 instead: Bad Gateway`,
				`Error waiting for instance (i) to become ready: Request forbidden: [GET https://n/servers/i], error message: no`,
			},
		},
	} {
		m := keptIn(t, name)
		for _, text := range tc.nothing {
			if !m.NothingMade(text) {
				t.Errorf("%s: %q says that nothing was made", name, text)
			}
		}
		for _, text := range tc.open {
			if m.NothingMade(text) || m.Final(text) {
				t.Errorf("%s: %q leaves open whether something was made", name, text)
			}
		}
	}
	if hint := keptIn(t, "aws").Hint("collecting instance settings: couldn't find resource"); !strings.Contains(hint, "ami.id") {
		t.Errorf("the hint %q does not name the field", hint)
	}
}
