package machine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/actuators/fake"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/suite"
)

var _ = Describe("An actuator that cannot sit still", func() {
	var (
		namespace string
		actuator  *fake.Actuator
		subject   *machinev1beta1.Machine
	)
	BeforeEach(func(ctx SpecContext) {
		var err error
		namespace, err = plane.Namespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		actuator = &fake.Actuator{}
		subject = builder.In(namespace, builder.Machine())
		create(ctx, subject)
	})

	It("causes no write when it only spells its provider status otherwise", func(ctx SpecContext) {
		p := byHand(subject, &scribbling{Actuator: actuator, status: `{ "z":1, "instanceState":"running", "a":{"c":1,"b":2} }`}, plane.Client)
		for range 4 {
			p.next(ctx)
		}
		Expect(ptr.Deref(fresh(ctx, subject).Status.Phase, "")).To(Equal("Provisioned"))
		wrote, _ := p.next(ctx)
		Expect(wrote).To(BeEmpty())
	})

	It("is asked at the pace of the queue although each of its errors reads otherwise", func(ctx SpecContext) {
		talkative := &talkative{Actuator: actuator}
		startManager(namespace, talkative)
		Eventually(talkative.creates.Load).Should(BeNumerically(">=", 3))
		Consistently(talkative.creates.Load).WithTimeout(suite.Watch(2 * time.Second)).Should(BeNumerically("<", 15))
	})
})

// scribbling is an actuator that writes its provider status its own way each time.
type scribbling struct {
	*fake.Actuator
	status string
}

func (a *scribbling) Update(ctx context.Context, machine *machinev1beta1.Machine) error {
	machine.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(a.status)}
	return a.Actuator.Update(ctx, machine)
}

// talkative is an actuator that never says the same twice, as a cloud that puts the request's
// number into its errors.
type talkative struct {
	*fake.Actuator
	creates atomic.Int32
}

func (a *talkative) Create(context.Context, *machinev1beta1.Machine) error {
	return fmt.Errorf("request %d: the server is busy", a.creates.Add(1))
}
