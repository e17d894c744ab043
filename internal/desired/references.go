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

// secrets are those that a Machine names.
type secrets struct {
	credentials, userData *corev1.Secret
	// refused says that the Machine may use one only for what its instance was brought to already; nil where it may use them.
	refused error
}

// secrets reads the Secrets that a Machine names. A destroy does without user data that is gone or that the Machine may not use, and with any
// credentials but the operator's own. Where recent is set, they may be as they were ten seconds ago.
func (r *Reader) secrets(ctx context.Context, machine *machinev1beta1.Machine, f *lifecycle.Facts, credentials, userData render.Ref, operation runs.Operation, recent bool) (secrets, error) {
	destroys := operation == runs.Destroy
	var read secrets
	var err error
	if read.credentials, err = r.secret(ctx, machine, credentials.Name, references.Credentials, recent); err != nil {
		return secrets{}, err
	}
	if read.userData, err = r.secret(ctx, machine, userData.Name, references.UserData, recent); err != nil && !destroys {
		return secrets{}, err
	}
	made := sync.OnceValue(func() *AppliedInputs { return madeWith(f) }) // which is rarely asked for
	if refused := r.refused(read.credentials, references.Credentials, credentials); refused != nil && made().CredentialsSecret != credentials.Name {
		if !destroys || refused.Final {
			read.refused = refused
		}
	}
	if refused := r.refused(read.userData, references.UserData, userData); refused != nil && made().UserDataSecret != userData.Name {
		if destroys {
			read.userData = nil
		} else if read.refused == nil {
			read.refused = refused
		}
	}
	return read, nil
}

// refused returns why Machines may not use a Secret that was read; nil where they may, or where there is none.
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

// madeWith returns the inputs that were applied to the instance last; none where they are not stored or cannot be read.
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
