package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// machineLister lists Machines, or fails.
type machineLister struct {
	client.Reader
	machines []*machinev1beta1.Machine
	err      error
}

func (l *machineLister) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if _, limited := ctx.Deadline(); !limited {
		return errors.New("a scrape must not wait for ever")
	}
	for _, machine := range l.machines {
		list.(*machinev1beta1.MachineList).Items = append(list.(*machinev1beta1.MachineList).Items, *machine)
	}
	return l.err
}

func TestCollector(t *testing.T) {
	machine := func(name string, mods ...modifier) *machinev1beta1.Machine {
		return builder.Machine(append([]modifier{builder.Stored(time.Unix(1700000000, 0)), func(m *machinev1beta1.Machine) {
			m.TypeMeta = metav1.TypeMeta{} // as a cache has it
			m.Name, m.Namespace = name, "ns"
		}}, mods...)...)
	}
	series := func(name, node, phase, id string) string {
		return fmt.Sprintf("mapi_machine_created_timestamp_seconds{api_version=machine.openshift.io/v1beta1,name=%s,namespace=ns,node=%s,phase=%s,"+
			"spec_provider_id=%s} 1.7e+09", name, node, phase, id)
	}
	full := machine("full", builder.WithPhase("Running"), builder.WithProviderID("fake://1"),
		builder.WithNodeRef(builder.Node(func(n *corev1.Node) { n.Name = "node-1" })))
	const up = "mapi_mao_collector_up{kind=mapi_machine_items} "
	tcs := map[string]struct {
		lister machineLister
		want   []string
	}{
		"none is counted as none": {machineLister{}, []string{up + "1", "mapi_machine_items{} 0"}},
		"each Machine has its series, those without a phase are only counted": {
			machineLister{machines: []*machinev1beta1.Machine{full, machine("bare", builder.WithPhase("Provisioning")), machine("new"), machine("odd", builder.WithPhase(""))}},
			[]string{up + "1", "mapi_machine_items{} 4", series("full", "node-1", "Running", "fake://1"), series("bare", "", "Provisioning", "")},
		},
		"a failure is reported, and nothing is made up": {
			machineLister{machines: []*machinev1beta1.Machine{full}, err: errors.New("no")}, []string{up + "0"},
		},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, gathered(t, NewCollector(t.Context(), &tc.lister))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCollectorForgetsDeletedMachines(t *testing.T) {
	lister := &machineLister{machines: []*machinev1beta1.Machine{builder.Machine(builder.WithPhase("Running"))}}
	collector := NewCollector(t.Context(), lister)
	if got := gathered(t, collector); len(got) != 3 {
		t.Errorf("got %q", got)
	}
	lister.machines = nil
	if got := gathered(t, collector); len(got) != 2 {
		t.Errorf("got %q, want the count and that it could be made", got)
	}
}

func TestCollectorSharesARegistryWithOthersOfTheMachineAPI(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(t.Context(), &machineLister{}), prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mapi_mao_collector_up", Help: "Whether the objects behind a Machine API metric could be listed.",
		ConstLabels: prometheus.Labels{"kind": "mapi_machineset_items"},
	}))
	registry.MustRegister(NewMetrics().Collectors()...)
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

// gathered returns the samples of a collector as text, sorted.
func gathered(t *testing.T, collector prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, series := range family.GetMetric() {
			labels := make([]string, 0, len(series.GetLabel()))
			for _, label := range series.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			out = append(out, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), series.GetGauge().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}
