package desired

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// account has one Secret, whatever it is asked for, and one CredentialsRequest for it.
type account struct {
	client.Reader
	granted  string
	userData string
	// key is added to the secret key. refuse, if set, is what a read of the user data returns.
	key    string
	refuse error
	// annotations are those of every Secret.
	annotations map[string]string
}

func (a account) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if a.refuse != nil && strings.HasSuffix(key.Name, "-user-data") {
		return a.refuse
	}
	secret := object.(*corev1.Secret)
	secret.Namespace, secret.Name, secret.Annotations = key.Namespace, key.Name, a.annotations
	secret.Data = map[string][]byte{"aws_access_key_id": []byte("AKIAIOSFODNN7EXAMPLE"), "aws_secret_access_key": []byte("s" + a.key), "userData": []byte("{}" + a.userData)}
	return nil
}

func (a account) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	request := unstructured.Unstructured{}
	err := yaml.Unmarshal([]byte(a.granted), &request.Object)
	list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{request}
	return err
}

// TestRightsThatAMachineLacksAreAmongItsWarnings has two Machines, one of which asks for tags. Its
// warnings become events.
func TestRightsThatAMachineLacksAreAmongItsWarnings(t *testing.T) {
	machine := awsMachine(t)
	asked := machine.Spec.ProviderSpec.Value.Raw
	of := account{granted: "metadata: {name: one}\nspec:\n  secretRef: {namespace: openshift-machine-api, name: aws-cloud-credentials}\n" +
		"  providerSpec: {kind: AWSProviderSpec, statementEntries: [{effect: Allow, resource: '*', action: ['ec2:*', 'iam:*']}, {effect: Deny, resource: '*', action: ['ec2:DeleteTags']}]}"}
	reader := &Reader{client: of, rights: rights.New(of, nil), clock: clock.RealClock{}}
	for name, tc := range map[string]struct {
		tags []any
		want string
	}{
		"with tags":    {[]any{map[string]any{"name": "team", "value": "a"}}, "lacks ec2:DeleteTags; add it there, or to the role of the credentials"},
		"without tags": {[]any{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fields := map[string]any{}
			if err := json.Unmarshal(asked, &fields); err != nil {
				t.Fatal(err)
			}
			fields["tags"] = tc.tags
			machine.Spec.ProviderSpec.Value = builder.ProviderSpec(fields)
			state, err := reader.render(t.Context(), machine, &lifecycle.Facts{}, shipped(t, "aws"), runs.Create)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, warning := range state.Inputs.Warnings {
				if strings.Contains(warning.Message, "CredentialsRequest") && warning.Advice {
					got = append(got, warning.Message)
				}
			}
			if text := strings.Join(got, "\n"); (text == "") != (tc.want == "") || !strings.Contains(text, tc.want) {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}
