// Package references decides which Secrets a providerSpec may name. Anyone who can write Machines
// makes the operator read these Secrets, so a reference is a permission. It comes from a label of
// the Secret, from a list of names, or from what the user who writes the Machine may do.
//
// The operator's own Secrets, and tokens of its own accounts, may never be named.
//
// # Permissions
//
//   - authorization.k8s.io subjectaccessreviews: create, with [Reviewed]
package references

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Label lets Machines use the Secret that it is on: its value is a [Use], or "true" for every use.
const Label = "machine-iac.io/usable-by-machines"

// anyUse is the value of the label for every use.
const anyUse = "true"

// Use is what a Secret is named for.
type Use string

const (
	// Credentials are what a module's providers sign in with.
	Credentials Use = "credentials"
	// UserData is what an instance boots with.
	UserData Use = "user-data"
)

// String returns the use as messages name it.
func (u Use) String() string { return strings.ReplaceAll(string(u), "-", " ") }

// Mode is what a providerSpec needs in order to name a Secret. It is a flag.
type Mode string

const (
	// Labelled requires the label or an entry in the list of names.
	Labelled Mode = "Labelled"
	// Reviewed accepts these too, or that the user who writes the Machine may get the Secret.
	Reviewed Mode = "Reviewed"
	// Any is nothing.
	Any Mode = "Any"
)

// String implements flag.Value.
func (m *Mode) String() string { return string(*m) }

// Set implements flag.Value.
func (m *Mode) Set(text string) error {
	switch mode := Mode(text); mode {
	case Labelled, Reviewed, Any:
		*m = mode
		return nil
	}
	return fmt.Errorf("it is %s, %s or %s", Labelled, Reviewed, Any)
}

// wellKnown are the Secrets that OpenShift makes for Machines, by what they are for.
var wellKnown = map[Use][]string{
	Credentials: {
		"aws-cloud-credentials", "azure-cloud-credentials",
		"gcp-cloud-credentials", "ibmcloud-credentials", "nutanix-credentials",
		"openstack-cloud-credentials", "powervs-credentials", "vsphere-cloud-credentials",
	},
	UserData: {"master-user-data", "master-user-data-managed",
		"windows-user-data", "worker-user-data", "worker-user-data-managed"},
}

// Policy decides. A nil Policy refuses nothing.
type Policy struct {
	mode   Mode
	listed map[Use][]string
}

// New returns a Policy. The Secrets with these names may be named for every use, those of OpenShift
// for their own.
func New(mode Mode, names ...string) *Policy {
	listed := maps.Clone(wellKnown)
	for use, known := range listed {
		listed[use] = slices.Concat(known, names)
	}
	return &Policy{mode: mode, listed: listed}
}

// AtRuns returns the Policy for a Machine's run. At that time, no user is known who could be
// reviewed: the webhooks have done that, and without webhooks the label decides.
func (p *Policy) AtRuns(webhooks bool) *Policy {
	if p == nil || p.mode != Reviewed {
		return p
	}
	mode := Labelled
	if webhooks {
		mode = Any
	}
	return &Policy{mode: mode, listed: p.listed}
}

// RefusedError is why a Secret may not be named.
type RefusedError struct {
	// Secret is its name, Use what it was named for.
	Secret string
	Use    Use
	// Problem says why, Fix what to do.
	Problem, Fix string
	// Final means that no label and no permission would help.
	Final bool
	// Command allows it; empty where nothing does.
	Command string
	// Reviewed means that it depends on the user, whom only the webhooks know.
	Reviewed bool
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the Secret %s may not be used for %s: %s; %s", e.Secret, e.Use, e.Problem, e.Fix)
}

// Check returns why a Secret may not be named for a use; nil where it may. Of a Secret that is not
// there, or could not be read, the name is enough; metadata are enough of any.
func (p *Policy) Check(secret client.Object, use Use) *RefusedError {
	if p == nil {
		return nil
	}
	refused := &RefusedError{Secret: secret.GetName(), Use: use}
	if problem := own(secret); problem != "" {
		refused.Problem, refused.Fix, refused.Final = problem, "name another Secret", true
		return refused
	}
	value, labelled := secret.GetLabels()[Label]
	token := isToken(secret)
	switch {
	case labelled && (value == anyUse || value == string(use)):
		return nil
	case token:
		refused.Problem = "it holds a token of a service account and has no label that allows this"
	case p.mode == Any, slices.Contains(p.listed[use], secret.GetName()):
		return nil
	case labelled:
		refused.Problem = fmt.Sprintf("its label %s is %q", Label, value)
	default:
		refused.Problem = "it has no label that allows this"
	}
	refused.Reviewed = !token && p.mode == Reviewed
	refused.Command = commandFor(secret.GetName(), value, use)
	refused.Fix = "ask a user who may write the Secret to run: " + refused.Command
	return refused
}

// commandFor returns the command that allows a use besides what the value of the label allows
// already.
func commandFor(name, value string, use Use) string {
	allowed := string(use)
	if value == string(Credentials) || value == string(UserData) {
		allowed = anyUse
	}
	command := fmt.Sprintf("kubectl label secret %s %s=%s", name, Label, allowed)
	if value != "" {
		command += " --overwrite"
	}
	return command
}

// ownNames are Secrets of this operator and of OpenShift's that serve its processes.
var ownNames = []string{
	"machine-iac-installation", "machine-iac-pulumi-keys", "machine-iac-webhook-cert",
	"machine-api-controllers-tls", "machine-api-operator-tls", "machine-api-operator-webhook-cert",
}

// ownAccounts are the service accounts that this operator's processes run as.
var ownAccounts = []string{"machine-api-controllers", "machine-api-operator", "machine-api-termination-handler"}

// own returns why a Secret is this operator's own; empty where it is not. Names and labels are
// looked at besides types, since they are known of a Secret that is not read whole.
func own(secret client.Object) string {
	name, labels := secret.GetName(), secret.GetLabels()
	switch {
	case strings.HasPrefix(name, "tfstate-"), has(labels, "tfstate"), has(labels, "machine-iac.io/state"):
		return "it holds the state of a Machine"
	case strings.HasPrefix(name, "machine-iac-module-"), has(labels, "machine-iac.io/module-content"):
		return "it holds the content of a module"
	case slices.Contains(ownNames, name), strings.HasPrefix(string(typeOf(secret)), "machine-iac.io/"):
		return "it is the operator's own"
	case slices.Contains(ownAccounts, secret.GetAnnotations()[corev1.ServiceAccountNameKey]):
		return "it holds a token of the operator's own service account"
	}
	return ""
}

// isToken reports whether a Secret holds a token of a service account. The API server takes none of
// that type without the annotation.
func isToken(secret client.Object) bool {
	return typeOf(secret) == corev1.SecretTypeServiceAccountToken ||
		has(secret.GetAnnotations(), corev1.ServiceAccountNameKey)
}

// typeOf returns the type of a Secret; empty where only metadata were read.
func typeOf(object client.Object) corev1.SecretType {
	if secret, whole := object.(*corev1.Secret); whole {
		return secret.Type
	}
	return ""
}

func has(values map[string]string, key string) bool {
	_, found := values[key]
	return found
}
