//go:build life

package life

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/go-logr/logr"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/azure/arm"
	benchmarks "github.com/machine-iac/machine-iac-operator/test/bench/page"
	"github.com/machine-iac/machine-iac-operator/test/process"
)

var (
	fieldLoads = flag.String("field", "", "sizes of the MachineSet in TestField, each with how long a virtual machine takes, such as 40@60s,200@0s; empty skips it")
	fieldRest  = flag.Duration("rest", 0, "interval of the drift checks that TestField measures at the largest size; 0 for none")
	fieldFlags = flag.String("manager-flags", "", "flags of the manager in TestField beside the defaults, separated by spaces")
	fieldPage  = flag.String("page", "", "file that TestField writes its section into, beside the plot; empty for none")
)

const (
	fieldTitle = "In the field"
	fieldPlot  = "in-the-field.svg"
	// plainMachines are made and destroyed one by one.
	plainMachines = 3
)

var fieldText = template.Must(template.New("field").Parse(`
MachineSets of the Azure module, {{.Built}}, against the [simulated Resource
Manager](../test/azure/main.go); flags of the manager beside the defaults: {{.Flags}} ({{.Machine}}).
CPU and memory are the manager's with all its children. "floor" is a virtual machine's time.

| Machines | floor, s | all Provisioned after, s | CPU s each | processes | peak memory, GiB | all gone after, s | CPU s each | processes | peak memory, GiB |
|---|---|---|---|---|---|---|---|---|---|
{{range .Rows}}| {{.Size}} | {{printf "%.0f" .Latency.Seconds}} | {{.Up}} | {{.Down}} |
{{end}}
A plain loop over the same module takes {{printf "%.2f" .Plain.Create.Seconds}} CPU seconds for a create,
{{printf "%.2f" .Plain.Check.Seconds}} for a plan, {{printf "%.2f" .Plain.Destroy.Seconds}} for a destroy. The operator's create and destroy
take **{{printf "%.2f" .Ratio}}** of that ({{.Compared}}).
{{with .Rest}}
At rest, {{.Machines}} Machines with ` + "`--drift-interval={{.Interval}}`" + `: {{.Checks}} checks in {{printf "%.0f" .Wall.Seconds}} s took
{{printf "%.3f" .Each.Seconds}} CPU seconds each, **{{printf "%.2f" .Ratio}}** of a plain plan.
{{end}}
![Memory while {{.Largest.Size}} Machines come and go](` + fieldPlot + `)
`))

// load is a size of the MachineSet, and how long a virtual machine takes meanwhile.
type load struct {
	Size     int
	Latency  time.Duration
	Up, Down usage
}

// loads parses the flag -field.
func loads(t *testing.T) (all []load) {
	t.Helper()
	for text := range strings.SplitSeq(*fieldLoads, ",") {
		size, latency, _ := strings.Cut(text, "@")
		one := load{}
		var err error
		if one.Size, err = strconv.Atoi(size); err != nil {
			t.Fatal(err)
		}
		if one.Latency, err = time.ParseDuration(cmp.Or(latency, "1m")); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestField measures how long a MachineSet of a real provider takes to grow from 0 and to shrink again, where each virtual
// machine takes as long as in a cloud, and what the manager and its engines take meanwhile.
func TestField(t *testing.T) {
	if *fieldLoads == "" {
		t.Skip("-field has no sizes")
	}
	log.SetLogger(logr.Discard())
	*patience = 30 * time.Minute
	program, err := azure.program(root)
	if err != nil {
		t.Fatal(err)
	}
	var cloud *arm.Server
	field := azure
	managerFlags = append([]string{"--cluster-id=" + clusterID}, strings.Fields(*fieldFlags)...) // else the defaults
	field.open = func(w *world) *site {
		var here *site
		here, cloud = openResourceManager(w, arm.Options{})
		return here
	}
	w := openWorld(t.Context(), t)
	defer w.close(t)
	values := map[string]any{"Built": azure.built(root, program), "Flags": cmp.Or(*fieldFlags, "none"), "Machine": benchmarks.Machine()}
	all := loads(t)
	largest := slices.MaxFunc(all, func(a, b load) int { return cmp.Compare(a.Size, b.Size) })
	t.Run("field", func(t *testing.T) {
		here := w.on(t, &field, program)
		plain := here.plainLoop(t, program, cloud.Environment())
		t.Logf("the plain loop: %+v", plain)
		values["Plain"] = plain
		here.reach(t, 1) // initialises the module and copies the provider's program into the page cache
		here.reach(t, 0)
		for i := range all {
			one := &all[i]
			cloud.TakeFor(one.Latency)
			one.Up = here.reach(t, one.Size)
			if one.Size == largest.Size && *fieldRest > 0 && values["Rest"] == nil {
				values["Rest"] = here.rest(t, one.Size, plain.Check)
			}
			one.Down = here.reach(t, 0)
			t.Logf("%d Machines: up %+v, down %+v", one.Size, one.Up, one.Down)
			if one.Size == largest.Size {
				largest = *one
			}
		}
		compared := all[0]
		for _, one := range all {
			if one.Size == 200 {
				compared = one
			}
		}
		each := compared.Up.each() + compared.Down.each()
		values["Ratio"], values["Compared"] = each/(plain.Create+plain.Destroy).Seconds(), fmt.Sprintf("%d Machines of %s", compared.Size, compared.Latency)
	})
	values["Rows"], values["Largest"] = all, largest
	text := &strings.Builder{}
	if err := fieldText.Execute(text, values); err != nil {
		t.Fatal(err)
	}
	fmt.Println(text)
	if *fieldPage == "" || t.Failed() {
		return
	}
	err = errors.Join(benchmarks.Write(*fieldPage, benchmarks.Section{Title: fieldTitle, Text: text.String()}),
		os.WriteFile(filepath.Join(filepath.Dir(*fieldPage), fieldPlot), plot(largest), 0o644)) //nolint:gosec // documentation is for everybody
	if err != nil {
		t.Error(err)
	}
}

// usage is what a change of a MachineSet's size has taken.
type usage struct {
	size      int
	wall, cpu time.Duration
	// starts counts processes of the engine.
	starts float64
	// memory is what there was at each time, with what processes share counted once.
	memory []sample
}

type sample struct {
	at  time.Duration
	gib float64
}

func (u usage) each() float64 { return u.cpu.Seconds() / float64(u.size) }

func (u usage) peak() (most float64) {
	for _, one := range u.memory {
		most = max(most, one.gib)
	}
	return most
}

// remember keeps the most of each second.
func (u *usage) remember(now sample) {
	if n := len(u.memory); n > 0 && now.at.Truncate(time.Second) == u.memory[n-1].at.Truncate(time.Second) {
		now.gib = max(now.gib, u.memory[n-1].gib)
		u.memory = u.memory[:n-1]
	}
	u.memory = append(u.memory, now)
}

// String returns the cells of the table.
func (u usage) String() string {
	return fmt.Sprintf("%.0f | %.2f | %.0f | %.2f", u.wall.Seconds(), u.each(), u.starts, u.peak())
}

// reach scales the MachineSet, and waits until so many Machines have an instance, and no others exist.
func (w *world) reach(t *testing.T, size int) (used usage) {
	t.Helper()
	set := &machinev1beta1.MachineSet{}
	_ = w.client.Get(t.Context(), client.ObjectKeyFromObject(w.set), set) // none before the first scale
	used.size = max(size, int(ptr.Deref(set.Spec.Replicas, 0)))
	started, before, begun := w.starts(t), process.CPU(w.manager.PID()), time.Now()
	w.scale(t, int32(size))
	logged := begun
	w.until(t, fmt.Sprintf("%d Machines are Provisioned", size), func(ctx context.Context) error {
		used.remember(sample{time.Since(begun), gibOf(w.manager.PID())})
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
			t.Logf("after %s %s, %.2f GiB", time.Since(begun).Round(time.Second), text, used.peak())
		}
		return fmt.Errorf("%s", text)
	})
	used.wall, used.cpu = time.Since(begun), process.CPU(w.manager.PID())-before
	used.starts = w.starts(t) - started
	return used
}

// resting is what the checks of Machines at rest take.
type resting struct {
	Machines, Checks int
	Interval         time.Duration
	Wall, Each       time.Duration
	// Ratio is that of a check to a plain plan.
	Ratio float64
}

// rest restarts the manager with another interval of drift checks, and measures a quarter of them.
func (w *world) rest(t *testing.T, machines int, plan time.Duration) (r resting) {
	t.Helper()
	if err := w.manager.Stop(stopTimeout); err != nil {
		t.Fatal(err)
	}
	w.start(append(slices.Clone(w.arguments), "--drift-interval="+fieldRest.String())...)
	checks := func() float64 {
		return lab.Sum(w.scrape(t), "machine_iac_run_duration_seconds_count", `operation="drift"`)
	}
	pass := func(many int) {
		before := checks()
		w.until(t, fmt.Sprintf("%d Machines are checked", many), func(context.Context) error {
			if done := checks() - before; done < float64(many) {
				return fmt.Errorf("%.0f are", done)
			}
			return nil
		})
	}
	pass(machines / 10) // until then it starts
	count, cpu, begun := checks(), process.CPU(w.manager.PID()), time.Now()
	pass(machines / 4)
	r = resting{Machines: machines, Interval: *fieldRest, Checks: int(checks() - count), Wall: time.Since(begun)}
	r.Each = (process.CPU(w.manager.PID()) - cpu) / time.Duration(r.Checks)
	r.Ratio = r.Each.Seconds() / plan.Seconds()
	t.Logf("at rest: %+v", r)
	return r
}

// starts returns how many processes of the engine the manager has started.
func (w *world) starts(t *testing.T) float64 {
	t.Helper()
	return lab.Sum(w.scrape(t), "machine_iac_engine_starts_total")
}

// scrape returns the manager's metrics.
func (w *world) scrape(t *testing.T) string {
	t.Helper()
	token, err := w.lab.MetricsToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := w.manager.Scrape(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// gibOf returns the memory of a process and its descendants.
func gibOf(root int) (sum float64) {
	for _, one := range process.Tree(root) {
		sum += process.MiB(one.PID) / 1024
	}
	return sum
}
