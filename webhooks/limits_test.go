package webhooks

import (
	"encoding/json"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/module/load"
	"github.com/machine-iac/machine-iac-operator/modules"
	"github.com/machine-iac/machine-iac-operator/stacks"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// A request has ten seconds, and there may be many at once: each is done in two seconds of
// processor time, and 256 MiB. The race detector makes a program up to twenty times slower
// (https://go.dev/doc/articles/race_detector); what is not bounded takes minutes in either case.
const (
	mostTime   = 2 * time.Second * slowdown
	mostMemory = 256 << 20
)

// used returns the processor time of this process, which does not depend on what else the machine
// does, and the memory that it has ever allocated.
func used(t *testing.T) (time.Duration, uint64) {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	var memory goruntime.MemStats
	goruntime.ReadMemStats(&memory)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), memory.TotalAlloc
}

func TestAdmissionIsBounded(t *testing.T) {
	long.Test(t)
	scheme := runtime.NewScheme()
	if err := machinev1beta1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	hook := admission.WithValidator(scheme, &machineSetValidator{rules: everyRule(t), secrets: secretChecks{reader: &reader{}}})
	openstack := func(more string) *runtime.RawExtension {
		return ofStack(`,"stack":"openstack","credentialsSecret":{"name":"c"},"userDataSecret":{"name":"u"},"values":{"cloudName":"openstack","flavor":"m1","image":"i"` + more + `}`)
	}
	networks := func(n int) string {
		return `,"networks":[` + strings.Repeat(`{"filter":{"name":"n"},"subnets":[{"filter":{"name":"s"}}],"profile":{"a":"1e300000000"}},`, n) + `{"filter":{"name":"n"}}]`
	}
	for name, tc := range map[string]struct {
		spec *runtime.RawExtension
		want string // nothing for what is accepted
	}{
		"a text that reads as a large number": {spec: openstack(networks(1))},
		"as many networks as a server takes":  {spec: openstack(networks(6))},
		"as many networks as fit":             {spec: openstack(networks(500)), want: "does not allow networks"},
		"lists that nest":                     {spec: kubemarkSpec(`,"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000)), want: "it nests deeper than 64 levels; write it flatter"},
		"many values":                         {spec: kubemarkSpec(`,"taints":[` + strings.Repeat(`{"key":"a","effect":"NoSchedule"},`, 30_000) + `{}]`), want: "a providerSpec holds at most 5000 values"},
		"as many values as there may be":      {spec: kubemarkSpec(`,"taints":[` + strings.Repeat(`{"key":"a","effect":"NoSchedule"},`, 1600) + `{"key":"a","effect":"NoSchedule"}]`)},
		"a text of 1 MiB":                     {spec: kubemarkSpec(`,"zone":"` + strings.Repeat("x", 1<<20) + `"`), want: "units of work"},
		"a number of 1 MiB":                   {spec: kubemarkSpec(`,"cpu":"` + strings.Repeat("7", 1<<20) + `"`), want: "a number has at most 150 digits"},
		"a number with millions of digits":    {spec: kubemarkSpec(`,"cpu":"1e300000000"`), want: "an exponent of at most 308"},
		"a quantity that takes minutes":       {spec: kubemarkSpec(`,"memory":"1e-300000000"`), want: "memory"},
		"many fields that there are not":      {spec: openstack(`,` + manyFields(4000) + networks(1))},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(setWith(withTemplate(tc.spec)))
			if err != nil {
				t.Fatal(err)
			}
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw}}}
			began, had := used(t)
			response := hook.Handle(t.Context(), request)
			ended, has := used(t)
			if took := ended - began; took > mostTime {
				t.Errorf("it took %s", took)
			}
			if memory := has - had; memory > mostMemory {
				t.Errorf("it took %d MiB", memory>>20)
			}
			message := ""
			if response.Result != nil {
				message = response.Result.Message
			}
			if response.Allowed != (tc.want == "") || !strings.Contains(message, tc.want) {
				t.Errorf("want %q, got %t, %.2000s", tc.want, response.Allowed, message)
			}
		})
	}
}

// manyFields are fields that no module has.
func manyFields(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, `"`+strings.Repeat("a", i%60+1)+strings.Repeat("_", i/60)+`x":1`)
	}
	return strings.Join(fields, ",")
}

// everyRule are those of all modules and stacks.
func everyRule(t *testing.T) rules {
	t.Helper()
	loaded, err := load.Modules(modules.FS)
	if err != nil {
		t.Fatal(err)
	}
	programs, err := load.Modules(stacks.FS)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := module.NewCatalog(append(loaded, programs...)...)
	if err != nil {
		t.Fatal(err)
	}
	return newRules(Options{Catalog: catalog})
}
