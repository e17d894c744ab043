//go:build e2e

package e2e_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/machine-iac/machine-iac-operator/hack/lab"
	"github.com/machine-iac/machine-iac-operator/test/audit"
)

// usedElsewhere are the permissions that the story does not use, by account, and their users.
var usedElsewhere = map[string][]exempt{
	"machine-api-controllers": {
		{`^list (nodes|machinedeployments|machinehealthchecks|(mutat|validat)ingwebhookconfigurations) ?`, informers},
		{`^get machinesets $`, "a MachineSet that adopts Machines: controllers/machineset"},
		{`^delete machinesets $`, "more revisions than a MachineDeployment keeps: controllers/machinedeployment"},
		{`^update machine(set|deployment)?s/finalizers `,
			"OwnerReferencesPermissionEnforcement, which asks the authorizer itself"},
		{`^(get|list|create|update|patch) ipaddress`, "clusters with pools of addresses: actuators/addresses"},
		{`^list credentialsrequests `, "OpenShift: internal/cluster/rights"},
		{`^update configmaps machine-iac-modules`, "a list of modules that has changed: internal/modulelist"},
		{`^get configmaps trusted-ca-bundle`, "OpenShift: internal/cluster/config"},
		{`^create events `, "an event about a Node, which is in the namespace default: controllers/nodelink"},
		{`^patch events `, "an event that is sent again within minutes"},
	},
	"machine-api-operator": {
		{`^\w+ configmaps machine-iac-dashboard`, "clusters with the Prometheus Operator: internal/operator/operands"},
		{`^get namespaces openshift-config-managed`,
			"clusters with the Prometheus Operator: internal/operator/operands"},
		{
			`^list (.*configurations|validatingadmissionpolic.*|(cluster)?role(binding)?s|machineapioperators|deployments|daemonsets|machinehealthchecks|serviceaccounts|services|` +
				`poddisruptionbudgets|networkpolicies|configmaps) `, informers},
		{`^(get|list|watch) (apiservers|featuregates|infrastructures|proxies|clusteroperators) `,
			"OpenShift: cmd/machine-api-operator"},
		{`^(create|patch) clusteroperators`, "OpenShift: cmd/machine-api-operator"},
		{`^(create|patch|delete) validatingadmissionpolic\w+ vsphere-`, "OpenShift on vSphere: internal/operator/operands"},
		{`^(get|list) (controlplanemachinesets|machines|machinesets) `, "binding these policies: the API server asks for it"},
		{`^\w+ (prometheusrules|servicemonitors) `,
			"clusters with the Prometheus Operator: internal/operator/operands"},
		{`^\w+ role(binding)?s prometheus-k8s-machine-api-controllers`,
			"clusters with the Prometheus Operator: internal/operator/operands"},
		{`^delete (deployments|services|(cluster)?rolebindings) `,
			"an object with another value in a field that cannot be changed, which is made anew"},
		{`^patch events `, "an event that is sent again within minutes"},
	},
}

// informers explains unused list permissions: this API server starts a watch with the existing objects.
const informers = "API servers before 1.34, which informers ask for a list first"

// exempt are permissions that something outside of the story uses.
type exempt struct {
	// permissions is a regular expression for the verb, the resource and the name.
	permissions string
	by          string
}

func whatThePermissionsAreFor() {
	for _, account := range slices.Sorted(maps.Keys(usedElsewhere)) {
		It("is known of each one that "+account+" has, and it needs no other", func(ctx SpecContext) {
			granted, err := audit.Granted(ctx, w.client, lab.Namespace, account)
			Expect(err).NotTo(HaveOccurred())
			comparison := w.comparison(account, granted)
			say("    %d permissions, %d requests", len(granted), comparison.Calls)
			Expect(comparison.Calls).To(BeNumerically(">", 0))
			Expect(comparison.Forbidden).To(BeEmpty())
			if suite, _ := GinkgoConfiguration(); len(suite.FocusStrings) > 0 || on.name != onTerraform {
				Skip("not all chapters were gone through")
			}
			var unused []string
			for _, permission := range comparison.Unused() {
				called := permission.Verb + " " + permission.Resource + " " + permission.Name
				if !slices.ContainsFunc(usedElsewhere[account],
					func(e exempt) bool { return regexp.MustCompile(e.permissions).MatchString(called) }) {
					unused = append(unused, permission.String())
				}
			}
			Expect(strings.Join(unused, "\n")).To(BeEmpty(),
				"nothing needs these permissions: remove them, or write down what does")
		})
	}
}

// comparison compares an account's requests with its rights. It ignores tests that impersonate the account, and
// intentionally forbidden requests.
func (w *world) comparison(account string, granted []audit.Permission) *audit.Comparison {
	GinkgoHelper()
	log, err := os.Open(w.cluster.AuditLog())
	Expect(err).NotTo(HaveOccurred())
	defer log.Close()
	comparison := audit.NewComparison(granted)
	Expect(audit.Read(log, func(c audit.Call) {
		provoked := slices.ContainsFunc(w.provoked,
			func(s span) bool { return c.Forbidden && s.from.Before(c.At) && c.At.Before(s.to) })
		if c.User == lab.UserOf(account) && !strings.HasPrefix(c.Agent, "kubectl/") && !provoked {
			comparison.Add(c)
		}
	})).To(Succeed())
	return comparison
}
