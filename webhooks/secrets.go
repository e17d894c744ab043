package webhooks

import (
	"context"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// secretDeadline bounds how long a response waits for the API server's data about Secrets and
// users.
const secretDeadline = 2 * time.Second

// secretRef is a Secret that a providerSpec names.
type secretRef struct {
	// path is where the Secret is named; role is the Machine API's name for it.
	path, role, name string
	use              references.Use
	// kept reports that the update leaves the reference unchanged.
	kept bool
	// rights are the permissions that its credentials need.
	rights []v1alpha1.ModuleRights
}

// secretsOf returns the Secrets that a providerSpec names.
func secretsOf(input render.Input) []secretRef {
	credentials, userData, err := render.Refs(input.Machine, input.Module)
	if err != nil {
		return nil // Check has reported the error
	}
	var refs []secretRef
	if credentials.Name != "" {
		refs = append(refs, secretRef{path: referencePath(credentials.Path), role: "CredentialsSecret",
			name: credentials.Name, use: references.Credentials, rights: render.Rights(input)})
	}
	if userData.Name != "" {
		refs = append(refs, secretRef{path: referencePath(userData.Path), role: "UserDataSecret", name: userData.Name,
			use: references.UserData})
	}
	return refs
}

// keep marks the references that a Machine already had for the same use.
func (r rules) keep(refs []secretRef, before *machinev1beta1.Machine) {
	served, err := render.ModuleFor(r.catalog, before, r.cluster[module.ValuePlatform])
	if err != nil {
		return
	}
	credentials, userData, err := render.Refs(before, served)
	if err != nil {
		return
	}
	named := map[references.Use]string{references.Credentials: credentials.Name, references.UserData: userData.Name}
	for i := range refs {
		refs[i].kept = named[refs[i].use] == refs[i].name
	}
}

// referencePath returns the path of a reference in the Machine API's notation.
func referencePath(name string) string {
	return "providerSpec." + strings.TrimSuffix(strings.TrimPrefix(name, valuePath+"."), ".name")
}

// missingRights returns warnings about missing permissions of the credentials in Secrets. Unknown
// permissions are not reported.
func missingRights(ctx context.Context, granted *rights.Reader, namespace string, refs []secretRef) []string {
	var warnings []string
	for _, ref := range refs {
		for _, text := range granted.Missing(ctx, ref.rights, types.NamespacedName{Namespace: namespace, Name: ref.name}) {
			warnings = append(warnings, ref.path+": "+text)
		}
	}
	return warnings
}

// secretChecks checks the Secrets that providerSpecs name.
type secretChecks struct {
	// reader reads Secrets; rights reads the permissions of credentials.
	reader client.Reader
	rights *rights.Reader
	// references says which Secrets may be named; reviewer checks the permissions of users.
	references *references.Policy
	reviewer   client.Client
}

// check adds the results for an object's Secrets. Existing references are not rejected.
func (c secretChecks) check(ctx context.Context, namespace string, found *admissionResult) {
	if len(found.secrets) == 0 {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, secretDeadline)
	defer cancel()
	for _, ref := range found.secrets {
		secret, err := c.read(bounded, namespace, ref.name)
		switch {
		case apierrors.IsNotFound(err):
			found.warn(field.Invalid(field.NewPath(ref.path), ref.name, "not found. Expected "+ref.role+" to exist"))
		case err != nil:
			log.FromContext(ctx).Error(err, "Cannot read a Secret that a providerSpec names", "Secret", ref.name)
		}
		if ref.kept {
			continue
		}
		if refused := c.refused(bounded, secret, ref, err == nil); refused != nil {
			found.refuse(refused)
		}
	}
	found.warnings = append(found.warnings, missingRights(ctx, c.rights, namespace, found.secrets)...)
}

// read returns the known metadata of a Secret, at least its name.
func (c secretChecks) read(ctx context.Context, namespace, name string) (client.Object, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	secret.Namespace, secret.Name = namespace, name
	return secret, err
}

// refused returns why the user may not name a Secret. If the Secret was not read, its label is
// unknown and may be set when the Secret is created. Each run checks again.
func (c secretChecks) refused(ctx context.Context, secret client.Object, ref secretRef, read bool) *field.Error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		request = admission.Request{}
	}
	refused, err := c.references.Review(ctx, c.reviewer, request.UserInfo, secret, ref.use)
	switch {
	case err != nil:
		return field.Forbidden(field.NewPath(ref.path), fmt.Sprintf("%s; try again", err))
	case refused != nil && (read || refused.Final || refused.Reviewed):
		return field.Forbidden(field.NewPath(ref.path), refused.Error())
	}
	return nil
}
