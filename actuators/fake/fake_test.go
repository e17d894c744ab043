package fake

import (
	"fmt"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/actuators/conformance"
)

func TestTheFakeConforms(t *testing.T) {
	for _, steps := range []int{0, 3} {
		t.Run(fmt.Sprintf("with %d steps", steps), func(t *testing.T) {
			actuator := &Actuator{Steps: steps, Doubts: true, Types: map[string]actuators.Capacity{"small": {CPU: 2, MemoryMiB: 4096, Architecture: "amd64"}}}
			count := 0
			conformance.Run(t, conformance.Harness{
				Actuator: actuator,
				NewMachine: func(*testing.T) *machinev1beta1.Machine {
					count++
					name := fmt.Sprintf("m-%d", count)
					return &machinev1beta1.Machine{
						ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)},
						Spec: machinev1beta1.MachineSpec{ProviderSpec: machinev1beta1.ProviderSpec{
							Value: &runtime.RawExtension{Raw: []byte(`{"cpu":4,"instanceType":"small"}`)},
						}},
					}
				},
				Instances: func(_ *testing.T, machine *machinev1beta1.Machine) int {
					count := 0
					for _, name := range actuator.Instances() {
						if name == machine.Name {
							count++
						}
					}
					return count
				},
				Lose:      func(_ *testing.T, machine *machinev1beta1.Machine) func() { return actuator.Lose(machine.UID) },
				Vanish:    func(_ *testing.T, machine *machinev1beta1.Machine) { actuator.Vanish(machine.UID) },
				WrongType: &runtime.RawExtension{Raw: []byte(`{"cpu":"four"}`)},
				Field:     "spec.providerSpec.value.cpu",
				Patience:  5 * time.Second,
			})
		})
	}
}
