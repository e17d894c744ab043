package machinedeployment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
)

// hashLength is how many characters a hash has in names and labels.
const hashLength = 10

// templateHash returns the hash of what a rollout is about.
func templateHash(deployment *v1beta1.MachineDeployment) (string, error) {
	value, err := canonical(deployment.Spec.Template.Spec.ProviderSpec.Value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", value, deployment.Spec.Restart(),
		ptr.Deref(deployment.Status.CollisionCount, 0)))
	return hex.EncodeToString(sum[:])[:hashLength], nil
}

// sameTemplate reports whether a MachineSet is of the MachineDeployment's revision.
func sameTemplate(deployment *v1beta1.MachineDeployment, set *machinev1beta1.MachineSet) bool {
	return sameSpec(deployment.Spec.Template.Spec.ProviderSpec.Value, set.Spec.Template.Spec.ProviderSpec.Value) &&
		deployment.Spec.Restart() == set.Annotations[v1beta1.RestartedAtAnnotation]
}

// sameSpec reports whether two providerSpecs are equal but for the order of their keys.
func sameSpec(x, y *runtime.RawExtension) bool {
	if equality.Semantic.DeepEqual(x, y) {
		return true
	}
	a, aErr := canonical(x)
	b, bErr := canonical(y)
	return aErr == nil && bErr == nil && bytes.Equal(a, b)
}

// canonical returns a providerSpec with sorted keys, and numbers as they were written.
func canonical(value *runtime.RawExtension) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	var content any
	decoder := json.NewDecoder(bytes.NewReader(value.Raw))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return nil, fmt.Errorf("decoding the providerSpec: %w", err)
	}
	out, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the providerSpec: %w", err)
	}
	return out, nil
}
