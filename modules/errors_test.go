package modules_test

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/failure"
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
		"nutanix": {
			nothing: []string{`the virtual machine m is not created: it is refused: error: {"api_version": "3.1", "code": 403, "message_list": [{"message": "no", "reason": "ACCESS_DENIED"}]}`},
			open: []string{
				`error: {"api_version": "3.1", "code": 403, "message_list": [{"message": "no", "reason": "ACCESS_DENIED"}]}`,
				"error waiting for vm (u) to create: error_detail: Not enough resources, progress_message: create_vm_intentful",
			},
		},
		"vsphere": {
			nothing: []string{"error cloning virtual machine: vCenter refuses it: ServerFaultCode: Permission to perform this operation was denied. Required privilege 'VirtualMachine.Inventory.CreateFromExisting' on managed object with id 'group-v3'."},
			open: []string{
				"error cloning virtual machine: ServerFaultCode: The session is not authenticated.",
				"error reconfiguring virtual machine: ServerFaultCode: Permission to perform this operation was denied.",
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
	for _, name := range []string{"kubemark", "../stacks/kubemark", examples + "/kubevirt"} {
		hint := keptIn(t, name).Hint("m-1 failed to run apply: no objects passed to apply")
		if !strings.HasPrefix(hint, "the work folder is full: ") {
			t.Errorf("%s: the hint %q does not say that the work folder is full", name, hint)
		}
	}
}

// TestQuotaErrors has errors of exhausted quota and capacity as each provider writes them, and the
// words that name what is exhausted. None of them ends a Machine, and people read those words.
func TestQuotaErrors(t *testing.T) {
	const (
		ec2 = "creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: 59d8, api error "
		vm  = "creating Linux Virtual Machine (Subscription: \"00000000-0000-0000-0000-000000000000\"\nResource Group Name: \"demo-x7k2p-rg\"\n" +
			"Virtual Machine Name: \"demo-x7k2p-worker-0-abcde\"): "
		arm    = vm + "performing CreateOrUpdate: unexpected status 409 (409 Conflict) with error: "
		polled = vm + "polling after CreateOrUpdate: polling failed: the Azure API returned the following error:\n\nStatus: "
		nova   = "Error creating OpenStack server: Request forbidden: [POST https://n/servers], error message: "
	)
	if (failure.Diagnostic{Summary: arm + "AllocationFailed: x"}).LostResponse() ||
		!(failure.Diagnostic{Summary: polled + "\"AllocationFailed\""}).LostResponse() {
		t.Error("after Azure has accepted a request, a failed virtual machine remains; before that, nothing does")
	}
	cases := map[string]map[string]string{
		"aws": {
			ec2 + "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to.":    "vCPU limit of 32",
			ec2 + "InstanceLimitExceeded: You have requested more instances (2) than your current instance limit of 1 allows for the specified instance type.":                                 "instance limit of 1",
			ec2 + "MaxSpotInstanceCountExceeded: Max spot instance count exceeded":                                                                                                             "Max spot instance count",
			ec2 + "VolumeLimitExceeded: You have exceeded your maximum gp3 storage limit of 50 TiB in this region.":                                                                            "maximum gp3 storage",
			ec2 + "InsufficientFreeAddressesInSubnet: There are not enough free addresses in subnet 'subnet-1' to satisfy the requested number of instances.":                                  "subnet-1",
			strings.Replace(ec2, "400", "500", 1) + "InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-east-1a).": "m5.large capacity",
			"creating EC2 Instance: VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows\n\tstatus code: 400, request id: 59d8":                  "vCPU limit of 32",
		},
		"azure": {
			arm + "OperationNotAllowed: Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: eastus, Current Limit: 10, Current Usage: 8, Additional Required: 4, (Minimum) New Limit Required: 12.": "standardDSv3Family Cores quota",
			arm + "OperationNotAllowed: Operation could not be completed as it results in exceeding approved Total Regional Cores quota.":                                                                                                                                                                               "Total Regional Cores quota",
			arm + "QuotaExceeded: Operation results in exceeding quota limits of Core. Maximum allowed: 4, Current in use: 4, Additional requested: 2.":                                                                                                                                                                 "quota limits of Core",
			arm + "SkuNotAvailable: The requested size for resource 'r' is currently not available in location 'eastus' zones '1' for subscription 's'.":                                                                                                                                                                "location 'eastus'",
			polled + "\"AllocationFailed\"\nCode: \"\"\nMessage: \"Allocation failed. We do not have sufficient capacity for the requested VM size in this region.\"":                                                                                                                                                   "sufficient capacity",
			polled + "\"ZonalAllocationFailed\"\nCode: \"\"\nMessage: \"Allocation failed. We do not have sufficient capacity for the requested VM size in this zone.\"":                                                                                                                                                "in this zone",
			polled + "\"OverconstrainedZonalAllocationRequest\"\nCode: \"\"\nMessage: \"Allocation failed. VM(s) with the following constraints cannot be allocated\"":                                                                                                                                                  "following constraints",
		},
		"gcp": {
			"Error creating instance: googleapi: Error 403: Quota 'N2_CPUS' exceeded.  Limit: 24.0 in region us-central1.\nMore details:\nReason: quotaExceeded, Message: Quota 'N2_CPUS' exceeded.": "'N2_CPUS'",
			"Error waiting for instance to create: Quota 'GPUS-ALL-REGIONS-per-project' exceeded.  Limit: 0.0 globally.\n\tmetric name = compute.googleapis.com/gpus_all_regions":                    "'GPUS-ALL-REGIONS-per-project'",
			"Error waiting for instance to create: QUOTA_EXCEEDED: SSD_TOTAL_GB": "SSD_TOTAL_GB",
			"Error waiting for instance to create: The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill the request.  '(resource type:compute)'.":                        "resource type:compute",
			"Error waiting for instance to create: A g2-standard-4 VM instance with 1 nvidia-l4 accelerator(s) is currently unavailable in the us-central1-a zone. Consider trying your request in another zone.": "nvidia-l4",
			"Error waiting for instance to create: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: us-central1-a":                                                                                                      "us-central1-a",
		},
		"openstack": {
			nova + `{"forbidden": {"code": 403, "message": "Quota exceeded for cores, ram: Requested 8, 32768, but already used 20, 51200 of 20, 51200 cores, ram"}}`:                                                                                                                               "Quota exceeded for cores, ram",
			nova + `{"forbidden": {"code": 403, "message": "Maximum number of ports exceeded"}}`:                                                                                                                                                                                                    "number of ports",
			"Error waiting for instance (i) to become ready: unexpected state 'ERROR', wanted target 'ACTIVE'. last error: No valid host was found. There are not enough hosts available.":                                                                                                          "not enough hosts",
			`Error creating openstack_networking_port_v2: Expected HTTP response code [201 202] when accessing [POST https://n/v2.0/ports], but got 409 instead: {"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}`:                       "['port']",
			`Error creating openstack_blockstorage_volume_v3: Expected HTTP response code [202] when accessing [POST https://c/volumes], but got 413 instead: {"overLimit": {"code": 413, "message": "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'."}}`: "quota 'volumes'",
		},
	}
	for name, texts := range cases {
		m := keptIn(t, name)
		for text, named := range texts {
			found := failure.Diagnostic{Severity: failure.SeverityError, Summary: text}
			class := failure.Classify([]failure.Diagnostic{found}, m.Final)
			if class != failure.Quota {
				t.Errorf("%s: %q has the class %s, want %s", name, text, class, failure.Quota)
			}
			failed := &failure.Error{Op: failure.OpApply, Class: class, Diagnostics: []failure.Diagnostic{found}}
			if !strings.Contains(failed.Error(), named) {
				t.Errorf("%s: the message %q does not have %q", name, failed.Error(), named)
			}
		}
	}
}

// TestThrottlingErrors has errors of requests beyond the limits of an API, as each provider writes them. They slow the
// runs of their credentials.
func TestThrottlingErrors(t *testing.T) {
	for name, texts := range map[string][]string{
		"aws": {
			"creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 503, RequestID: 59d8, api error RequestLimitExceeded: Request limit exceeded.",
			"reading EC2 Instance (i-1): operation error EC2: DescribeInstances, exceeded maximum number of attempts, 6, https response error StatusCode: 503, RequestID: 59d8, api error RequestLimitExceeded: Request limit exceeded. Account ID: 000000000000.",
			"creating EC2 Instance: RequestLimitExceeded: Request limit exceeded.\n\tstatus code: 503, request id: 59d8",
			"operation error STS: AssumeRole, https response error StatusCode: 400, RequestID: 59d8, api error Throttling: Rate exceeded",
			"operation error ELBv2: RegisterTargets, https response error StatusCode: 400, api error RequestThrottled: slow down",
			"operation error EC2: CreateTags, https response error StatusCode: 503, api error EC2ThrottledException: slow down",
		},
		"azure": {
			"creating Linux Virtual Machine (Subscription: \"s\"): performing CreateOrUpdate: unexpected status 429 (429 Too Many Requests) with error: OperationNotAllowed: The server rejected the request because too many requests have been received for this subscription.",
			"retrieving Network Interface: unexpected status 429 with error: SubscriptionRequestsThrottled: Number of requests for subscription 's' and operation 'GET' exceeded the backend storage limit. Please try again after '17' seconds.",
			`Code="ResourceCollectionRequestsThrottled" Message="Operation 'Microsoft.Network/networkInterfaces/read' was rejected"`,
			"deleting Linux Virtual Machine: performing Delete: unexpected status 429 (429 Too Many Requests) with error: TooManyRequests: The request is being throttled as the limit has been reached for operation type - PutVM. Retry-After: 33",
		},
		"gcp": {
			"Error creating instance: googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded",
			"Error when reading or editing Instance: googleapi: Error 403: Quota exceeded for quota group 'ReadGroup' and limit 'Read requests per 100 seconds' of service 'compute.googleapis.com' for consumer 'project_number:1'., rateLimitExceeded",
			"Error creating instance: googleapi: Error 429: Resource has been exhausted (e.g. check quota)., rateLimitExceeded",
			"googleapi: Error 403: User Rate Limit Exceeded, userRateLimitExceeded",
		},
		"openstack": {
			`Error creating OpenStack server: Expected HTTP response code [200 202] when accessing [POST https://n/servers], but got 413 instead: {"overLimit": {"code": 413, "message": "This request was rate-limited.", "retryAfter": "31"}}`,
			"Error creating OpenStack server: Too many requests: [POST https://n/servers], error message: slow down",
			"Unable to retrieve server: Expected HTTP response code [200] when accessing [GET https://n/servers/s], but got 429 instead: <html><title>429 Too Many Requests</title></html>",
		},
		"vsphere": {"POST https://v/rest/com/vmware/cis/session: 429 Too Many Requests"},
		"nutanix": {"error retrieving the virtual machine: status: 429 Too Many Requests, error-response: {}"},
	} {
		m := keptIn(t, name)
		for _, text := range texts {
			found := failure.Diagnostic{Severity: failure.SeverityError, Summary: text}
			if class := failure.Classify([]failure.Diagnostic{found}, m.Final); class != failure.Throttled {
				t.Errorf("%s: %q has the class %s, want %s", name, text, class, failure.Throttled)
			}
		}
	}
}
