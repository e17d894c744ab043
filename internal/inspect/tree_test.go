package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machine-iac/machine-iac-operator/api/v1beta1"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/golden"
	"github.com/machine-iac/machine-iac-operator/test/printing"
)

// extensions are those of the golden files, by format.
var extensions = map[string]string{"table": "txt", "wide": "wide.txt", "json": "json", "yaml": "yaml"}

// only leaves the Machines with these names, in this order.
func only(facts *Facts, names ...string) *Facts {
	var machines []machinev1beta1.Machine
	for _, name := range names {
		i := slices.IndexFunc(facts.Machines, func(m machinev1beta1.Machine) bool { return m.Name == name })
		machines = append(machines, facts.Machines[i])
	}
	facts.Machines = machines
	return facts
}

func TestTree(t *testing.T) {
	forest := Tree(everything())
	for format, extension := range extensions {
		t.Run(format, func(t *testing.T) { golden.Check(t, "testdata/tree."+extension, printing.As(t, format, forest)) })
	}
	t.Run("a table is what is printed when nobody asks", func(t *testing.T) {
		if got := printing.As(t, "", forest); got != printing.As(t, "table", forest) {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("of all namespaces", func(t *testing.T) {
		facts := everything()
		facts.Namespace, facts.Machines[4].Namespace = "", "elsewhere"
		if got := printing.As(t, "", Tree(facts)); !strings.Contains(got, "\nMachine/elsewhere/new ") || !strings.Contains(got, "─ Machine/openshift-machine-api/workers-a ") {
			t.Errorf("it prints\n%s", got)
		}
	})
	t.Run("without Nodes", func(t *testing.T) {
		facts := everything()
		facts.Nodes = nil
		if got := printing.As(t, "", Tree(only(facts, "workers-a"))); !strings.Contains(got, "Node/ready ") || !strings.Contains(got, "NotRead") {
			t.Errorf("it prints\n%s", got)
		}
	})
}

func TestTreeOfAMachineDeployment(t *testing.T) {
	deployment := v1beta1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pool", UID: "uid-of-pool", CreationTimestamp: ago(time.Hour),
			Annotations: map[string]string{v1beta1.RevisionAnnotation: "3"}},
		Spec: v1beta1.MachineDeploymentSpec{Replicas: ptr.To[int32](3)},
		Status: v1beta1.MachineDeploymentStatus{ReadyReplicas: 2, UpdatedReplicas: 1, Conditions: []metav1.Condition{
			condition(v1beta1.ConditionReplicaFailure, metav1.ConditionTrue, "FailedCreate", "quota"),
			condition(v1beta1.ConditionReconciling, metav1.ConditionTrue, "Rollout", "1 of 3"),
			condition(v1beta1.ConditionStalled, metav1.ConditionFalse, "", ""),
		}},
	}
	set := func(name, revision string, replicas int32) machinev1beta1.MachineSet {
		return *builder.MachineSet(builder.WithReplicas(replicas), func(s *machinev1beta1.MachineSet) {
			s.Name, s.UID, s.CreationTimestamp = name, uidOf(name), ago(time.Hour)
			s.Annotations = map[string]string{v1beta1.RevisionAnnotation: revision}
			s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&deployment, v1beta1.GroupVersion.WithKind("MachineDeployment"))}
		})
	}
	drained := set("pool-1", "1", 0)
	machine := *builder.Machine(builder.WithOwner(&drained), named("pool-1-a", time.Hour), builder.WithPhase(machinev1beta1.PhaseRunning))
	alone := set("alone", "1", 0)
	alone.OwnerReferences = nil
	forest := Tree(&Facts{
		Namespace: namespace, Now: now, Deployments: []v1beta1.MachineDeployment{deployment},
		Sets:     []machinev1beta1.MachineSet{alone, drained, set("pool-2", "2", 0), set("pool-3", "3", 0)},
		Machines: []machinev1beta1.Machine{machine},
	})
	const want = `NAME                     STATUS      AGE   DETAILS
MachineDeployment/pool   2/3 ready   60m   ReplicaFailure=True FailedCreate: quota; revision 3; 1/3 updated
├─ MachineSet/pool-1     0/0 ready   60m
│  └─ Machine/pool-1-a   Running     60m
└─ MachineSet/pool-3     0/0 ready   60m
MachineSet/alone         0/0 ready   60m
`
	if diff := cmp.Diff(want, printing.As(t, "", forest)); diff != "" {
		t.Errorf("without the empty revision 2 (-want +got):\n%s", diff)
	}
}

func TestMissingNames(t *testing.T) {
	known := []string{"broken", "workers", "workers-a", "workers-b", "alone"}
	cases := map[string]struct {
		name  string
		known []string
		want  string
	}{
		"a slip":            {name: "wrokers-a", known: known, want: `there is no Machine "wrokers-a" in namespace openshift-machine-api; did you mean workers-a`},
		"a beginning":       {name: "wor", known: known, want: "did you mean workers, workers-a, workers-b?"},
		"something else":    {name: "nothing-like-it", known: known, want: "'kubectl machine tree' shows what there is"},
		"nothing to choose": {name: "a", want: "name the namespace with -n, for example -n openshift-machine-api"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Missing("Machine", tc.name, namespace, tc.known); !strings.Contains(err.Error(), tc.want) {
				t.Errorf("it returns %v; want %q", err, tc.want)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	t.Run("a terminal is left alone", func(t *testing.T) {
		got := printing.As(t, "", &Forest{Items: []*Item{{Kind: kindMachine, Name: "a\x1b[2J", Status: "b\nc\u009b1m"}}})
		if strings.ContainsAny(got, "\x1b\u009b") || strings.Count(got, "\n") != 2 {
			t.Errorf("it prints %q", got)
		}
	})
	t.Run("a long text is cut, but not in a wide table", func(t *testing.T) {
		long := strings.Repeat("ä", 101)
		forest := &Forest{Items: []*Item{{Kind: kindMachine, Notes: []string{long}}}}
		if got := printing.As(t, "", forest); !strings.Contains(got, strings.Repeat("ä", 97)+"...\n") {
			t.Errorf("it prints %q", got)
		}
		if got := printing.As(t, "wide", forest); !strings.Contains(got, long) {
			t.Errorf("wide, it prints %q", got)
		}
	})
}
