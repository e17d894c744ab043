package references

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secret returns a Secret with the value of the label; without the label where that is "-".
func secret(name, value string, mods ...func(*corev1.Secret)) *corev1.Secret {
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeOpaque}
	if value != "-" {
		made.Labels = map[string]string{Label: value}
	}
	for _, mod := range mods {
		mod(made)
	}
	return made
}

// metadata returns what a read of the metadata alone has.
func metadata(of *corev1.Secret) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: of.ObjectMeta}
}

func ofType(kind corev1.SecretType) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Type = kind }
}

func withLabel(name string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { metav1.SetMetaDataLabel(&s.ObjectMeta, name, "x") }
}

func tokenOf(account string) func(*corev1.Secret) {
	return func(s *corev1.Secret) {
		s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: account}
	}
}

func TestWhichSecretsMayBeNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		secret  *corev1.Secret
		use     Use
		refused map[Mode]string
	}{
		"with the label for every use":    {secret: secret("s", "true"), use: UserData},
		"with the label for this use":     {secret: secret("s", "user-data"), use: UserData},
		"OpenShift's own for its use":     {secret: secret("worker-user-data", "-"), use: UserData},
		"OpenShift's own credentials":     {secret: secret("aws-cloud-credentials", "-"), use: Credentials},
		"one of the list, for either use": {secret: secret("listed", "-"), use: UserData},
		"OpenShift's own for another use": {
			secret: secret("aws-cloud-credentials", "-"), use: UserData, refused: map[Mode]string{Labelled: "no label", Reviewed: "no label"},
		},
		"without the label": {
			secret: secret("s", "-"), use: Credentials,
			refused: map[Mode]string{Labelled: "kubectl label secret s " + Label + "=credentials", Reviewed: "no label"},
		},
		"with the label for another use": {
			secret: secret("s", "credentials"), use: UserData,
			refused: map[Mode]string{Labelled: Label + "=true --overwrite", Reviewed: `is "credentials"`},
		},
		"with a label that takes it back": {secret: secret("s", "false"), use: UserData, refused: map[Mode]string{Labelled: Label + "=user-data --overwrite", Reviewed: `is "false"`}},
		"a token with the label":          {secret: secret("s", "credentials", tokenOf("kubemark")), use: Credentials},
		"a token without the label": {
			secret: secret("s", "-", tokenOf("kubemark")), use: Credentials, refused: map[Mode]string{Labelled: "token", Reviewed: "token", Any: "token"},
		},
		"a token of the list": {
			secret: secret("listed", "-", tokenOf("kubemark")), use: Credentials, refused: map[Mode]string{Labelled: "token", Reviewed: "token", Any: "token"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []Mode{Labelled, Reviewed, Any} {
				policy := New(mode, "listed")
				for _, object := range []client.Object{tc.secret, metadata(tc.secret)} {
					got := policy.Check(object, tc.use)
					want, refused := tc.refused[mode]
					if (got != nil) != refused || got != nil && !strings.Contains(got.Error(), want) {
						t.Errorf("%s, %T: got %v, want %q", mode, object, got, want)
					}
					if got != nil && got.Final {
						t.Errorf("%s: %v is final, want that a label helps", mode, got)
					}
				}
			}
		})
	}
}

func TestTheOperatorsOwnSecretsMayNeverBeNamed(t *testing.T) {
	for name, own := range map[string]*corev1.Secret{
		"a state by its label":              secret("s", "true", withLabel("machine-iac.io/state")),
		"a state by its name":               secret("tfstate-default-m1", "true"),
		"a state of Terraform's":            secret("s", "true", withLabel("tfstate")),
		"the content of a module":           secret("s", "true", withLabel("machine-iac.io/module-content")),
		"the content of a module, by name":  secret("machine-iac-module-0123", "true"),
		"Pulumi's keys":                     secret("machine-iac-pulumi-keys", "true"),
		"the key of the installation":       secret("machine-iac-installation", "true"),
		"the certificate of the webhooks":   secret("machine-iac-webhook-cert", "true"),
		"that of OpenShift's service CA":    secret("machine-api-operator-webhook-cert", "true"),
		"a token of the controllers":        secret("s", "true", tokenOf("machine-api-controllers")),
		"a token of the operator, in a way": secret("s", "true", tokenOf("machine-api-operator")),
	} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []Mode{Labelled, Reviewed, Any} {
				for _, object := range []client.Object{own, metadata(own)} {
					got := New(mode, own.Name).Check(object, Credentials)
					if got == nil || !got.Final || !strings.Contains(got.Error(), "name another Secret") {
						t.Errorf("%s, %T: got %v", mode, object, got)
					}
				}
			}
		})
	}
	if got := New(Any).Check(secret("s", "true", ofType("machine-iac.io/module")), UserData); got == nil || !got.Final {
		t.Errorf("by its type: got %v", got)
	}
}

func TestWithoutWebhooksTheLabelDecides(t *testing.T) {
	plain := secret("s", "-")
	if got := New(Reviewed).AtRuns(false).Check(plain, UserData); got == nil {
		t.Error("nobody was reviewed, and a Secret without a label may be used")
	}
	if got := New(Reviewed).AtRuns(true).Check(plain, UserData); got != nil {
		t.Errorf("whoever named it was reviewed: %v", got)
	}
	if got := New(Labelled).AtRuns(true).Check(plain, UserData); got == nil {
		t.Error("the label decides with webhooks too")
	}
	var none *Policy
	if got := none.AtRuns(false).Check(plain, UserData); got != nil {
		t.Errorf("no policy refuses: %v", got)
	}
}

func TestModeIsAFlag(t *testing.T) {
	mode := Labelled
	if err := mode.Set("Reviewed"); err != nil || mode.String() != "Reviewed" {
		t.Errorf("set to %q, %v", mode, err)
	}
	if err := mode.Set("labelled"); err == nil || !strings.Contains(err.Error(), "Labelled, Reviewed or Any") || mode != Reviewed {
		t.Errorf("set to %q, %v; want an error that says how to fix it, and no change", mode, err)
	}
}
