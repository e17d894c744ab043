// Package verify holds what must be true of the repository as a whole, and the tests that see to it.
package verify

import (
	"fmt"
	"slices"
	"strings"
)

// modulePath is the prefix of this repository's import paths.
const modulePath = "github.com/machine-iac/machine-iac-operator"

// rule says what the packages of a path may import.
type rule struct {
	// path is matched from the repository's root: "..." at the end stands for the path itself and all below it, "*" for one part.
	path string
	// may lists what they may import inside the repository, their tests included. A package may always be imported by its own tests.
	may []string
	// tests lists what their tests may import besides. Every test may import what helps.
	tests []string
	// never lists prefixes of what they may not import outside of the repository, their tests included.
	never []string
	// helps says that they serve tests or developers: no product package may import them, and test frameworks are theirs to use.
	helps bool
}

// rules are the import table of docs/architecture.md. The first whose path matches holds, so the special stands before the general.
// A new package gets a row there and a rule here.
var rules = []rule{
	{path: "cmd/machine-controllers", may: []string{"..."}},
	{path: "cmd/machine-api-operator", may: []string{"install", "internal/logs", "internal/operator/..."}},
	{path: "cmd/kubectl-machine", may: []string{"api/...", "actuators/...", "cmd/kubectl-machine/...", "internal/...", "modules", "stacks"}, tests: []string{"install"}},
	{
		path: "cmd/kubectl-machine/cli",
		may: []string{
			"internal/backup", "internal/inspect", "internal/inspect/print", "internal/module/store", "internal/state", "internal/state/encryption",
			"internal/state/pulumikeys",
		},
	},
	{
		path: "cmd/kubectl-machine/module",
		may: []string{
			"api/...", "cmd/kubectl-machine/cli", "internal/engine/batch", "internal/engine/sandbox", "internal/engine/tofu", "internal/module", "internal/module/contract", "internal/module/load",
			"internal/module/scaffold", "internal/module/source", "internal/module/store",
		},
	},
	{path: "cmd/kubectl-machine/ownership", may: []string{"cmd/kubectl-machine/cli", "internal/backup", "internal/inspect", "internal/inspect/ownership", "internal/lifecycle", "internal/lifecycle/record", "internal/state"}},
	{
		path: "cmd/kubectl-machine/plan",
		may: []string{
			"api/...", "cmd/kubectl-machine/cli", "internal/cluster/config", "internal/desired", "internal/engine/pulumi", "internal/engine/sandbox", "internal/engine/tofu",
			"internal/inspect",
			"internal/module", "internal/module/load", "internal/module/platform", "internal/module/source", "internal/plan/...", "internal/state", "modules", "stacks",
		},
	},
	{
		path: "cmd/kubectl-machine/state",
		may: []string{
			"cmd/kubectl-machine/cli", "internal/backup", "internal/inspect", "internal/inspect/ownership", "internal/inspect/print", "internal/inspect/show",
			"internal/lifecycle", "internal/module/store", "internal/state",
		},
	},
	{path: "cmd/kubectl-machine/uninstall", may: []string{"cmd/kubectl-machine/cli", "install", "internal/inspect", "internal/operator/operands", "internal/state"}},
	{path: "cmd/termination-handler", may: []string{"internal/termination"}},
	{path: "api/v1alpha1"},
	{path: "internal/logs"},
	{path: "internal/operator", may: []string{"internal/operator/apply", "internal/operator/operands"}, tests: []string{"install"}},
	{path: "internal/operator/apply"},
	{path: "internal/operator/operands", tests: []string{"install"}},
	{path: "install"},
	{path: "controllers/machineapi"},
	{path: "controllers/pipeline"},
	{path: "controllers/*", may: []string{"api/...", "actuators", "controllers/machineapi", "controllers/pipeline", "internal/cluster/events"}},
	{path: "actuators", may: []string{"api/..."}},
	{path: "actuators/addresses", may: []string{"internal/module", "internal/module/addresses", "internal/render"}},
	{path: "actuators/conformance", may: []string{"api/...", "actuators"}, helps: true},
	{path: "actuators/fake", may: []string{"api/...", "actuators"}, helps: true},
	{
		path:  "actuators/iac",
		may:   []string{"actuators", "actuators/addresses", "actuators/recovery", "actuators/reporting", "actuators/runner", "api/...", "internal/...", "modules"},
		tests: []string{"actuators/orphans", "actuators/pulumi", "actuators/terraform", "stacks"},
	},
	{
		path: "actuators/orphans",
		may: []string{
			"actuators", "internal/cluster/events", "internal/lifecycle", "internal/lifecycle/record", "internal/module", "internal/module/store",
			"internal/runs", "internal/state", "internal/state/statefile",
		},
	},
	{
		path: "actuators/recovery",
		may: []string{
			"actuators", "actuators/reporting", "actuators/runner", "api/...", "internal/runs", "internal/state", "internal/state/statefile",
		},
		tests: []string{"actuators/terraform", "internal/engine/tofu", "internal/state/backend"},
	},
	{
		path: "actuators/reporting",
		may: []string{
			"actuators", "api/...", "internal/cluster/events", "internal/desired", "internal/engine/failure", "internal/leadership", "internal/lifecycle",
			"internal/lifecycle/record", "internal/runs", "internal/state",
		},
		tests: []string{"internal/state/statefile"},
	},
	{path: "actuators/runner", may: []string{"internal/engine", "internal/engine/failure", "internal/module", "internal/state"}},
	{path: "actuators/pulumi", may: []string{"actuators/runner", "internal/engine", "internal/engine/failure", "internal/engine/pulumi", "internal/module", "internal/state", "internal/state/statefile"}},
	{
		path:  "actuators/jobs",
		may:   []string{"actuators/remote", "actuators/runner", "actuators/terraform", "internal/engine", "internal/engine/failure", "internal/state/backend"},
		tests: []string{"internal/engine/tofu", "internal/module", "internal/module/load", "internal/state", "modules"},
	},
	{
		path: "actuators/remote",
		may: []string{
			"actuators/runner", "internal/engine", "internal/engine/failure", "internal/module/load", "internal/module/snapshot", "internal/state", "internal/state/backend",
		},
		tests: []string{"actuators/terraform", "internal/engine/tofu", "internal/module", "internal/module/moduletest", "modules"},
	},
	{path: "actuators/terraform", may: []string{"actuators/runner", "internal/engine", "internal/engine/batch", "internal/engine/failure", "internal/engine/tofu", "internal/module", "internal/state", "internal/state/backend"}},
	{
		path: "internal/backup",
		may: []string{
			"internal/lifecycle", "internal/lifecycle/record", "internal/module", "internal/module/load", "internal/module/snapshot",
			"internal/module/store", "internal/runs",
			"internal/state", "internal/state/pulumikeys", "internal/state/statefile",
		},
	},
	{path: "internal/cluster/config", may: []string{"api/...", "internal/module", "internal/module/platform"}},
	{path: "internal/cluster/events"},
	{path: "internal/cluster/references"},
	{path: "internal/cluster/rights", may: []string{"api/..."}, tests: []string{"internal/module/load", "modules"}},
	{path: "internal/cluster/servingcert"},
	{
		path: "internal/desired",
		may: []string{
			"api/...", "internal/cluster/references", "internal/cluster/rights", "internal/lifecycle", "internal/module", "internal/module/addresses", "internal/module/credential", "internal/module/instance", "internal/module/platform",
			"internal/module/store", "internal/render", "internal/runs", "internal/state",
		},
		tests: []string{"internal/lifecycle/record", "internal/module/load", "modules"},
	},
	{path: "internal/engine", may: []string{"internal/engine/failure"}, never: kubernetes},
	{path: "internal/engine/failure", may: []string{"internal/engine/redact"}, never: kubernetes},
	{path: "internal/engine/plugin", may: []string{"internal/engine/provider", "internal/engine/sandbox", "internal/engine/workdir"}, never: kubernetes},
	{path: "internal/engine/pulumi", may: []string{"internal/engine", "internal/engine/failure", "internal/engine/plugin", "internal/engine/provider", "internal/engine/redact", "internal/engine/repeat", "internal/engine/sandbox", "internal/engine/workdir"}, never: kubernetes},
	{path: "internal/engine/batch", may: []string{"internal/engine"}, tests: []string{"internal/engine/failure", "modules"}, never: kubernetes},
	{path: "internal/engine/redact", never: kubernetes},
	{path: "internal/engine/repeat", never: kubernetes},
	{path: "internal/engine/sandbox", never: kubernetes},
	{path: "internal/engine/memory", never: kubernetes},
	{path: "internal/engine/supervisor", may: []string{"internal/engine/sandbox", "internal/engine/workdir"}, never: kubernetes},
	{path: "internal/engine/tofu", may: []string{"internal/engine", "internal/engine/batch", "internal/engine/failure", "internal/engine/provider", "internal/engine/redact", "internal/engine/sandbox", "internal/engine/workdir"}, never: kubernetes},
	{path: "internal/engine/provider", may: []string{"internal/engine/sandbox", "internal/engine/workdir"}, never: kubernetes},
	{path: "internal/engine/workdir", never: kubernetes},
	{path: "internal/inspect", may: []string{"api/...", "internal/inspect/print", "internal/lifecycle", "internal/lifecycle/record", "internal/state"}},
	{path: "internal/inspect/ownership", may: []string{"api/...", "internal/inspect", "internal/inspect/print", "internal/lifecycle", "internal/lifecycle/record", "internal/state", "internal/state/statefile"}},
	{path: "internal/inspect/print"},
	{path: "internal/inspect/show", may: []string{"internal/engine/redact", "internal/inspect/print", "internal/lifecycle", "internal/lifecycle/record", "internal/state", "internal/state/statefile"}},
	{path: "internal/keyfile", never: kubernetes},
	{path: "internal/leadership", may: []string{"internal/state"}},
	{
		path: "internal/lifecycle",
		may: []string{
			"api/...", "internal/engine", "internal/engine/failure", "internal/lifecycle/record", "internal/module/instance", "internal/render", "internal/runs", "internal/state",
			"internal/state/statefile",
		},
	},
	{path: "internal/lifecycle/record", may: []string{"internal/module/instance", "internal/runs", "internal/state"}},
	{
		path:  "internal/module",
		may:   []string{"api/...", "internal/module/credential", "internal/module/hclfuncs", "internal/module/snapshot"},
		tests: []string{"internal/module/contract", "internal/module/load"},
	},
	{path: "internal/module/confine", may: []string{"internal/module/contract", "internal/module/snapshot"}},
	{
		path:  "internal/module/contract",
		may:   []string{"api/...", "internal/module", "internal/module/credential", "internal/module/hclfuncs", "internal/module/instance", "internal/module/platform", "internal/module/snapshot"},
		tests: []string{"internal/module/load"},
	},
	{path: "internal/module/credential", may: []string{"api/..."}, tests: []string{"internal/module/contract", "internal/module/load", "internal/module/moduletest"}},
	{path: "internal/module/hclfuncs"},
	{path: "internal/module/addresses", may: []string{"api/..."}},
	{path: "internal/module/instance", may: []string{"api/...", "internal/module", "internal/module/credential"}, tests: []string{"internal/module/contract", "internal/module/load"}},
	{
		path:  "internal/module/load",
		may:   []string{"internal/module", "internal/module/confine", "internal/module/contract", "internal/module/snapshot", "internal/module/stack"},
		tests: []string{"modules", "stacks"},
	},
	{path: "internal/module/moduletest", may: []string{"internal/module", "internal/module/load"}, helps: true},
	{path: "internal/module/platform"},
	{path: "internal/module/scaffold", may: []string{"internal/module", "internal/module/load"}},
	{path: "internal/module/snapshot"},
	{
		path:  "internal/module/source",
		may:   []string{"internal/module", "internal/module/load", "internal/module/snapshot"},
		tests: []string{"internal/module/contract", "modules"},
	},
	{
		path:  "internal/module/stack",
		may:   []string{"api/...", "internal/engine/repeat", "internal/module", "internal/module/confine", "internal/module/contract", "internal/module/hclfuncs", "internal/module/snapshot"},
		tests: []string{"internal/module/load"},
	},
	{path: "internal/module/store", may: []string{"internal/keyfile", "internal/module", "internal/module/load", "internal/module/snapshot"}, tests: []string{"modules"}},
	{path: "internal/plan/diff", may: []string{"internal/engine", "internal/plan/offline", "internal/plan/text"}},
	{
		path: "internal/plan/live",
		may: []string{
			"internal/desired", "internal/lifecycle", "internal/module", "internal/module/platform", "internal/module/store", "internal/plan/diff", "internal/plan/manifest",
			"internal/plan/offline", "internal/plan/preview", "internal/render", "internal/runs", "internal/state",
		},
		tests: []string{
			"actuators", "actuators/iac", "actuators/runner", "actuators/terraform", "api/...", "internal/engine/sandbox", "internal/engine/tofu", "internal/leadership",
			"internal/lifecycle/record", "internal/module/load", "internal/plan/print", "internal/state/backend", "modules",
		},
	},
	{
		path:  "internal/plan/manifest",
		may:   []string{"api/...", "internal/module", "internal/module/instance", "internal/module/platform", "internal/plan/offline", "internal/plan/text", "internal/render"},
		tests: []string{"internal/module/load"},
	},
	{path: "internal/plan/offline", may: []string{"internal/engine", "internal/engine/failure", "internal/engine/redact", "internal/engine/sandbox", "internal/engine/tofu", "internal/plan/stub"}},
	{
		path:  "internal/plan/preview",
		may:   []string{"api/...", "internal/engine", "internal/engine/failure", "internal/module", "internal/plan/diff", "internal/plan/manifest", "internal/plan/offline", "internal/plan/text"},
		tests: []string{"internal/engine/pulumi", "internal/module/load", "internal/plan/program", "internal/render"},
	},
	{
		path:  "internal/plan/print",
		may:   []string{"internal/engine", "internal/plan/diff", "internal/plan/manifest", "internal/plan/preview", "internal/plan/text"},
		tests: []string{"internal/module"},
	},
	{path: "internal/plan/program", may: []string{"internal/engine", "internal/engine/failure", "internal/engine/pulumi", "internal/engine/repeat", "internal/engine/sandbox", "internal/plan/offline", "internal/plan/stub"}},
	{path: "internal/plan/stub", may: []string{"internal/engine/sandbox", "internal/engine/tofu"}, never: kubernetes},
	{path: "internal/plan/text"},
	{path: "internal/render", may: []string{"api/...", "internal/module", "internal/module/addresses", "internal/module/credential", "internal/module/hclfuncs", "internal/module/platform"}, tests: []string{"internal/module/load"}},
	{path: "internal/runs"},
	{path: "internal/state", may: []string{"internal/state/encryption", "internal/state/layout", "internal/state/preload", "internal/state/statefile"}, tests: []string{"internal/state/backend"}},
	{path: "internal/state/backend", may: []string{"internal/state", "internal/state/statefile"}},
	{path: "internal/state/encryption", may: []string{"internal/keyfile"}, never: kubernetes},
	{path: "internal/state/layout", may: []string{"internal/state/encryption", "internal/state/statefile"}, never: kubernetes},
	{path: "internal/state/preload"},
	{path: "internal/state/pulumikeys", may: []string{"internal/engine/pulumi", "internal/state", "internal/state/statefile"}},
	{path: "internal/state/statefile"},
	{path: "internal/termination"},
	{path: "modules", tests: []string{"internal/module", "internal/module/credential", "internal/module/hclfuncs", "internal/module/instance", "internal/module/load", "internal/module/platform", "internal/render"}},
	{path: "examples/stacks/..."},
	{
		path: "stacks",
		tests: []string{
			"api/...", "internal/engine", "internal/engine/failure", "internal/engine/pulumi", "internal/engine/tofu", "internal/module", "internal/module/instance",
			"internal/module/load", "internal/plan/offline", "internal/plan/program", "internal/render",
		},
	},
	{path: "webhooks", may: []string{"api/...", "internal/cluster/references", "internal/cluster/rights", "internal/module", "internal/module/platform", "internal/render"}, tests: []string{"internal/module/load", "modules", "stacks"}},
	{path: "hack/...", may: []string{"hack/..."}, helps: true},
	{path: "test/...", may: []string{"..."}, helps: true},
}

// kubernetes is what a package imports that knows of Kubernetes.
var kubernetes = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/openshift/api"}

// frameworks are for tests and what helps them.
var frameworks = []string{"testing", "github.com/onsi/ginkgo", "github.com/onsi/gomega", "sigs.k8s.io/controller-runtime/pkg/envtest"}

// imports are what one package imports. Paths inside the repository are from its root, with "./" before them.
type imports struct {
	path           string
	product, tests []string
}

// violations returns what violates the rules, each with what to do.
func violations(rules []rule, packages []imports) []string {
	var out []string
	for _, p := range packages {
		r := ruleFor(rules, p.path)
		if r == nil {
			out = append(out, fmt.Sprintf("%s: no rule says what it may import; add one to the table in hack/verify/rules.go and a row to docs/architecture.md", p.path))
			continue
		}
		for _, imported := range p.product {
			if problem := r.check(rules, imported); problem != "" {
				out = append(out, fmt.Sprintf("%s imports %s: %s", p.path, imported, problem))
			}
		}
		for _, imported := range p.tests {
			if problem := r.checkTest(rules, p.path, imported); problem != "" {
				out = append(out, fmt.Sprintf("a test of %s imports %s: %s", p.path, imported, problem))
			}
		}
	}
	return out
}

// check returns what is wrong with an import of a package that the rule is for, "" for nothing.
func (r *rule) check(rules []rule, imported string) string {
	inside, ok := strings.CutPrefix(imported, "./")
	if !ok {
		if !r.helps && underAny(frameworks, imported) {
			return "it is for tests; a product package must do without"
		}
		return r.checkForeign(imported)
	}
	if target := ruleFor(rules, inside); target != nil && target.helps && !r.helps {
		return "it helps tests and developers; a product package must do without"
	}
	return r.checkInside(inside, r.may)
}

// checkTest is check for an import of a test.
func (r *rule) checkTest(rules []rule, own, imported string) string {
	inside, ok := strings.CutPrefix(imported, "./")
	if !ok {
		return r.checkForeign(imported)
	}
	if target := ruleFor(rules, inside); inside == own || target != nil && target.helps {
		return ""
	}
	return r.checkInside(inside, slices.Concat(r.may, r.tests))
}

func (r *rule) checkForeign(imported string) string {
	if underAny(r.never, imported) {
		return fmt.Sprintf("%s must not know of it; see docs/architecture.md", r.path)
	}
	return ""
}

func (r *rule) checkInside(inside string, may []string) string {
	if slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, inside) }) {
		return ""
	}
	if len(may) == 0 {
		return fmt.Sprintf("%s may import nothing inside the repository", r.path)
	}
	return fmt.Sprintf("%s may import only %s; invert the dependency, or change docs/architecture.md and hack/verify/rules.go together",
		r.path, strings.Join(may, ", "))
}

func ruleFor(rules []rule, path string) *rule {
	for i := range rules {
		if matches(rules[i].path, path) {
			return &rules[i]
		}
	}
	return nil
}

// matches reports whether a pattern, as rule.path has it, is for a path.
func matches(pattern, path string) bool {
	wanted, parts := strings.Split(pattern, "/"), strings.Split(path, "/")
	if last := len(wanted) - 1; wanted[last] == "..." {
		wanted = wanted[:last]
		parts = parts[:min(len(parts), last)]
	}
	return slices.EqualFunc(wanted, parts, func(want, part string) bool { return want == "*" || want == part })
}

// underAny reports whether an import path is one of the prefixes or below one.
func underAny(prefixes []string, imported string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return imported == prefix || strings.HasPrefix(imported, prefix+"/") })
}
