package failure

import (
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/engine/redact"
)

func TestClassifyTexts(t *testing.T) {
	cases := map[Class][]string{
		Quota: {
			"creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: 1, api error VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows",
			"creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 500, api error InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity in the Availability Zone you requested",
			"api error InstanceLimitExceeded: You have requested more instances (2) than your current instance limit",
			"api error InsufficientFreeAddressesInSubnet: The specified subnet does not have enough free addresses",
			"creating Linux Virtual Machine: unexpected status 409 (409 Conflict) with error: OperationNotAllowed: Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota",
			`Code="QuotaExceeded" Message="Operation could not be completed as it results in exceeding quota limit of Core"`,
			"unexpected status 409 with error: SkuNotAvailable: The requested VM size for resource is currently not available in location",
			"polling failed: ZonalAllocationFailed: Allocation failed. We do not have sufficient capacity for the requested VM size in this zone",
			"Error waiting for instance to create: The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill the request. ZONE_RESOURCE_POOL_EXHAUSTED",
			"Error creating instance: googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0 in region us-central1., quotaExceeded",
			"Error creating OpenStack server: Forbidden: Quota exceeded for cores: Requested 8, but already used 20 of 20 cores",
			"Expected HTTP response code [201 202] but got 403 instead: {\"forbidden\": {\"code\": 403, \"message\": \"Quota exceeded for instances: Requested 1, but already used 10 of 10 instances\"}}",
			"Error waiting for instance to become ready: No valid host was found. There are not enough hosts available.",
			`pods "x" is forbidden: exceeded quota: compute, requested: cpu=4, used: cpu=8, limited: cpu=8`,
			"error cloning virtual machine: Insufficient disk space on datastore 'ds1'.",
			"virError(Code=38): cannot extend file '/images/vm.qcow2': No space left on device",
			"Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional details - Deployment Model: Resource Manager",
			"unexpected status 400 (400 Bad Request) with error: SubnetIsFull: Subnet workers with address prefix 10.0.0.0/24 does not have enough capacity for 1 IP addresses.",
			"api error InsufficientCapacityOnHost: There is not enough capacity on the Dedicated Host to launch or start the instance",
			"api error MaxSpotInstanceCountExceeded: Max spot instance count exceeded",
			"googleapi: Error 503: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS, resource type: compute",
			"Error waiting for instance to create: GCE_STOCKOUT",
			"Fault: Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance 1.",
			"Expected HTTP response code [201] but got 409 instead: {\"NeutronError\": {\"type\": \"OverQuota\", \"message\": \"Quota limit reached\"}}",
			"Build of instance 1 was re-scheduled: Insufficient compute resources: Free memory 1024.00 MB < requested 4096 MB.",
			"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota",
			"error cloning virtual machine: ServerFaultCode: InsufficientMemoryResourcesFault",
			"error powering on virtual machine: The host does not have sufficient memory resources to satisfy the reservation.",
			"500-InternalError, Out of host capacity.",
			"instance failed to start: cannot_start_capacity: The instance could not be started because there is not enough capacity",
			"server limit reached (resource_limit_exceeded)",
			"error during placement (resource_unavailable)",
			"creating this/these droplet(s) will exceed your droplet limit",
			"Error waiting for instance to create: A g2-standard-4 VM instance with 1 nvidia-l4 accelerator(s) is currently unavailable in the us-central1-a zone.",
			"Error waiting for instance to create: Quota 'CPUS-ALL-REGIONS-per-project' exceeded.  Limit: 32.0 globally.",
			`Request forbidden: [POST https://n/servers], error message: {"forbidden": {"code": 403, "message": "Maximum number of ports exceeded"}}`,
			`got 413 instead: {"overLimit": {"code": 413, "message": "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.", "retryAfter": "0"}}`,
			`got 413 instead: {"overLimit": {"code": 413, "message": "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 100G, quota is 1000G and 950G has been consumed."}}`,
		},
		Throttled: {
			"api error RequestLimitExceeded: Request limit exceeded.",
			"https response error StatusCode: 503, RequestID: 1, api error Throttling: Rate exceeded",
			"unexpected status 429 (429 Too Many Requests) with error: OperationNotAllowed: The server rejected the request because too many requests have been received for this subscription.",
			"googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded",
			"googleapi: Error 403: Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service 'compute.googleapis.com'",
			"googleapi: Error 403: Operation rate exceeded for resource. Too frequent operations from the source resource., RESOURCE_OPERATION_RATE_EXCEEDED",
			"Expected HTTP response code [201] but got 413 instead: {\"overLimit\": {\"code\": 413, \"message\": \"This request was rate-limited.\"}}",
			"the server has received too many requests and has asked us to try again later: Too Many Requests",
		},
		Credentials: {
			"api error UnauthorizedOperation: You are not authorized to perform this operation. User: arn is not authorized to perform: ec2:RunInstances",
			"validating provider credentials: retrieving caller identity from STS: operation error STS: GetCallerIdentity, https response error StatusCode: 403, api error ExpiredToken: The security token included in the request is expired",
			"api error InvalidClientTokenId: The security token included in the request is invalid.",
			"No valid credential sources found\nPlease see the provider documentation",
			"building account: could not acquire access token to parse claims: clientCredentialsToken: received HTTP status 401 with response: AADSTS7000215: Invalid client secret provided",
			"unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: The client does not have authorization to perform action",
			"googleapi: Error 403: Required 'compute.instances.create' permission for 'projects/p', forbidden",
			`oauth2: cannot fetch token: 400 Bad Request Response: {"error":"invalid_grant"}`,
			"error setting up new vSphere SOAP client: ServerFaultCode: Cannot complete login due to an incorrect user name or password.",
			"Authentication failed: Expected HTTP response code [201] but got 401 instead",
			`configmaps "x" is forbidden: User "y" cannot create resource "configmaps"`,
			"Unauthorized",
			"failed to create kubernetes rest client for import of resource: v1 Node the server has asked for the client to provide credentials",
		},
		Transient: {
			`Get "https://10.0.0.1:6443/api": dial tcp 10.0.0.1:6443: connect: connection refused`,
			"read tcp 10.0.0.2:4711->10.0.0.1:443: read: connection reset by peer",
			`Post "https://ec2.eu-west-1.amazonaws.com/": net/http: TLS handshake timeout`,
			`Get "https://management.azure.com/": context deadline exceeded`,
			"googleapi: Error 503: The service is currently unavailable., backendError",
			"unexpected EOF",
			"failed to save snapshot: write runs/r/state.json.tmp: no space left on device",
			"Failed to install provider\nwrite terraform-provider-aws_v6: copy_file_range: no space left on device",
			"symlink /mirror/x /runs/x: no space left on device",
			"open /runs/r/main.tf: disk quota exceeded",
			"dial tcp: lookup vcenter.example.com: no such host",
			"502 Bad Gateway",
			"timeout while waiting for state to become 'ACTIVE' (last state: 'BUILD', timeout: 30m0s)",
			"Error refreshing state: HTTP remote state endpoint 500",
			"Unrecognized remote plugin message: \nFailed to read any lines from plugin's stdout\nThis usually means\n  the plugin was not compiled for this architecture",
			"Could not load plugin\nfork/exec .terraform/providers/x: permission denied",
			"Failed to load plugin schemas\nError while loading schemas for plugin components: timeout while waiting for plugin to start.",
			"Plugin did not respond\nThe plugin encountered an error, and failed to respond to the plugin6.(*GRPCProvider).PlanResourceChange call. The plugin logs may contain more details.",
			"Request cancelled\nThe plugin.(*GRPCProvider).ReadResource request was cancelled.",
			"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation]",
			"error: could not read plugin [/home/plugins/resource-x/pulumi-resource-x]: EOF",
			"Detected that /plugins/pulumi-resource-x exited prematurely.",
			"starting the provider: signal: killed",
			"creating the server: giving up: maximum number of retries reached",
			"waiting for the server: maximum number of attempts reached",
		},
		Killed: {
			"Plugin did not respond\nThe plugin encountered an error, and failed to respond to the plugin6.(*GRPCProvider).ApplyResourceChange call. The plugin logs may contain more details.",
			"Request cancelled\nThe plugin.(*GRPCProvider).ApplyResourceChange request was cancelled.",
			"Plugin error\nThe plugin returned an unexpected error from plugin.(*GRPCProvider).ApplyResourceChange: rpc error: code = Internal desc = grpc: received message larger than max",
		},
		Locked: {
			"Error acquiring the state lock\nError message: HTTP remote state already locked: ID=1",
		},
		StateNotSaved: {
			"Failed to save state\nError saving state: HTTP error: 503",
			"Failed to persist state to backend\nThe error shown above has prevented OpenTofu from writing the updated state",
		},
		ImportMissing: {
			"Cannot import non-existent remote object\nWhile attempting to import an existing object to \"aws_instance.this\", the provider detected that no object exists with the given id or identity.",
			"Import returned null resource\nWhile attempting to import with i-0, the provider returned an instance with no state.",
		},
		Unknown: { // what only a provider says is for its module to list
			"api error InvalidAMIID.NotFound: The image id '[ami-0]' does not exist",
			"api error InvalidParameterValue: Invalid value 'm5.huge' for InstanceType.",
			"unexpected status 404 with error: PlatformImageNotFound: The platform image 'a:b:c:d' is not available.",
			"googleapi: Error 400: Invalid value for field 'resource.machineType': 'huge'., invalid",
			"virtual machine 'template' not found",
			"Your query returned no results. Please change your search criteria and try again.",
			`expected vm.0.size to be one of ["small" "large"], got huge`,
			"Something else went wrong",
			"the geofence is broken",
			"a theory about limits",
		},
	}
	for want, texts := range cases {
		for _, text := range texts {
			t.Run(redact.Shorten(string(want)+" "+text, 80), func(t *testing.T) {
				if got := Classify([]Diagnostic{{Severity: SeverityError, Summary: "Error", Detail: text}}, nil); got != want {
					t.Errorf("Classify(%q) = %s, want %s", text, got, want)
				}
			})
		}
	}
}

func TestClassifySeveral(t *testing.T) {
	failed := func(texts ...string) []Diagnostic {
		var all []Diagnostic
		for _, text := range texts {
			all = append(all, Diagnostic{Severity: SeverityError, Summary: text})
		}
		return all
	}
	cases := map[string]struct {
		diagnostics []Diagnostic
		want        Class
	}{
		"no diagnostic": {
			want: Unknown,
		},
		"warnings do not count": {
			diagnostics: []Diagnostic{{Severity: SeverityWarning, Summary: "connection refused"}},
			want:        Unknown,
		},
		"all errors are about variables": {
			diagnostics: failed("Invalid value for variable", "No value for required variable"),
			want:        InvalidConfiguration,
		},
		"an error of configuration that follows another is not final": {
			diagnostics: failed("Invalid value for variable", "connection refused"),
			want:        Transient,
		},
		"an error of configuration beside one that nobody knows is not final": {
			diagnostics: failed("Invalid value for variable", "Something else went wrong"),
			want:        Unknown,
		},
		"a provider that dies while its schema is read leaves its resources without types": {
			diagnostics: []Diagnostic{
				{Severity: SeverityError, Summary: "Failed provider schema lookup", Detail: `Couldn't load schema for managed resource type "x_vm": failed to instantiate provider: Unrecognized remote plugin message:`},
				{Severity: SeverityError, Summary: "Invalid resource type", Detail: `The managed resource type "x_vm" is not supported by provider "x".`},
			},
			want: Transient,
		},
		"a resource without a type is nobody's configuration": {
			diagnostics: failed("Invalid resource type"),
			want:        Unknown,
		},
		"two matches of a lookup": {
			diagnostics: failed("Duplicate import configuration for \"x_vm.this\""),
			want:        Unknown,
		},
		"quota before transient": {
			diagnostics: failed("connection refused", "VcpuLimitExceeded"),
			want:        Quota,
		},
		"what is listed as final, all of it": {
			diagnostics: failed("InvalidImage: a", "InvalidImage: b"),
			want:        InvalidConfiguration,
		},
		"what is listed as final beside an unknown error": {
			diagnostics: failed("InvalidImage: a", "Something else went wrong"),
			want:        Unknown,
		},
		"what is listed as final and known to be retried": {
			diagnostics: failed("InvalidImage: connection refused"),
			want:        Transient,
		},
		"a state that was not saved is what counts most": {
			diagnostics: failed("VcpuLimitExceeded", "Failed to save state"),
			want:        StateNotSaved,
		},
	}
	listed := func(text string) bool { return strings.HasPrefix(text, "InvalidImage") }
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Classify(tc.diagnostics, listed); got != tc.want {
				t.Errorf("Classify = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOnlyTheEnginesOwnValidationIsProof(t *testing.T) {
	inResource := Diagnostic{Context: `resource "x_vm" "this"`, File: "main.tf", Line: 7}
	with := func(summary, snippet string, values ...string) Diagnostic {
		d := inResource
		d.Summary, d.Snippet, d.Values = summary, snippet, values
		return d
	}
	cases := map[string]struct {
		diagnostic Diagnostic
		want       Class
	}{
		"a validation of a variable":           {Diagnostic{Summary: "Invalid value for variable", Detail: "The size must not be empty."}, InvalidConfiguration},
		"a variable of the wrong type":         {Diagnostic{Summary: "Invalid value for input variable"}, InvalidConfiguration},
		"its words in a provider's error":      {Diagnostic{Summary: "creating the server: Invalid value for variable"}, Unknown},
		"a precondition of the instance":       {with("Resource precondition failed", "condition = false"), InvalidConfiguration},
		"a precondition of a data source":      {Diagnostic{Summary: "Resource precondition failed", Context: `data "x_image" "found"`}, Unknown},
		"a postcondition":                      {with("Resource postcondition failed", "condition = self.ready"), Unknown},
		"an expression over variables":         {with("Invalid index", "zone = var.provider_spec.zones[0]", `var.provider_spec.zones is empty list of string`), InvalidConfiguration},
		"an expression over a data source":     {with("Invalid index", "image = data.x_image.found.ids[0]"), Unknown},
		"an expression over a resource":        {with("Invalid index", "address = x_vm.this.addresses[0]", "x_vm.this.addresses is empty list of string"), Unknown},
		"an expression over a local":           {with("Unsupported attribute", "image = local.image.id"), Unknown},
		"a function of a provider":             {with("Error in function call", "id = provider::x::parse(var.provider_spec.id)"), Unknown},
		"an expression's words, without place": {Diagnostic{Summary: "Unsupported argument"}, Unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.diagnostic.Severity = SeverityError
			if got := Classify([]Diagnostic{tc.diagnostic}, nil); got != tc.want {
				t.Errorf("Classify = %s, want %s", got, tc.want)
			}
		})
	}
}
