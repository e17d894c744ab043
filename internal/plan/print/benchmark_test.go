package print

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/planning"
)

// setOf returns a MachineSet.
func setOf(name string, replicas int, disk int) string {
	return strings.NewReplacer("NAME", name, "REPLICAS", fmt.Sprint(replicas), "DISK", fmt.Sprint(disk)).Replace(`
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata: {name: NAME}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {set: NAME}}
  template:
    metadata:
      labels: {set: NAME, machine.openshift.io/cluster-api-cluster: demo}
    spec:
      providerSpec:
        value:
          apiVersion: example.com/v1
          kind: ExampleProviderSpec
          diskGiB: DISK
          credentialsSecret: {name: c}
---`)
}

// BenchmarkReplicas previews one MachineSet whose module is initialised already. The time does not depend on the replicas.
func BenchmarkReplicas(b *testing.B) {
	for _, replicas := range []int{1, 100, 10000} {
		b.Run(fmt.Sprint(replicas), func(b *testing.B) { previewed(b, setOf("workers", replicas, 20)) })
	}
}

// BenchmarkMachineSets previews many that differ, in one call.
func BenchmarkMachineSets(b *testing.B) {
	for _, number := range []int{10, 50} {
		b.Run(fmt.Sprint(number), func(b *testing.B) {
			var content strings.Builder
			for n := range number {
				content.WriteString(setOf(fmt.Sprintf("set-%d", n), 100, 20+n))
			}
			previewed(b, content.String())
		})
	}
}

// BenchmarkFirst previews one MachineSet with a cache that is empty.
func BenchmarkFirst(b *testing.B) {
	catalog := planning.ExampleCatalog(b)
	for b.Loop() {
		planned(b, catalog, planning.Planner(b), setOf("workers", 100, 20))
	}
}

func previewed(b *testing.B, content string) {
	catalog, planner := planning.ExampleCatalog(b), planning.Planner(b)
	planned(b, catalog, planner, setOf("first", 1, 1))
	for b.Loop() {
		planned(b, catalog, planner, content)
	}
}

func planned(b *testing.B, catalog *module.Catalog, planner preview.Planner, content string) {
	b.Helper()
	requests := planning.Requests(b, "benchmark.yaml", content, catalog)
	result, err := preview.Plan(b.Context(), requests, planner, "")
	if err != nil {
		b.Fatal(err)
	}
	if err := Print(&strings.Builder{}, result, "", false); err != nil {
		b.Fatal(err)
	}
}
