package machineset

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestMachinesThatStayedDoNotCount(t *testing.T) {
	set := builder.MachineSet()
	machine := func(age time.Duration) *machinev1beta1.Machine {
		born := time.Unix(1e9, 0)
		return builder.Machine(func(m *machinev1beta1.Machine) {
			m.GenerateName = set.Name + "-"
			m.CreationTimestamp, m.DeletionTimestamp = metav1.NewTime(born), &metav1.Time{Time: born.Add(age)}
		})
	}
	if got := made(set, []*machinev1beta1.Machine{machine(time.Minute), machine(staying - time.Second), machine(staying)}); got != 2 {
		t.Errorf("%d Machines count, want the two that were deleted within %v", got, staying)
	}
}
