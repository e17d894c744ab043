package machineset

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

// setLister lists MachineSets, or fails.
type setLister struct {
	client.Reader
	sets []machinev1beta1.MachineSet
	err  error
}

func (l *setLister) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if _, limited := ctx.Deadline(); !limited {
		return errors.New("a scrape must not wait for ever")
	}
	list.(*machinev1beta1.MachineSetList).Items = l.sets
	return l.err
}

func TestCollector(t *testing.T) {
	set := func(name string, replicas, ready, available int32) machinev1beta1.MachineSet {
		return *builder.MachineSet(func(s *machinev1beta1.MachineSet) {
			s.TypeMeta = metav1.TypeMeta{} // as a cache has it
			s.Name, s.Namespace = name, "ns"
			s.CreationTimestamp = metav1.NewTime(time.Unix(1700000000, 0))
			s.Status = machinev1beta1.MachineSetStatus{Replicas: replicas, ReadyReplicas: ready, AvailableReplicas: available}
			if ready < replicas-1 {
				s.Status.Conditions = []machinev1beta1.Condition{{Type: v1beta1.ConditionFrozen}}
			}
		})
	}
	const up = "mapi_mao_collector_up{kind=mapi_machineset_items} "
	of := func(name string, replicas, ready, available, frozen int) []string {
		labels := fmt.Sprintf("{name=%s,namespace=ns} ", name)
		return []string{
			"mapi_machineset_created_timestamp_seconds{api_version=machine.openshift.io/v1beta1,name=" + name + ",namespace=ns} 1.7e+09",
			"mapi_machine_set_status_replicas" + labels + fmt.Sprint(replicas),
			"mapi_machine_set_status_replicas_ready" + labels + fmt.Sprint(ready),
			"mapi_machine_set_status_replicas_available" + labels + fmt.Sprint(available),
			"machine_iac_machineset_frozen" + labels + fmt.Sprint(frozen),
		}
	}
	tcs := map[string]struct {
		lister setLister
		want   []string
	}{
		"none is counted as none": {setLister{}, []string{up + "1", "mapi_machineset_items{} 0"}},
		"each MachineSet has its series": {
			setLister{sets: []machinev1beta1.MachineSet{set("a", 5, 4, 3), set("b", 2, 0, 0)}},
			slices.Concat([]string{up + "1", "mapi_machineset_items{} 2"}, of("a", 5, 4, 3, 0), of("b", 2, 0, 0, 1)),
		},
		"a failure is reported, and nothing is made up": {
			setLister{sets: []machinev1beta1.MachineSet{set("a", 5, 4, 3)}, err: errors.New("no")}, []string{up + "0"},
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

func TestCollectorForgetsDeletedMachineSets(t *testing.T) {
	lister := &setLister{sets: []machinev1beta1.MachineSet{*builder.MachineSet()}}
	collector := NewCollector(t.Context(), lister)
	if got := gathered(t, collector); len(got) != 7 {
		t.Errorf("got %q", got)
	}
	lister.sets = nil
	if got := gathered(t, collector); len(got) != 2 {
		t.Errorf("got %q, want the count and that it could be made", got)
	}
}

func TestCollectorSharesARegistryWithOthersOfTheMachineAPI(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(t.Context(), &setLister{}), prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mapi_mao_collector_up", Help: "Whether the objects behind a Machine API metric could be listed.",
		ConstLabels: prometheus.Labels{"kind": "mapi_machine_items"},
	}))
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
