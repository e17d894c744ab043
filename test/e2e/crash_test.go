//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-iac/machine-iac-operator/hack/devcluster/cluster"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/chaos"
	"github.com/machine-iac/machine-iac-operator/test/observe"
)

const (
	few  = 2
	many = few + 10
	// fast is the polling interval for short moments.
	fast = 20 * time.Millisecond
	// awayFor exceeds the lease, so that the manager loses it.
	awayFor = 30 * time.Second
)

// settleSeconds is the settlement period of a copied module. With the module's own minute, each kill would cost a
// minute of waiting.
const settleSeconds = 10

// copyModules copies each engine's kubemark module with a shorter settlement period, and returns the manager's flags
// for them.
func (w *world) copyModules() (flags []string, err error) {
	for _, engine := range machineries {
		source := filepath.Dir(filepath.Dir(engine.example))
		folder := filepath.Join(w.dir, "copies", filepath.Dir(source))
		flags = append(flags, "--module-dir="+folder)
		if err := chaos.QuickCopy(w.lab.Path(source), folder, settleSeconds); err != nil {
			return nil, err
		}
	}
	return flags, nil
}

// moves makes the MachineSet use another template, and creates Machines from it.
func (w *world) moves(ctx context.Context, changes ...func(map[string]any)) {
	GinkgoHelper()
	w.replicas(ctx, 0)
	template, err := json.Marshal(
		map[string]any{"spec": map[string]any{
			"template": map[string]any{"spec": w.machine("unused", changes...).Spec},
		}})
	Expect(err).NotTo(HaveOccurred())
	w.kubectl(ctx, "patch", "machineset", setName, "--type=merge", "--patch", string(template))
	w.replicas(ctx, few)
}

func aManagerKilled() {
	BeforeAll(func(ctx SpecContext) { w.moves(ctx, chaos.Quicken) })
	AfterAll(func(ctx SpecContext) { w.moves(ctx) })

	for _, tc := range []struct {
		when   string
		moment func() bool
	}{
		{"as soon as an engine runs", func() bool { return w.enginesRun() }},
		{"when three of ten Nodes are made", func() bool { return w.nodes.Count() >= few+3 }},
		{"when seven of ten Nodes are made", func() bool { return w.nodes.Count() >= few+7 }},
	} {
		It(tc.when+" has made each of ten Machines once when it has run again", func(ctx SpecContext) {
			w.replicas(ctx, few)
			w.scale(ctx, many)
			w.killAt(ctx, tc.moment)
			seen, err := w.census(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(seen.settled(many)).NotTo(Succeed(), "the kill came too late")
			w.settles(ctx, many)
		})
	}

	It("while ten Machines are deleted has removed all ten when it has run again", func(ctx SpecContext) {
		w.replicas(ctx, many)
		w.scale(ctx, few)
		w.killAt(ctx, func() bool { return w.nodes.Count() <= many-4 })
		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.settled(few)).NotTo(Succeed(), "the kill came too late")
		w.settles(ctx, few)
	})

	It("after the Node was made and before the engine knew adopts that very Node", func(ctx SpecContext) {
		held := w.proxy.Hold(apiproxy.BeforeResponse, apiproxy.NodesMade)
		defer held.Lift()
		w.create(ctx, w.machine("adopted", credentialsFrom(proxySecret), chaos.Quicken))
		w.reaches(ctx, held)
		made := w.node(ctx, "adopted").UID
		w.killAndReplace(ctx)
		held.Lift()
		w.runs(ctx, "adopted")
		Expect(w.nodes.UIDs("adopted")).To(Equal([]types.UID{made}))
		w.removed(ctx, "adopted")
	})

	It("before the Node was made makes it when it has run again", func(ctx SpecContext) {
		held := w.proxy.Hold(apiproxy.BeforeRequest, apiproxy.NodesMade)
		defer held.Lift()
		w.create(ctx, w.machine("unmade", credentialsFrom(proxySecret), chaos.Quicken))
		w.reaches(ctx, held)
		if on.plainUserData {
			// During a run its folder contains secrets. Finding them now proves that the later search works.
			Expect(w.secretsShown(ctx)).To(ContainElement(ContainSubstring("the user data")))
		} else {
			Expect(w.secretsShown(ctx)).To(BeEmpty())
		}
		w.killAndReplace(ctx)
		Expect(w.nodes.UIDs("unmade")).To(BeEmpty())
		held.Refuse()
		w.runs(ctx, "unmade")
		Expect(w.nodes.UIDs("unmade")).To(HaveLen(1))
		w.removed(ctx, "unmade")
	})
}

func (w *world) enginesRun() bool {
	running, err := w.engines()
	return err == nil && slices.ContainsFunc(running, func(p observe.Process) bool { return p.Name == on.binary })
}

// killAt kills the manager at a short moment.
func (w *world) killAt(ctx context.Context, moment func() bool) {
	GinkgoHelper()
	Eventually(ctx, moment).WithTimeout(patience).WithPolling(fast).Should(BeTrue(),
		"waiting for the moment of the kill")
	w.pod.kill()
}

// killAndReplace kills the manager during a run, checks that the engine dies too, and waits until the next manager has
// cleaned up.
func (w *world) killAndReplace(ctx context.Context) {
	GinkgoHelper()
	Expect(w.enginesRun()).To(BeTrue(), "there is no engine run to interrupt")
	Expect(w.atRest()).NotTo(Succeed())
	w.replaceKilled(ctx, func() {})
}

// replaceKilled kills the manager, calls meanwhile before the next one starts, and checks that the next one cleans up.
func (w *world) replaceKilled(ctx context.Context, meanwhile func()) {
	GinkgoHelper()
	killed := w.pod.current()
	w.pod.kill()
	meanwhile()
	until(ctx, patience, "the manager has been started again", func(context.Context) error {
		if w.pod.current() == killed {
			return errors.New("the killed manager is the last one")
		}
		return nil
	})
	running, err := w.engines()
	Expect(err).NotTo(HaveOccurred())
	Expect(running).To(BeEmpty(), "the next manager has left processes of the killed one running")
}

// reaches waits until a request is held.
func (w *world) reaches(ctx context.Context, held *apiproxy.Hold) {
	GinkgoHelper()
	var path string
	Eventually(ctx, held.Reached).WithTimeout(patience).Should(Receive(&path),
		"waiting for a request to reach the proxy")
	say("    held %s: %s", held.At, path)
}

func aManagerStopped() {
	const goesOn, goesAway = "interrupted", "abandoned"

	BeforeAll(func(ctx SpecContext) { w.replicas(ctx, few) })

	It("in the middle of two creates ends in time and in order, with what it knows saved and no "+
		"lock held", func(ctx SpecContext) {
		held := w.proxy.Hold(apiproxy.BeforeRequest, apiproxy.NodesMade)
		defer held.Lift()
		w.create(ctx, w.machine(goesOn, credentialsFrom(proxySecret)),
			w.machine(goesAway, credentialsFrom(proxySecret)))
		w.reaches(ctx, held)
		w.reaches(ctx, held)

		asked, ended := time.Now(), make(chan error, 1)
		go func() { ended <- w.pod.end() }()
		Consistently(ctx, ended).WithTimeout(2*time.Second).ShouldNot(Receive(),
			"the manager did not wait for its engines")
		held.Lift()
		Eventually(ctx, ended).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
		say("    the manager took %.1f s to stop", time.Since(asked).Seconds())
		Expect(w.pod.current().State().ExitCode()).To(BeZero())

		seen, err := w.census(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.locks()).To(BeEmpty())
		Expect(w.atRest()).To(Succeed())
		for _, name := range []string{goesOn, goesAway} {
			known, err := seen.stateOf(w.get(ctx, name))
			Expect(err).NotTo(HaveOccurred())
			if uids := w.nodes.UIDs(name); known.nodeUID() == "" && len(uids) > 0 {
				Expect(seen.intents()).To(HaveKey(name),
					"Node %s was made, and neither the state nor an intent knows of it", name)
			}
		}
	})

	It("goes on with a create at the next start, and leaves nothing of a Machine that was deleted "+
		"meanwhile", func(ctx SpecContext) {
		w.kubectl(ctx, "delete", "machine", goesAway, "--wait=false")
		w.pod.start(ctx)
		w.runs(ctx, goesOn)
		Expect(w.nodes.UIDs(goesOn)).To(HaveLen(1))
		w.removed(ctx, goesAway, goesOn)
		w.settles(ctx, few)
	})
}

func anAPIServerAway() {
	It("for half a minute while ten Machines are made costs no Machine, and none is made twice", func(ctx SpecContext) {
		w.replicas(ctx, few)
		from, at := w.pod.logged(), time.Now()
		w.scale(ctx, many)
		Eventually(ctx, w.nodes.Count).WithTimeout(patience).WithPolling(fast).Should(BeNumerically(">=", few+3))

		Expect(w.lab.Cluster.Stop(ctx, cluster.APIServer)).To(Succeed())
		say("    the API server is away")
		for gone := time.Now(); time.Since(gone) < awayFor; time.Sleep(poll) {
			Expect(ctx.Err()).NotTo(HaveOccurred())
		}
		Expect(w.lab.Cluster.Start(ctx, cluster.APIServer)).To(Succeed())
		say("    the API server is back")

		w.settles(ctx, many)
		say("    the manager was started again %d times", w.pod.forgive())
		w.away = append(w.away, section{from: from, to: w.pod.logged()})
		w.provoked = append(w.provoked, span{from: at, to: time.Now()})
	})

	It("leaves nothing that could not be removed", func(ctx SpecContext) {
		w.replicas(ctx, few)
	})
}

func phaseIs(machine *machinev1beta1.Machine, phase string) error {
	if phaseOf(machine) == phase {
		return nil
	}
	return fmt.Errorf("expected %s: %s", phase, describe([]machinev1beta1.Machine{*machine}))
}
