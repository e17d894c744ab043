package webhooks

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/rights"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

// secretDeadline bounds how long a response waits for what is a warning only.
const secretDeadline = 2 * time.Second

// secretRef is a Secret that a providerSpec names.
type secretRef struct {
	// path is where it is named, role what the Machine API calls it.
	path, role, name string
	// rights are what its credentials must be allowed to do.
	rights []v1alpha1.ModuleRights
}

// secretsOf returns the Secrets that a providerSpec names.
func secretsOf(input render.Input) []secretRef {
	credentials, userData, err := render.Refs(input.Machine, input.Module)
	if err != nil {
		return nil // Check has said so
	}
	var refs []secretRef
	if credentials.Name != "" {
		refs = append(refs, secretRef{path: referencePath(credentials.Path), role: "CredentialsSecret", name: credentials.Name, rights: render.Rights(input)})
	}
	if userData.Name != "" {
		refs = append(refs, secretRef{path: referencePath(userData.Path), role: "UserDataSecret", name: userData.Name})
	}
	return refs
}

// referencePath returns the path of the reference that a Secret's name stands in, as the Machine API writes it.
func referencePath(name string) string {
	return "providerSpec." + strings.TrimSuffix(strings.TrimPrefix(name, valuePath+"."), ".name")
}

// missingRights returns a warning for what the credentials in a Secret certainly may not do. What cannot be found out is not reported.
func missingRights(ctx context.Context, granted *rights.Reader, namespace string, refs []secretRef) []string {
	var warnings []string
	for _, ref := range refs {
		for _, text := range granted.Missing(ctx, ref.rights, types.NamespacedName{Namespace: namespace, Name: ref.name}) {
			warnings = append(warnings, ref.path+": "+text)
		}
	}
	return warnings
}

// missingSecrets returns a warning for each Secret that does not exist. What cannot be found out is not reported.
func missingSecrets(ctx context.Context, reader client.Reader, namespace string, refs []secretRef) []string {
	if len(refs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, secretDeadline)
	defer cancel()
	var warnings []string
	for _, ref := range refs {
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			text := "not found. Expected " + ref.role + " to exist"
			warnings = append(warnings, field.Invalid(field.NewPath(ref.path), ref.name, text).Error())
		case err != nil:
			log.FromContext(ctx).Error(err, "Looking for a Secret that a providerSpec names", "Secret", ref.name)
		}
	}
	return warnings
}
