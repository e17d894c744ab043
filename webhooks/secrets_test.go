package webhooks

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
)

// reader reads Secrets from memory; where failure is set, it returns that.
type reader struct {
	client.Reader
	exist    map[types.NamespacedName]bool
	failure  error
	deadline bool
}

func (r *reader) Get(ctx context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	_, r.deadline = ctx.Deadline()
	if r.failure != nil || r.exist[key] {
		return r.failure
	}
	return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
}

func TestMissingSecrets(t *testing.T) {
	machine := machineWith(withValue(kubemarkSpec(`,"userDataSecret":{"name":"u"}`)))
	tests := map[string]struct {
		exist   []string
		failure error
		want    []string
	}{
		"both are there": {exist: []string{"c", "u"}},
		"none is there": {want: []string{
			`providerSpec.credentialsSecret: Invalid value: "c": not found. Expected CredentialsSecret to exist`,
			`providerSpec.userDataSecret: Invalid value: "u": not found. Expected UserDataSecret to exist`,
		}},
		"nobody knows": {failure: errors.New("no route to the API server")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from := &reader{exist: map[types.NamespacedName]bool{}, failure: tc.failure}
			for _, secret := range tc.exist {
				from.exist[types.NamespacedName{Namespace: machine.Namespace, Name: secret}] = true
			}
			got, err := (&machineValidator{rules: testRules(t, ""), secrets: secretChecks{reader: from}}).ValidateCreate(t.Context(), machine)
			if diff := cmp.Diff(tc.want, []string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if !from.deadline {
				t.Error("want a response that does not wait for ever")
			}
		})
	}
}

func TestSecretsAreLookedForWhereTheyAreNamedAnew(t *testing.T) {
	from := &reader{}
	validator := &machineSetValidator{rules: testRules(t, ""), secrets: secretChecks{reader: from}}
	other := setWith(withTemplate(kubemarkSpec(`,"zone":"z"`)))
	if got, err := validator.ValidateUpdate(t.Context(), setWith(), other); err != nil || len(got) != 1 {
		t.Errorf("want one warning about a template that changes, got %v, %v", got, err)
	}
	if got, err := validator.ValidateUpdate(t.Context(), other, other); err != nil || len(got) != 0 {
		t.Errorf("want silence about a template that stays, got %v, %v", got, err)
	}
}

func TestAFormerProviderSpecIsOneThatTheMachineHad(t *testing.T) {
	noted := func(content string) *machinev1beta1.Machine {
		return machineWith(withValue(kubemarkSpec(`,"zone":"z"`)), func(m *machinev1beta1.Machine) {
			m.Annotations = map[string]string{v1beta1.FormerSpecAnnotation: content}
		})
	}
	before := machineWith()
	own := string(before.Spec.ProviderSpec.Value.Raw)
	theirs := strings.Replace(own, `"name":"c"`, `"name":"theirs"`, 1)
	validator := &machineValidator{rules: testRules(t, "")}
	validator.secrets.reader = &reader{}
	for name, tc := range map[string]struct {
		before *machinev1beta1.Machine
		former string
		want   bool
	}{
		"what it has":                     {before, own, true},
		"what it has, in another order":   {before, strings.Replace(own, `{"name":"c"}`, `{ "name": "c" }`, 1), true},
		"another Secret":                  {before, theirs, false},
		"another Secret, noted before":    {noted(theirs), theirs, true},
		"a new Machine's":                 {nil, own, false},
		"no JSON":                         {before, "{", false},
		"another one than what was noted": {noted(own), theirs, false},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if tc.before == nil {
				_, err = validator.ValidateCreate(t.Context(), noted(tc.former))
			} else {
				_, err = validator.ValidateUpdate(t.Context(), tc.before, noted(tc.former))
			}
			if (err == nil) != tc.want {
				t.Errorf("got %v, want it accepted: %t", err, tc.want)
			}
		})
	}
}

func TestASecretThatCannotBeReadIsLeftToTheRuns(t *testing.T) {
	policy := references.New(references.Labelled, "c")
	for name, tc := range map[string]struct {
		userData string
		failure  error
		refused  bool
	}{
		"without a label":        {"u", nil, true},
		"nobody knows of one":    {"u", errors.New("no route to the API server"), false},
		"the operator's own":     {"tfstate-default-m1", errors.New("no route to the API server"), true},
		"one that OpenShift has": {"worker-user-data", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			machine := machineWith(withValue(kubemarkSpec(`,"userDataSecret":{"name":"` + tc.userData + `"}`)))
			from := &reader{failure: tc.failure, exist: map[types.NamespacedName]bool{
				{Namespace: machine.Namespace, Name: tc.userData}: true, {Namespace: machine.Namespace, Name: "c"}: true,
			}}
			_, err := (&machineValidator{rules: testRules(t, ""), secrets: secretChecks{reader: from, references: policy}}).ValidateCreate(t.Context(), machine)
			if (err != nil) != tc.refused {
				t.Errorf("refused: %v", err)
			}
		})
	}
}
