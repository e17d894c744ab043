package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/internal/adoption"
	"github.com/machine-iac/machine-iac-operator/internal/cluster/references"
	"github.com/machine-iac/machine-iac-operator/internal/installation"
)

// adopterRole is the ClusterRole with the permission to adopt, in install/controllers/rbac.
const adopterRole = "machine-api-adopter"

// adoptionReview lets only authorized users request adoptions, and records the grant on the object.
// It is not a defaulter, which would re-encode the whole object on each update.
type adoptionReview struct {
	reviewer client.Client
	// self is the manager's own user. Its writes are neither reviewed nor granted: the request in a
	// MachineSet's template is granted to the MachineSet.
	self         string
	installation *installation.Installation
	clock        clock.PassiveClock
}

// Handle implements admission.Handler.
func (a *adoptionReview) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.UserInfo.Username == a.self {
		return admission.Allowed("")
	}
	before, now, err := versions(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	changed := adoption.Changes(before, now)
	if len(changed) == 0 {
		return admission.Allowed("")
	}
	refused, err := a.refused(ctx, request, changed)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case refused != "":
		return admission.Denied(refused)
	case !adoption.Asks(now):
		return admission.Allowed("")
	case now.GetName() == "":
		return admission.Denied("metadata.generateName: an adoption is granted to one name; set metadata.name instead")
	}
	return a.grant(request, now)
}

// refused returns why the user may not change the fields, or "".
func (a *adoptionReview) refused(ctx context.Context, request admission.Request, changed []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, secretDeadline)
	defer cancel()
	asked := authorizationv1.ResourceAttributes{
		Namespace: request.Namespace, Verb: adoption.Verb, Resource: adoption.Resource,
		Group: machinev1beta1.GroupVersion.Group, Version: machinev1beta1.GroupVersion.Version,
	}
	if request.Kind.Kind == "Machine" {
		asked.Name = request.Name
	}
	user, resource := request.UserInfo, asked.Resource+"."+asked.Group
	allowed, err := references.Allowed(ctx, a.reviewer, user, asked)
	if err != nil {
		return "", fmt.Errorf("checking whether %s may %s %s: %w; try again", user.Username, asked.Verb, resource, err)
	}
	if allowed {
		return "", nil
	}
	return fmt.Sprintf("%s: user %q may not %s %s in namespace %s; adopting an instance allows deleting it, so this "+
		"needs a permission of its own: kubectl create rolebinding adopter -n %s --clusterrole=%s %s",
		strings.Join(changed, ", "), user.Username, asked.Verb, resource, asked.Namespace,
		asked.Namespace, adopterRole, subject(user)), nil
}

// subject returns the flag that names a user for kubectl create rolebinding.
func subject(user authenticationv1.UserInfo) string {
	if account, found := strings.CutPrefix(user.Username, "system:serviceaccount:"); found {
		return "--serviceaccount=" + account
	}
	return fmt.Sprintf("--user=%q", user.Username)
}

// grant records on an object that its request is granted.
func (a *adoptionReview) grant(request admission.Request, object client.Object) admission.Response {
	value, err := adoption.NewGrant(a.installation, object, request.UserInfo.Username, a.clock.Now())
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	granted := maps.Clone(object.GetAnnotations())
	if granted == nil {
		granted = map[string]string{}
	}
	granted[adoption.GrantAnnotation] = value
	from, err := annotated(object.GetAnnotations())
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	to, err := annotated(granted)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(from, to)
}

// annotated returns an object that contains only annotations, as seen by a patch.
func annotated(annotations map[string]string) ([]byte, error) {
	metadata := map[string]any{}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// versions returns the old and the new object of a request.
func versions(request admission.Request) (before, now client.Object, err error) {
	before, now = &machinev1beta1.Machine{}, &machinev1beta1.Machine{}
	if request.Kind.Kind == "MachineSet" {
		before, now = &machinev1beta1.MachineSet{}, &machinev1beta1.MachineSet{}
	}
	if err := json.Unmarshal(request.Object.Raw, now); err != nil {
		return nil, nil, fmt.Errorf("reading the %s: %w", request.Kind.Kind, err)
	}
	now.SetNamespace(request.Namespace)
	if request.Operation == admissionv1.Create {
		now.SetUID("") // the API server assigns it later
		return before, now, nil
	}
	if err := json.Unmarshal(request.OldObject.Raw, before); err != nil {
		return nil, nil, fmt.Errorf("reading the previous %s: %w", request.Kind.Kind, err)
	}
	return before, now, nil
}
