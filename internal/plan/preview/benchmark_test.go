package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machine-iac/machine-iac-operator/internal/module"
	"github.com/machine-iac/machine-iac-operator/internal/plan/preview"
	"github.com/machine-iac/machine-iac-operator/test/planning"
)

func benchmarkSet(name string, replicas int, disk int) string {
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

// BenchmarkReplicas previews a MachineSet of an initialised module. The time must not depend on the replicas.
func BenchmarkReplicas(b *testing.B) {
	for _, replicas := range []int{1, 100, 10000} {
		b.Run(fmt.Sprint(replicas), func(b *testing.B) { previewOf(b, benchmarkSet("workers", replicas, 20)) })
	}
}

// BenchmarkMachineSets previews many different MachineSets in one call.
func BenchmarkMachineSets(b *testing.B) {
	for _, number := range []int{10, 50} {
		b.Run(fmt.Sprint(number), func(b *testing.B) {
			var content strings.Builder
			for n := range number {
				content.WriteString(benchmarkSet(fmt.Sprintf("set-%d", n), 100, 20+n))
			}
			previewOf(b, content.String())
		})
	}
}

// BenchmarkFirst previews a MachineSet with an empty cache.
func BenchmarkFirst(b *testing.B) {
	catalog := planning.ExampleCatalog(b)
	for b.Loop() {
		planned(b, catalog, planning.Planner(b), benchmarkSet("workers", 100, 20))
	}
}

func previewOf(b *testing.B, content string) {
	catalog, planner := planning.ExampleCatalog(b), planning.Planner(b)
	planned(b, catalog, planner, benchmarkSet("first", 1, 1))
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
	if err := preview.Print(&strings.Builder{}, result, "", false); err != nil {
		b.Fatal(err)
	}
}
