// Package adoption decides which adoption requests are granted. Adopting an instance allows
// deleting it, so it needs a permission of its own: the verb "adopt" on
// machines.machine.openshift.io, granted by RBAC. Users who may write Machines need not have it.
//
// The webhooks review each request and record the grant on the object, as a code that only the
// operator can compute. A run adopts an instance only with such a grant, so that a request that
// bypasses the webhooks has no effect.
package adoption

import (
	"encoding/json"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/state"
)

const (
	// GrantAnnotation holds the operator's grant for the request of a Machine or MachineSet.
	GrantAnnotation = state.Prefix + "adoption-granted"
	// Verb is what RBAC must grant on [Resource].
	Verb = "adopt"
	// Resource is the resource of Verb, also for a MachineSet, because its Machines' instances are
	// adopted.
	Resource = "machines"
)

// purpose is the signing purpose of grants.
const purpose = "adoption-granted"

// atCreation bounds the time between an object's creation and its grant. On creation, the webhooks
// do not know the UID yet.
const atCreation = time.Minute

// Grant is the content of GrantAnnotation.
type Grant struct {
	// User requested the adoption; empty for the operator itself, which destroys an orphaned
	// instance.
	User string `json:"user,omitempty"`
	// UID is the object's UID; empty if the adoption was requested on creation.
	At time.Time `json:"at"`
	// UID is the object's; empty if the adoption was requested when the object was created.
	UID types.UID `json:"uid,omitempty"`
	// Code authenticates the grant, the object and its request.
	Code string `json:"code"`
}

// NewGrant returns the value of GrantAnnotation for an object's request. An object that is being
// created has no UID.
func NewGrant(i *installation.Installation, object client.Object, user string, now time.Time) (string, error) {
	g := Grant{User: user, At: now.UTC().Truncate(time.Second), UID: object.GetUID()}
	g.Code = i.Sign(purpose, g.fields(object)...)
	raw, err := json.Marshal(g)
	return string(raw), err
}

// GrantOf returns the grant for an object's current request, or nil. A grant does not count if it
// was made for another object or request, or by another installation.
func GrantOf(i *installation.Installation, object client.Object) *Grant {
	var g Grant
	if i == nil || json.Unmarshal([]byte(object.GetAnnotations()[GrantAnnotation]), &g) != nil {
		return nil
	}
	if !i.Signed(g.Code, purpose, g.fields(object)...) {
		return nil
	}
	if g.UID != object.GetUID() && (g.UID != "" || object.GetCreationTimestamp().Sub(g.At).Abs() > atCreation) {
		return nil
	}
	return &g
}

// fields returns the fields that a grant's code authenticates.
func (g *Grant) fields(object client.Object) []string {
	fields := []string{object.GetNamespace(), object.GetName(), string(g.UID), g.At.UTC().Format(time.RFC3339), g.User}
	switch object := object.(type) {
	case *machinev1beta1.Machine:
		return append(append(fields, "Machine"), request(object.Annotations, object.Spec.ProviderID)...)
	case *machinev1beta1.MachineSet:
		fields = append(append(fields, "MachineSet"), request(object.Annotations, nil)...)
		return append(fields, templateRequest(object)...)
	}
	return fields
}

// request returns the request and the instance that it names.
func request(annotations map[string]string, providerID *string) []string {
	id := ptr.Deref(providerID, "")
	return []string{annotations[lifecycle.AdoptionAnnotation], id, annotations[lifecycle.AdoptIDAnnotation]}
}

func templateRequest(set *machinev1beta1.MachineSet) []string {
	return request(set.Spec.Template.Annotations, set.Spec.Template.Spec.ProviderID)
}

// guarded are the annotations that only authorized users may set, change or remove.
var guarded = []string{
	lifecycle.AdoptionAnnotation, lifecycle.AdoptIDAnnotation, lifecycle.AdoptFromAnnotation,
	lifecycle.AdoptionRequestedAnnotation,
}

// Changes returns the fields that differ between two versions of a Machine or MachineSet and that
// only authorized users may change. before is empty for a new object.
func Changes(before, now client.Object) []string {
	var changed []string
	compare := func(path string, before, now map[string]string, providerBefore, providerNow *string) {
		for _, name := range guarded {
			old, had := before[name]
			if value, has := now[name]; had != has || old != value {
				changed = append(changed, path+"metadata.annotations["+name+"]")
			}
		}
		if id := ptr.Deref(providerNow, ""); id != "" && id != ptr.Deref(providerBefore, "") {
			changed = append(changed, path+"spec.providerID")
		}
	}
	switch now := now.(type) {
	case *machinev1beta1.Machine:
		before := before.(*machinev1beta1.Machine)
		compare("", before.Annotations, now.Annotations, before.Spec.ProviderID, now.Spec.ProviderID)
	case *machinev1beta1.MachineSet:
		before := before.(*machinev1beta1.MachineSet)
		compare("", before.Annotations, now.Annotations, nil, nil)
		old, template := before.Spec.Template, now.Spec.Template
		compare("spec.template.", old.Annotations, template.Annotations, old.Spec.ProviderID, template.Spec.ProviderID)
	}
	return changed
}

// Asks reports whether the request of a Machine or MachineSet needs a grant.
func Asks(object client.Object) bool {
	asks := func(annotations map[string]string) bool {
		return annotations[lifecycle.AdoptionAnnotation] != "" || annotations[lifecycle.AdoptIDAnnotation] != ""
	}
	set, ofSet := object.(*machinev1beta1.MachineSet)
	return asks(object.GetAnnotations()) || ofSet && asks(set.Spec.Template.Annotations)
}
