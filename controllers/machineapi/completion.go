package machineapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CompletedAnnotation on a Machine is a hash of its template's providerSpec and of what admission made of it.
const CompletedAnnotation = "machine-iac.io/completed"

// NoteCompletion annotates a Machine, as the API server returned it, if admission completed the template's
// providerSpec. Otherwise each new Machine would seem to need a replacement.
func NoteCompletion(ctx context.Context, writer client.Writer, machine *machinev1beta1.Machine,
	template *runtime.RawExtension) error {
	value := machine.Spec.ProviderSpec.Value
	if value == nil || template == nil || bytes.Equal(value.Raw, template.Raw) {
		return nil
	}
	before := machine.DeepCopy()
	metav1.SetMetaDataAnnotation(&machine.ObjectMeta, CompletedAnnotation, completion(template, value))
	return writer.Patch(ctx, machine, client.MergeFrom(before))
}

// Completed reports whether a Machine's providerSpec is what admission made of the template's.
func Completed(machine *machinev1beta1.Machine, template *runtime.RawExtension) bool {
	noted, value := machine.Annotations[CompletedAnnotation], machine.Spec.ProviderSpec.Value
	return noted != "" && value != nil && template != nil && noted == completion(template, value)
}

// completion hashes the bytes, which the API server writes in the same way each time: it is cheap, and a
// hash that is wrong costs one more change.
func completion(template, value *runtime.RawExtension) string {
	sum := sha256.Sum256(append(append(bytes.Clone(template.Raw), '\n'), value.Raw...))
	return hex.EncodeToString(sum[:16])
}
