//go:build life

package life

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
	benchmarks "github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var (
	fieldSizes   = flag.String("field", "", "sizes of the MachineSet in TestField, such as 40,200,1000; empty skips it")
	fieldLatency = flag.Duration("latency", time.Minute, "how long a virtual machine takes in TestField")
	fieldFlags   = flag.String("manager-flags", "", "flags of the manager in TestField beside the defaults, separated by spaces")
	fieldPage    = flag.String("page", "", "file that TestField writes its table into; empty for none")
)

const fieldTitle = "In the field"

// TestField measures how long a MachineSet of a real provider takes to grow from 0 and to shrink again, where each virtual
// machine takes as long as in a cloud, and what the manager and its engines take meanwhile.
func TestField(t *testing.T) {
	if *fieldSizes == "" {
		t.Skip("-field has no sizes")
	}
	log.SetLogger(logr.Discard())
	*patience = 30 * time.Minute
	program, err := azure.program(root)
	if err != nil {
		t.Fatal(err)
	}
	field := azure
	managerFlags = append(managerFlags, strings.Fields(*fieldFlags)...)
	field.open = func(w *world) *site { return openResourceManager(w, arm.Options{MachineLatency: *fieldLatency}) }
	w := openWorld(t.Context(), t)
	defer w.close(t)
	rows := &strings.Builder{}
	fmt.Fprintf(rows, "MachineSets of the Azure module, %s, against the [simulated Resource Manager](../test/azure/main.go), where a virtual machine takes %s to "+
		"create and to delete; flags of the manager beside the defaults: %s (%s). CPU and memory are the manager's with all its children.\n\n"+
		"| Machines | all Provisioned after, s | CPU s each | processes | peak memory, GiB | all gone after, s | CPU s each | processes | peak memory, GiB |\n|---|---|---|---|---|---|---|---|---|\n",
		azure.built(root, program), *fieldLatency, cmp.Or(*fieldFlags, "none"), benchmarks.Machine())
	t.Run("field", func(t *testing.T) {
		here := w.on(t, &field, program)
		here.reach(t, 1) // initialises the module and copies the provider's program into the page cache
		here.reach(t, 0)
		for text := range strings.SplitSeq(*fieldSizes, ",") {
			size, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			up := here.reach(t, size)
			down := here.reach(t, 0)
			fmt.Fprintf(rows, "| %d | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f | %.0f | %.2f |\n", size,
				up.wall.Seconds(), up.cpu.Seconds()/float64(size), up.starts, up.gib, down.wall.Seconds(), down.cpu.Seconds()/float64(size), down.starts, down.gib)
			t.Logf("%d Machines: up %+v, down %+v", size, up, down)
		}
	})
	fmt.Println(rows)
	if *fieldPage != "" && !t.Failed() {
		if err := benchmarks.Write(*fieldPage, benchmarks.Section{Title: fieldTitle, Text: rows.String()}); err != nil {
			t.Error(err)
		}
	}
}

// usage is what a change of a MachineSet's size has taken.
type usage struct {
	wall, cpu time.Duration
	// starts counts processes of the engine.
	starts float64
	// gib is the most memory at one time, with what processes share counted once.
	gib float64
}

// reach scales the MachineSet, and waits until so many Machines have an instance, and no others exist.
func (w *world) reach(t *testing.T, size int) (used usage) {
	t.Helper()
	started, before, begun := w.starts(t), process.CPU(w.manager.PID()), time.Now()
	w.scale(t, int32(size))
	logged := begun
	w.until(t, fmt.Sprintf("%d Machines are Provisioned", size), func(ctx context.Context) error {
		used.gib = max(used.gib, gibOf(w.manager.PID()))
		var all machinev1beta1.MachineList
		if err := w.client.List(ctx, &all, client.InNamespace(lab.Namespace)); err != nil {
			return err
		}
		provisioned, other := 0, ""
		for i := range all.Items {
			if phaseOf(&all.Items[i]) == machinev1beta1.PhaseProvisioned {
				provisioned++
				continue
			}
			other = describe(&all.Items[i])
		}
		if provisioned == size && len(all.Items) == size {
			return nil
		}
		text := fmt.Sprintf("%d of %d are Provisioned, %d in all; %s", provisioned, size, len(all.Items), other)
		if time.Since(logged) > 10*time.Second {
			logged = time.Now()
			t.Logf("after %s %s, %.2f GiB", time.Since(begun).Round(time.Second), text, used.gib)
		}
		return fmt.Errorf("%s", text)
	})
	used.wall, used.cpu = time.Since(begun), process.CPU(w.manager.PID())-before
	used.starts = w.starts(t) - started
	return used
}

// starts returns how many processes of the engine the manager has started.
func (w *world) starts(t *testing.T) float64 {
	t.Helper()
	token, err := w.lab.MetricsToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := w.manager.Scrape(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return lab.Sum(text, "machine_iac_engine_starts_total")
}

// gibOf returns the memory of a process and its descendants.
func gibOf(root int) (sum float64) {
	for _, one := range process.Tree(root) {
		sum += process.MiB(one.PID) / 1024
	}
	return sum
}
