//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/apiproxy"
	"github.com/machine-iac/machine-iac-operator/test/chaos"
)

// aManagerKilledInAnUp kills the manager at five moments of one create with Pulumi. Each is frozen by the
// infrastructure's API proxy, by the manager's API proxy, or by stopping the process that reads the program.
func aManagerKilledInAnUp() {
	var own *apiproxy.Proxy // the manager's API proxy
	var name string

	BeforeAll(func(ctx SpecContext) {
		w.replicas(ctx, few)
		own = w.throughAProxy(ctx)
	})
	BeforeEach(func() { name = "held-" + randomText()[:6] }) // names are unique

	// makes creates the Machine, with a provider that uses the proxy.
	makes := func(ctx context.Context) { w.create(ctx, w.machine(name, credentialsFrom(proxySecret), chaos.Quicken)) }
	// recovers expects that the Machine becomes Running with one instance, that Pulumi created it in the last run
	// unless it existed, and that nothing is left after the Machine is deleted.
	recovers := func(ctx context.Context, made ...types.UID) {
		GinkgoHelper()
		w.runs(ctx, name)
		uids := w.nodes.UIDs(name)
		Expect(uids).To(HaveLen(1))
		w.comesToKnow(ctx, name, learned{uid: uids[0], outputs: true})
		words := w.asksHere(ctx, "logs", name).out
		if len(made) > 0 {
			Expect(uids).To(Equal(made))
			// Node names are unique, so a second create would not show in UIDs.
			Expect(words).NotTo(ContainSubstring(on.instance + ": create"))
		} else {
			Expect(words).To(ContainSubstring(on.instance + ": create done"))
		}
		w.removed(ctx, name)
		w.settles(ctx, few)
	}

	It("after the intent and before the CLI has started makes the instance once", func(ctx SpecContext) {
		held := own.Hold(apiproxy.BeforeResponse, func(request *http.Request) bool {
			return writesSecret(request) && w.learned(ctx, name).intent
		})
		defer held.Lift()
		makes(ctx)
		w.reaches(ctx, held)
		Expect(w.enginesRun()).To(BeFalse(), "the CLI has started already")
		w.replaceKilled(ctx, held.Refuse)
		Expect(w.nodes.UIDs(name)).To(BeEmpty())
		recovers(ctx)
	})

	It("after the pending operation is in the Secret and before the instance exists makes "+
		"it once", func(ctx SpecContext) {
		held := w.proxy.Hold(apiproxy.BeforeRequest, apiproxy.NodesMade)
		defer held.Lift()
		makes(ctx)
		w.reaches(ctx, held)
		w.comesToKnow(ctx, name, learned{intent: true, making: true})
		w.killAndReplace(ctx)
		Expect(w.nodes.UIDs(name)).To(BeEmpty())
		Expect(w.learned(ctx, name).making).To(BeTrue(), "the Secret has lost what Pulumi had begun")
		held.Refuse()
		recovers(ctx)
	})

	It("after the instance exists and before the checkpoint says so adopts that very instance", func(ctx SpecContext) {
		held := w.proxy.Hold(apiproxy.BeforeResponse, apiproxy.NodesMade)
		defer held.Lift()
		makes(ctx)
		w.reaches(ctx, held)
		w.comesToKnow(ctx, name, learned{intent: true, making: true})
		made := w.node(ctx, name).UID
		w.killAndReplace(ctx)
		held.Lift()
		recovers(ctx, made)
	})

	It("after the checkpoint has the instance and before it has the outputs keeps that very "+
		"instance", func(ctx SpecContext) {
		held := w.proxy.Hold(apiproxy.BeforeResponse, apiproxy.NodesMade)
		defer held.Lift()
		makes(ctx)
		w.reaches(ctx, held)
		made := w.node(ctx, name).UID
		w.stopsProgram(syscall.SIGSTOP) // it reports the outputs
		held.Lift()
		w.comesToKnow(ctx, name, learned{intent: true, uid: made})
		w.killAndReplace(ctx)
		recovers(ctx, made)
	})

	It("after the up has ended and before the run is settled keeps that very instance", func(ctx SpecContext) {
		held := own.Hold(apiproxy.BeforeRequest, func(request *http.Request) bool {
			return writesSecret(request) && w.learned(ctx, name).outputs && !w.enginesRun()
		})
		defer held.Lift()
		makes(ctx)
		w.reaches(ctx, held)
		made := w.node(ctx, name).UID
		Expect(w.learned(ctx, name)).To(Equal(learned{intent: true, uid: made, outputs: true}))
		Expect(w.enginesRun()).To(BeFalse(), "the up goes on")
		w.replaceKilled(ctx, held.Refuse)
		recovers(ctx, made)
	})
}

// throughAProxy makes the manager use an API proxy until the chapter ends.
func (w *world) throughAProxy(ctx context.Context) *apiproxy.Proxy {
	GinkgoHelper()
	vouching, err := w.lab.Cluster.CAData()
	Expect(err).NotTo(HaveOccurred())
	opened, err := apiproxy.Open(w.lab.Cluster.Server(), vouching)
	Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.LoadFromFile(w.lab.OperatorKubeconfig())
	Expect(err).NotTo(HaveOccurred())
	for _, reached := range config.Clusters {
		reached.Server, reached.CertificateAuthorityData, reached.CertificateAuthority = opened.Address(),
			opened.Authority(), ""
	}
	file := filepath.Join(w.dir, "gated.kubeconfig")
	Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	w.pod.restart(ctx, "--kubeconfig="+file)
	DeferCleanup(func(ctx SpecContext) {
		w.pod.restart(ctx)
		opened.Close()
	})
	return opened
}

// learned is the content of a Machine's state Secret.
type learned struct {
	// intent means that a run has started and is not settled, making that Pulumi has started to create the instance.
	intent, making bool
	// uid is the complete instance's.
	uid     types.UID
	outputs bool
}

// learned reads a Machine's state, which may not exist.
func (w *world) learned(ctx context.Context, name string) learned {
	machine := &machinev1beta1.Machine{}
	if w.client.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, machine) != nil {
		return learned{}
	}
	seen, err := w.census(ctx)
	if err != nil {
		return learned{}
	}
	known, err := seen.stateOf(machine)
	if err != nil {
		return learned{}
	}
	return learned{
		intent: seen.intents()[name] != "", making: known.making(), uid: types.UID(known.nodeUID()),
		outputs: known.hasOutputs(),
	}
}

// comesToKnow waits until a Machine's state Secret matches exactly.
func (w *world) comesToKnow(ctx context.Context, name string, wanted learned) {
	GinkgoHelper()
	until(ctx, patience, fmt.Sprintf("the state of %s has %+v", name, wanted), func(ctx context.Context) error {
		if got := w.learned(ctx, name); got != wanted {
			return fmt.Errorf("it has %+v", got)
		}
		return nil
	})
}

// writesSecret matches requests that create or change Secrets.
func writesSecret(request *http.Request) bool {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/") // api/v1/namespaces/NAMESPACE/secrets[/NAME]
	return len(parts) > 4 && parts[3] == lab.Namespace && parts[4] == "secrets" && request.Method != http.MethodGet
}

// stopsProgram sends a signal to the process that reads the program of the only run.
func (w *world) stopsProgram(signal syscall.Signal) {
	GinkgoHelper()
	running, err := w.engines()
	Expect(err).NotTo(HaveOccurred())
	found := errors.New("no process reads a program")
	for _, process := range running {
		if process.Name == "pulumi-language-yaml" {
			found = syscall.Kill(process.PID, signal)
		}
	}
	Expect(found).NotTo(HaveOccurred())
}
