package webhooks

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
)

// requests lists one CredentialsRequest.
type requests struct {
	client.Reader
	one string
}

func (r requests) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	request := unstructured.Unstructured{}
	list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{request}
	return yaml.Unmarshal([]byte(r.one), &list.(*unstructured.UnstructuredList).Items[0].Object)
}

// granting returns a Reader of a CredentialsRequest that grants AWS actions to a Secret in the
// namespace of a Machine.
func granting(namespace string, actions ...string) *rights.Reader {
	return rights.New(requests{one: "metadata: {name: one}\nspec:\n  secretRef: {namespace: " + namespace + ", name: aws-cloud-credentials}\n" +
		"  providerSpec: {kind: AWSProviderSpec, statementEntries: [{effect: Allow, resource: '*', action: ['" + strings.Join(actions, "', '") + "']}]}"}, nil)
}

func TestMissingRightsAreWarnedOfWhereTheyAreNeeded(t *testing.T) {
	tagged := machineWith(withValue(awsExample(t, `{"tags":[{"name":"team","value":"a"}]}`)))
	plain := machineWith(withValue(awsExample(t, `{"tags":null}`)))
	granted := granting(tagged.Namespace, "ec2:DescribeI*", "ec2:DescribeS*", "ec2:DescribeV*", "ec2:DescribeD*", "ec2:DescribeR*", "ec2:DescribeT*",
		"ec2:ModifyNetworkInterfaceAttribute", "ec2:CreateTags", "ec2:RunInstances", "ec2:TerminateInstances", "iam:*")
	validator := &machineValidator{rules: newRules(Options{Catalog: catalogOf(t, "aws"), ClusterID: "demo"}), secrets: secretChecks{reader: &reader{}, rights: granted}}
	mentioned := func(warnings admission.Warnings, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(warnings, func(text string) bool { return strings.Contains(text, "CredentialsRequest") })
		if at < 0 {
			return ""
		}
		return warnings[at]
	}
	const want = "providerSpec.credentialsSecret: the CredentialsRequest one, which grants what the Secret aws-cloud-credentials holds, lacks ec2:DeleteTags; "
	if got := mentioned(validator.ValidateCreate(t.Context(), tagged)); !strings.HasPrefix(got, want) {
		t.Errorf("with tags it warns %q, want %q", got, want)
	}
	if got := mentioned(validator.ValidateCreate(t.Context(), plain)); got != "" {
		t.Errorf("without tags it warns %q", got)
	}
	if got := mentioned(validator.ValidateUpdate(t.Context(), plain, tagged)); !strings.HasPrefix(got, want) {
		t.Errorf("where tags are added it warns %q", got)
	}
	if got := mentioned(validator.ValidateUpdate(t.Context(), tagged, tagged)); got != "" {
		t.Errorf("where nothing changes it warns %q", got)
	}
}
