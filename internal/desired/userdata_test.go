package desired

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/internal/bootstrap"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// Only what is made gets user data; what becomes of the Secret afterwards concerns no instance.
func TestOnlyACreateDependsOnUserData(t *testing.T) {
	machine, used := awsMachine(t), shipped(t, "aws")
	made := func(from account, f *lifecycle.Facts, operation runs.Operation) (*State, error) {
		r := &Reader{client: from, clock: clock.RealClock{}}
		return r.render(t.Context(), machine, f, used, operation)
	}
	first, err := made(account{}, &lifecycle.Facts{}, runs.Create)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		from                account
		failsCreate, fails  bool
		sameAttempt, lacked bool
	}{
		"the same":                     {from: account{}, sameAttempt: true},
		"other user data":              {from: account{userData: " "}},
		"more than the module takes":   {from: account{userData: strings.Repeat(" ", 1<<15)}, failsCreate: true, lacked: true},
		"what is no text":              {from: account{userData: "\xff"}, failsCreate: true, lacked: true},
		"a Secret that is gone":        {from: account{refuse: apierrors.NewNotFound(corev1.Resource("secrets"), "worker-user-data")}, failsCreate: true, lacked: true},
		"a Secret that cannot be read": {from: account{refuse: errors.New("try again")}, failsCreate: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			created, err := made(tc.from, &lifecycle.Facts{}, runs.Create)
			if (err != nil) != tc.failsCreate {
				t.Errorf("create: %v, want an error: %t", err, tc.failsCreate)
			}
			if err == nil && (created.Attempt(runs.Create) == first.Attempt(runs.Create)) != tc.sameAttempt {
				t.Errorf("a create is the same attempt as the first: %t, want %t", !tc.sameAttempt, tc.sameAttempt)
			}
			updated, err := made(tc.from, &lifecycle.Facts{}, runs.Update)
			if (err != nil) != tc.fails {
				t.Fatalf("update: %v, want an error: %t", err, tc.fails)
			}
			if err != nil {
				return
			}
			if updated.Fingerprint != first.Fingerprint {
				t.Error("an instance that exists is compared with the user data")
			}
			if lacked := strings.Contains(string(updated.Inputs.Variables), `"user_data":""`); lacked != tc.lacked {
				t.Errorf("an update has no user data: %t, want %t", lacked, tc.lacked)
			}
		})
	}
}

// The token is the same in every retry, compared with no instance, and masked wherever it appears.
func TestUserDataGetsTheBootstrapTokenOfItsMachine(t *testing.T) {
	machine, used := awsMachine(t), shipped(t, "aws")
	asks := account{userData: " <<MACHINE_NAME>> <<BOOTSTRAP_TOKEN>>", annotations: map[string]string{bootstrap.Annotation: "true"}}
	own := installation.Generate()
	made := func(groups []string, operation runs.Operation) (*State, error) {
		r := &Reader{client: asks, clock: clock.RealClock{}, bootstrap: bootstrap.New(bootstrap.Options{Installation: own, Groups: groups})}
		return r.render(t.Context(), machine, &lifecycle.Facts{}, used, operation)
	}
	plain, err := (&Reader{client: asks, clock: clock.RealClock{}}).render(t.Context(), machine, &lifecycle.Facts{}, used, runs.Create)
	if err != nil {
		t.Fatal(err)
	}
	groups := []string{"system:bootstrappers:test"}
	first, err := made(groups, runs.Create)
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(` ` + machine.Name + ` ([a-z0-9]{6}\.([a-z0-9]{16}))"`).FindSubmatch(first.Inputs.Variables)
	if token == nil || !first.Bootstraps || plain.Bootstraps {
		t.Fatalf("the variables %s have no token", first.Inputs.Variables)
	}
	for _, secret := range token[1:] {
		if !slices.Contains(first.Inputs.Sensitive, string(secret)) {
			t.Errorf("%s is not masked", secret)
		}
	}
	again, err := made(groups, runs.Create)
	if err != nil || again.Attempt(runs.Create) != first.Attempt(runs.Create) {
		t.Errorf("a retry is another attempt, %v", err)
	}
	updated, err := made(groups, runs.Update)
	if err != nil || updated.Fingerprint != plain.Fingerprint || !slices.Equal(updated.Inputs.Variables, first.Inputs.Variables) {
		t.Errorf("an instance that exists is compared with the token, %v", err)
	}
	_, err = made(nil, runs.Create)
	if _, known := errors.AsType[*SecretError](err); !known || !strings.Contains(err.Error(), "--bootstrap-token-group") {
		t.Errorf("a create without tokens: %v, want an error that names the flag", err)
	}
	if _, err := made(nil, runs.Update); err != nil {
		t.Errorf("an instance that exists needs no token: %v", err)
	}
}

// A record of an earlier version has a fingerprint with the user data. It counts as long as that is
// the same, and is renewed.
func TestFingerprintsWithUserDataCountUntilTheyAreRenewed(t *testing.T) {
	machine, used := awsMachine(t), shipped(t, "aws")
	rendered := func(userData, recorded string) *State {
		t.Helper()
		f := &lifecycle.Facts{}
		f.Record.Fingerprint = recorded
		s, err := (&Reader{client: account{userData: userData}, clock: clock.RealClock{}}).render(t.Context(), machine, f, used, runs.Update)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	now := rendered("", "")
	keys, err := render.CredentialKeys(machine, used)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	if err := (account{}).Get(t.Context(), key("aws-cloud-credentials"), secret); err != nil {
		t.Fatal(err)
	}
	earlier := fingerprintOf(render.HashOf(now.Inputs.Variables, versionOf(keys, secret)), used.Digest())
	if got := rendered("", earlier); got.Fingerprint != earlier || got.Renewed != now.Fingerprint {
		t.Errorf("of the same user data: %s, to be renewed as %q; want the recorded one, to be renewed", got.Fingerprint, got.Renewed)
	}
	if got := rendered(" ", earlier); got.Fingerprint != now.Fingerprint || got.Renewed != "" {
		t.Errorf("of other user data: %s, to be renewed as %q; want the one without user data", got.Fingerprint, got.Renewed)
	}
	if got := rendered(" ", now.Fingerprint); got.Fingerprint != now.Fingerprint || got.Renewed != "" {
		t.Errorf("once renewed: %s, to be renewed as %q", got.Fingerprint, got.Renewed)
	}
}

// What is stored with a state may be of anyone who may write it: it opens no Secret that Machines
// may not use.
func TestWhatWasAppliedGetsUserDataThatMachinesMayUse(t *testing.T) {
	machine, used := awsMachine(t), shipped(t, "aws")
	catalog, err := module.NewCatalog(used)
	if err != nil {
		t.Fatal(err)
	}
	inputs := func(credentials, userData string) *lifecycle.Facts {
		t.Helper()
		s := &State{
			CredentialsSecret: credentials, userDataSecret: userData, keys: used.Spec().Credentials.Keys,
			Inputs: &render.Inputs{Variables: []byte(`{"machine":{},"provider_spec":{},"user_data":"first"}`)},
		}
		packed, err := s.PackInputs()
		if err != nil {
			t.Fatal(err)
		}
		return &lifecycle.Facts{Inputs: packed}
	}
	for name, tc := range map[string]struct {
		policy *references.Policy
		facts  *lifecycle.Facts
		from   account
		want   string
		fails  bool
	}{
		"what may be used":          {facts: inputs("c", "worker-user-data"), want: `"user_data":"{} "`},
		"what may not":              {policy: references.New(references.Labelled, "c"), facts: inputs("c", "other"), want: `"user_data":""`},
		"what is gone":              {facts: inputs("c", "gone-user-data"), from: account{refuse: errors.New("gone")}, want: `"user_data":""`},
		"no user data":              {facts: inputs("c", ""), want: `"user_data":""`},
		"nothing where none stored": {facts: &lifecycle.Facts{}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.from.userData = " "
			r := &Reader{client: tc.from, catalog: catalog, clock: clock.RealClock{}, references: tc.policy}
			got, err := r.Applied(t.Context(), machine, tc.facts)
			if (err != nil) != tc.fails {
				t.Fatalf("got %v, want an error: %t", err, tc.fails)
			}
			if err != nil {
				return
			}
			if !strings.Contains(string(got.Inputs.Variables), tc.want) {
				t.Errorf("the variables are %s, want %s", got.Inputs.Variables, tc.want)
			}
			if tc.want == `"user_data":"{} "` && !slices.Contains(got.Inputs.Sensitive, "{} ") {
				t.Errorf("sensitive are %q, want the user data among them", got.Inputs.Sensitive)
			}
		})
	}
}
