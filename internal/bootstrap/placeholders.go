package bootstrap

import (
	"errors"
	"net/url"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

// Annotation on a Secret with user data, with the value "true", has its placeholders filled in.
// Only writers of the Secret can set it; they also decide what instances run.
const Annotation = "machine-iac.io/bootstrap-placeholders"

const (
	tokenPlaceholder = "<<BOOTSTRAP_TOKEN>>"
	namePlaceholder  = "<<MACHINE_NAME>>"
)

var errDisabled = errors.New("the user data contains " + tokenPlaceholder +
	", but this manager makes no bootstrap tokens; set --bootstrap-token-group, or remove the placeholder")

// Fill replaces the placeholders in user data of a Secret, plain and URL-encoded. token is the
// Machine's bootstrap token if the result contains it, else empty. A nil Tokens fills in nothing.
func (t *Tokens) Fill(machine *machinev1beta1.Machine, secret *corev1.Secret,
	userData []byte) (filled []byte, token string, err error) {
	if t == nil || secret == nil || secret.Annotations[Annotation] != "true" {
		return userData, "", nil
	}
	text := replace(string(userData), namePlaceholder, machine.Name)
	if replace(text, tokenPlaceholder, "") == text {
		return []byte(text), "", nil
	}
	if len(t.groups) == 0 {
		return userData, "", errDisabled
	}
	token = t.token(machine.UID).String()
	return []byte(replace(text, tokenPlaceholder, token)), token, nil
}

func replace(text, placeholder, value string) string {
	return strings.NewReplacer(placeholder, value, url.QueryEscape(placeholder), url.QueryEscape(value)).Replace(text)
}
