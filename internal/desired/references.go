package desired

import (
	"context"
	"fmt"
	"sync"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/render"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
)

// secrets are the Secrets that a Machine names.
type secrets struct {
	credentials, userData *corev1.Secret
	// userDataSecret is the name of the Secret that counts as the user data of the instance's
	// create.
	userDataSecret string
	// refused says why the Machine may use a Secret only for the configuration already applied; nil
	// if it may use all.
	refused error
}

// secrets reads the Secrets that a Machine names. Only a create needs user data: other operations
// do not fail without it, nor do they get user data that the Machine must not use. A destroy of an
// instance in the state accepts any credentials except the operator's own.
func (r *Reader) secrets(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, credentials,
	userData render.Ref, operation runs.Operation) (secrets, error) {
	destroys := operation == runs.Destroy
	read := secrets{userDataSecret: userData.Name}
	var err error
	if read.credentials, err = r.secret(ctx, machine, credentials.Name, references.Credentials); err != nil {
		return secrets{}, err
	}
	made := sync.OnceValue(func() *AppliedInputs { return madeWith(f) }) // rarely needed
	if read.userData, err = r.secret(ctx, machine, userData.Name, references.UserData); err != nil {
		if hinders(operation, err) {
			return secrets{}, err
		}
		read.userDataSecret = made().UserDataSecret // not that of a Secret created later
	}
	if refused := r.refused(read.credentials, references.Credentials, credentials); refused != nil &&
		made().CredentialsSecret != credentials.Name {
		if !destroys || refused.Final || !f.HasResources() {
			read.refused = refused
		}
	}
	if refused := r.refused(read.userData, references.UserData, userData); refused != nil &&
		made().UserDataSecret != userData.Name {
		if operation != runs.Create {
			read.userData = nil
		}
		if !destroys && read.refused == nil {
			read.refused = refused
		}
	}
	return read, nil
}

// hinders reports whether an operation fails because user data cannot be read.
func hinders(operation runs.Operation, err error) bool {
	return operation == runs.Create || operation == runs.Update && !isMissing(err)
}

// refused returns why Machines must not use a Secret, or nil.
func (r *Reader) refused(secret *corev1.Secret, use references.Use, ref render.Ref) *SecretError {
	if secret == nil {
		return nil
	}
	refused := r.references.Check(secret, use)
	if refused == nil {
		return nil
	}
	return &SecretError{Message: fmt.Sprintf("%s: %s", ref.Path, refused), Refused: true, Final: refused.Final}
}

// madeWith returns the inputs applied last to the instance; none if they are not stored or
// unreadable.
func madeWith(f *lifecycle.Facts) *AppliedInputs {
	if len(f.Inputs) == 0 {
		return &AppliedInputs{}
	}
	kept, err := ReadInputs(f.Inputs)
	if err != nil {
		return &AppliedInputs{}
	}
	return kept
}
