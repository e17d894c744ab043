package rights

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

var secret = types.NamespacedName{Namespace: "openshift-machine-api", Name: "cloud"}

// request returns a CredentialsRequest for the Secret.
func request(t *testing.T, providerSpec string) unstructured.Unstructured {
	t.Helper()
	one := unstructured.Unstructured{}
	text := "metadata: {name: one}\nspec: {secretRef: {namespace: openshift-machine-api, name: cloud}, providerSpec: " + providerSpec + "}"
	if err := yaml.Unmarshal([]byte(text), &one.Object); err != nil {
		t.Fatal(err)
	}
	return one
}

func TestMissing(t *testing.T) {
	aws := v1alpha1.ModuleRights{Provider: "AWS", Actions: []string{"ec2:RunInstances", "kms:Decrypt"}}
	azure := v1alpha1.ModuleRights{Provider: "Azure", Actions: []string{"Microsoft.Compute/disks/write"}}
	gcp := v1alpha1.ModuleRights{Provider: "GCP", Actions: []string{"compute.instances.create"}}
	for name, tc := range map[string]struct {
		needed   v1alpha1.ModuleRights
		provider string
		want     string
	}{
		"all is granted":                   {aws, `{kind: AWSProviderSpec, statementEntries: [{effect: Allow, action: ["ec2:RunInstances", "kms:Decrypt"], resource: "*"}]}`, ""},
		"by wildcards, in another case":    {aws, `{kind: AWSProviderSpec, statementEntries: [{effect: Allow, action: ["EC2:Run*"], resource: "*"}, {effect: Allow, action: ["kms:?ecrypt"], resource: "*"}]}`, ""},
		"one is missing":                   {aws, `{kind: AWSProviderSpec, statementEntries: [{effect: Allow, action: ["ec2:*"], resource: "*"}]}`, "lacks kms:Decrypt;"},
		"one is denied":                    {aws, `{kind: AWSProviderSpec, statementEntries: [{effect: Allow, action: ["*"], resource: "*"}, {effect: Deny, action: ["kms:*"], resource: "*"}]}`, "lacks kms:Decrypt;"},
		"a denial of some is not certain":  {aws, `{kind: AWSProviderSpec, statementEntries: [{effect: Allow, action: ["*"], resource: "*"}, {effect: Deny, action: ["kms:*"], resource: "arn:x"}]}`, ""},
		"a request of another cloud":       {aws, `{kind: GCPProviderSpec}`, ""},
		"a star matches over slashes":      {azure, `{kind: AzureProviderSpec, permissions: ["Microsoft.Compute/*"]}`, ""},
		"a permission of Azure is missing": {azure, `{kind: AzureProviderSpec, permissions: ["Microsoft.Compute/disks/read"]}`, "lacks Microsoft.Compute/disks/write;"},
		"roles are not expanded":           {azure, `{kind: AzureProviderSpec, roleBindings: [{role: Contributor}]}`, ""},
		"predefined roles are not either":  {gcp, `{kind: GCPProviderSpec, permissions: [], predefinedRoles: [roles/compute.admin]}`, ""},
		"a permission of GCP is missing":   {gcp, `{kind: GCPProviderSpec, permissions: [compute.instances.get]}`, "the CredentialsRequest one, which grants what the Secret cloud holds, lacks compute.instances.create;"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(missing([]v1alpha1.ModuleRights{tc.needed}, []unstructured.Unstructured{request(t, tc.provider)}, secret), "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if other := missing([]v1alpha1.ModuleRights{tc.needed}, []unstructured.Unstructured{request(t, tc.provider)}, types.NamespacedName{Name: "other"}); other != nil {
				t.Errorf("of another Secret: %q", other)
			}
		})
	}
}

// lister lists what it has, and counts.
type lister struct {
	client.Reader
	items []unstructured.Unstructured
	err   error
	lists int
}

func (l *lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	list.(*unstructured.UnstructuredList).Items = l.items
	return l.err
}

func TestReaderReadsOnceAMinute(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Now())
	source := &lister{items: []unstructured.Unstructured{request(t, `{kind: GCPProviderSpec}`)}}
	reader := New(source, now)
	needed := []v1alpha1.ModuleRights{{Provider: "GCP", Actions: []string{"compute.instances.create"}}}
	first := reader.Missing(t.Context(), needed, secret)
	if len(first) != 1 || len(reader.Missing(t.Context(), nil, secret)) != 0 || len((*Reader)(nil).Missing(t.Context(), needed, secret)) != 0 {
		t.Errorf("got %q", first)
	}
	source.err = errors.New("gone")
	if diff := cmp.Diff(first, reader.Missing(t.Context(), needed, secret)); diff != "" || source.lists != 1 {
		t.Errorf("it lists %d times, and returns (-want +got):\n%s", source.lists, diff)
	}
	now.SetTime(now.Now().Add(maxAge))
	if diff := cmp.Diff(first, reader.Missing(t.Context(), needed, secret)); diff != "" || source.lists != 2 {
		t.Errorf("while nothing can be read it lists %d times, and returns (-want +got):\n%s", source.lists, diff)
	}
}

// TestEntriesOfOneCloudAreOneText has entries that hold under different conditions.
func TestEntriesOfOneCloudAreOneText(t *testing.T) {
	needed := []v1alpha1.ModuleRights{
		{Provider: "GCP", Actions: []string{"compute.instances.create", "compute.disks.get"}},
		{Provider: "GCP", Actions: []string{"compute.disks.get", "compute.disks.use"}, When: "x"},
	}
	got := missing(needed, []unstructured.Unstructured{request(t, `{kind: GCPProviderSpec, permissions: [compute.instances.create]}`)}, secret)
	if len(got) != 1 || !strings.Contains(got[0], "lacks compute.disks.get, compute.disks.use;") {
		t.Errorf("got %q", got)
	}
}
