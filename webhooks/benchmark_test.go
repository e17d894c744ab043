package webhooks

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// BenchmarkMachineSetAdmission measures how long a MachineSet takes from the request as JSON to the
// response, without the network and the look at the Secret: that of a module's example, and one
// that is wrong in several fields.
func BenchmarkMachineSetAdmission(b *testing.B) {
	good := exampleSet(b)
	bad := setWith(withTemplate(kubemarkSpec(`,"zone":"a/b","pods":0,"cpu":-1,"memory":"much","taints":[{"key":"a","effect":"No"}]`)))
	for name, set := range map[string]*machinev1beta1.MachineSet{"accepted": good, "refused": bad} {
		b.Run(name, func(b *testing.B) { benchmarkAdmission(b, set, name == "accepted") })
	}
}

func benchmarkAdmission(b *testing.B, set *machinev1beta1.MachineSet, allowed bool) {
	scheme := runtime.NewScheme()
	if err := machinev1beta1.Install(scheme); err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(set)
	if err != nil {
		b.Fatal(err)
	}
	secret := types.NamespacedName{Namespace: set.Namespace, Name: "kubemark-credentials"}
	hook := admission.WithValidator(scheme, &machineSetValidator{
		rules: testRules(b, ""), secrets: secretChecks{reader: &reader{exist: map[types.NamespacedName]bool{secret: true}}},
	})
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}}
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		begun := time.Now()
		if response := hook.Handle(b.Context(), request); response.Allowed != allowed {
			b.Fatalf("got %v", response)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
