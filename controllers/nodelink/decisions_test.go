package nodelink

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
	"github.com/machine-iac/machine-iac-operator/test/builder"
)

type stringMap = map[string]string

func TestBest(t *testing.T) {
	machine := func(name, id string) *machinev1beta1.Machine {
		return builder.Machine(func(m *machinev1beta1.Machine) {
			m.Name = name
			if id != "" {
				m.Spec.ProviderID = &id
			}
		})
	}
	type machines = []*machinev1beta1.Machine
	tcs := map[string]struct {
		providerID string
		byID, byIP machines
		want       []string
	}{
		"nothing":                                 {providerID: "p"},
		"by providerID":                           {providerID: "p", byID: machines{machine("a", "p")}, want: []string{"a"}},
		"the providerID beats the IP":             {providerID: "p", byID: machines{machine("a", "p")}, byIP: machines{machine("b", "")}, want: []string{"a"}},
		"by IP while the Machine has no ID":       {providerID: "p", byIP: machines{machine("a", "")}, want: []string{"a"}},
		"by IP while the Node has no ID":          {byIP: machines{machine("a", "p")}, want: []string{"a"}},
		"by IP while neither has":                 {byIP: machines{machine("a", "")}, want: []string{"a"}},
		"not by IP when the IDs disagree":         {providerID: "p", byIP: machines{machine("a", "q")}},
		"one that disagrees leaves the other":     {providerID: "p", byIP: machines{machine("a", "q"), machine("b", "")}, want: []string{"b"}},
		"two by IP are both returned":             {byIP: machines{machine("a", ""), machine("b", "")}, want: []string{"a", "b"}},
		"two of one providerID are both returned": {providerID: "p", byID: machines{machine("a", "p"), machine("b", "p")}, want: []string{"a", "b"}},
		"a cache that lags behind on the ID: one": {providerID: "p", byIP: machines{machine("a", "p")}, want: []string{"a"}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, machine := range best(tc.providerID, tc.byID, tc.byIP, machineapi.ProviderID) {
				got = append(got, machine.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefersTo(t *testing.T) {
	node := builder.Node(func(n *corev1.Node) { n.Name, n.UID = "n", "now" })
	tcs := map[string]struct {
		ref  *corev1.ObjectReference
		want bool
	}{
		"no reference":                    {nil, false},
		"the same Node":                   {&corev1.ObjectReference{Kind: "Node", Name: "n", UID: "now"}, true},
		"an earlier Node of the name":     {&corev1.ObjectReference{Kind: "Node", Name: "n", UID: "before"}, false},
		"a reference without UID":         {&corev1.ObjectReference{Kind: "Node", Name: "n"}, false},
		"another Node":                    {&corev1.ObjectReference{Kind: "Node", Name: "m", UID: "now"}, false},
		"a reference to another kind yet": {&corev1.ObjectReference{Kind: "Pod", Name: "n", UID: "now"}, false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			machine := builder.Machine(func(m *machinev1beta1.Machine) { m.Status.NodeRef = tc.ref })
			if got := refersTo(machine, node); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	one, two, nine := stringMap{"a": "1"}, stringMap{"a": "2"}, stringMap{"a": "9"}
	tcs := map[string]struct {
		current, wanted stringMap
		before          applied
		want            stringMap
		wantNow         applied
	}{
		"nothing wanted, nothing changes":                   {current: one, want: one},
		"a new key is put on and recorded":                  {one, stringMap{"b": "2"}, applied{}, stringMap{"a": "1", "b": "2"}, applied{set: stringMap{"b": "2"}}},
		"another value is overwritten, both are recorded":   {one, two, applied{}, two, applied{two, one}},
		"what was there alike belongs to who put it":        {current: one, wanted: one, want: one},
		"ours stays ours":                                   {one, one, applied{set: one}, one, applied{set: one}},
		"ours takes a new value":                            {one, two, applied{set: one}, two, applied{set: two}},
		"and keeps what it replaced":                        {one, two, applied{one, nine}, two, applied{two, nine}},
		"ours is put back when it was taken off":            {nil, one, applied{set: one}, one, applied{set: one}},
		"what was taken off is not to come back":            {nil, one, applied{one, nine}, one, applied{set: one}},
		"what another writes over ours is replaced":         {two, one, applied{one, nine}, one, applied{one, two}},
		"what another writes as it is wanted is theirs":     {two, two, applied{one, nine}, two, applied{}},
		"ours goes when it is no longer wanted":             {current: stringMap{"a": "1", "b": "2"}, before: applied{set: one}, want: stringMap{"b": "2"}},
		"what it replaced comes back":                       {current: stringMap{"a": "1", "b": "2"}, before: applied{one, nine}, want: stringMap{"a": "9", "b": "2"}},
		"an empty value comes back too":                     {current: one, before: applied{one, stringMap{"a": ""}}, want: stringMap{"a": ""}},
		"what another has changed since is left":            {current: nine, before: applied{one, two}, want: nine},
		"ours that is gone already is forgotten":            {before: applied{one, nine}},
		"a record of what replaced nothing known is no use": {current: one, before: applied{replaced: nine}, want: one},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			got := merge(tc.current, tc.wanted, tc.before)
			if diff := cmp.Diff(tc.want, got.values, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("merged: %s", diff)
			}
			if diff := cmp.Diff(tc.wantNow, got.now, cmpopts.EquateEmpty(), cmp.AllowUnexported(applied{})); diff != "" {
				t.Errorf("record: %s", diff)
			}
			again := merge(got.values, tc.wanted, got.now)
			if diff := cmp.Diff(got, again, cmpopts.EquateEmpty(), cmp.AllowUnexported(applied{}, merged{})); diff != "" {
				t.Errorf("a second time it is something else: %s", diff)
			}
		})
	}
}

func TestWithTaints(t *testing.T) {
	taint := func(key, value string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: effect}
	}
	type taints = []corev1.Taint
	tcs := map[string]struct{ current, wanted, want taints }{
		"none":                        {},
		"others are kept":             {taints{taint("a", "", "NoExecute")}, nil, taints{taint("a", "", "NoExecute")}},
		"a new one is added":          {taints{taint("a", "", "NoExecute")}, taints{taint("b", "", "NoSchedule")}, taints{taint("a", "", "NoExecute"), taint("b", "", "NoSchedule")}},
		"another value is left":       {taints{taint("a", "1", "NoSchedule")}, taints{taint("a", "2", "NoSchedule")}, taints{taint("a", "1", "NoSchedule")}},
		"another effect is a new one": {taints{taint("a", "1", "NoSchedule")}, taints{taint("a", "1", "NoExecute")}, taints{taint("a", "1", "NoSchedule"), taint("a", "1", "NoExecute")}},
		"twice wanted is once added":  {nil, taints{taint("a", "1", "NoSchedule"), taint("a", "2", "NoSchedule")}, taints{taint("a", "1", "NoSchedule")}},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withTaints(tc.current, tc.wanted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDesiredMetadataOf(t *testing.T) {
	machine := builder.Machine(func(m *machinev1beta1.Machine) {
		m.Spec.Labels = stringMap{"good": "x", "bad key!": "x", "value": "not good!", "example.com/role": ""}
		m.Spec.Annotations = stringMap{"Good": "anything at all!", "bad key!": "x", machineAnnotation: "someone/else", appliedAnnotation: "{}"}
	})
	wanted, invalid := desiredMetadataOf(machine)
	if diff := cmp.Diff(stringMap{"good": "x", "example.com/role": ""}, wanted.labels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(stringMap{"Good": "anything at all!"}, wanted.annotations); diff != "" {
		t.Error(diff)
	}
	if len(invalid.labels) != 2 || !strings.HasPrefix(invalid.labels[0], "bad key!=x: ") || !strings.HasPrefix(invalid.labels[1], "value=not good!: ") {
		t.Errorf("got refused labels %q", invalid.labels)
	}
	if len(invalid.annotations) != 1 || !strings.HasPrefix(invalid.annotations[0], "bad key!: ") {
		t.Errorf("got refused annotations %q", invalid.annotations)
	}
}

func TestWithMetadata(t *testing.T) {
	node := builder.Node(func(n *corev1.Node) { n.Labels, n.Annotations = stringMap{"old": "1"}, nil })
	wanted := desiredMetadata{labels: stringMap{"role": "web"}, annotations: stringMap{"note": "x"}}
	first, err := withMetadata(node, "ns/m", wanted)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stringMap{"old": "1", "role": "web"}, first.Labels); diff != "" {
		t.Error(diff)
	}
	wantAnnotations := stringMap{
		machineAnnotation: "ns/m", "note": "x", appliedAnnotation: `{"labels":{"role":"web"},"annotations":{"note":"x"}}`,
	}
	if diff := cmp.Diff(wantAnnotations, first.Annotations); diff != "" {
		t.Error(diff)
	}
	again, err := withMetadata(first, "ns/m", wanted)
	if err != nil || !cmp.Equal(first, again) {
		t.Errorf("a second time must change nothing: %v, %s", err, cmp.Diff(first, again))
	}
	last, err := withMetadata(again, "ns/m", desiredMetadata{})
	if err != nil || !cmp.Equal(last.Labels, stringMap{"old": "1"}) || !cmp.Equal(last.Annotations, stringMap{machineAnnotation: "ns/m"}) {
		t.Errorf("what was put on must go: %v, %v, %v", err, last.Labels, last.Annotations)
	}
	first.Annotations[appliedAnnotation] = "nonsense"
	if kept, err := withMetadata(first, "ns/m", desiredMetadata{}); err != nil || kept.Labels["role"] != "web" || kept.Annotations[appliedAnnotation] != "" {
		t.Errorf("without a readable record all stays: %v, %v", err, kept)
	}
}

func TestIndexValues(t *testing.T) {
	node := builder.Node(builder.WithNodeInternalIPs("10.0.0.1", "10.0.0.2"))
	node.Status.Addresses = append([]corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "h"}}, node.Status.Addresses...)
	if diff := cmp.Diff([]string{"10.0.0.1"}, of(nodeInternalIP)(node)); diff != "" {
		t.Error(diff)
	}
	machine := builder.Machine(builder.WithInternalIPs("10.0.0.1", "10.0.0.2", "10.0.0.1", ""), builder.WithProviderID(""))
	if diff := cmp.Diff([]string{"10.0.0.1", "10.0.0.2"}, of(machineInternalIPs)(machine)); diff != "" {
		t.Error(diff)
	}
	if got := of(machineProviderID)(machine); got != nil {
		t.Errorf("an empty providerID must not be indexed, got %q", got)
	}
	if got := of(nodeProviderID)(machine); got != nil {
		t.Errorf("another type has no values, got %q", got)
	}
}

func TestChanges(t *testing.T) {
	node := builder.Node(func(n *corev1.Node) { n.ResourceVersion, n.UID = "1", "u" })
	machine := builder.Machine(builder.WithProviderID("p"), func(m *machinev1beta1.Machine) { m.ResourceVersion, m.UID = "1", "u" })
	onNode := func(mod func(*corev1.Node)) client.Object {
		after := node.DeepCopy()
		after.ResourceVersion = "2"
		mod(after)
		return after
	}
	onMachine := func(mod func(*machinev1beta1.Machine)) client.Object {
		after := machine.DeepCopy()
		after.ResourceVersion = "2"
		mod(after)
		return after
	}
	now := metav1.NewTime(time.Unix(1, 0))
	tcs := map[string]struct {
		before, after client.Object
		want          bool
	}{
		"a repeat of the informer":  {node, node, false},
		"a heartbeat":               {node, onNode(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = now }), false},
		"not ready":                 {node, onNode(builder.WithReady(corev1.ConditionFalse, time.Unix(1, 0))), false},
		"images":                    {node, onNode(func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{}} }), false},
		"a node's label":            {node, onNode(func(n *corev1.Node) { n.Labels = stringMap{"x": "y"} }), true},
		"a node's annotation":       {node, onNode(func(n *corev1.Node) { n.Annotations = stringMap{"x": "y"} }), true},
		"a node's taint":            {node, onNode(builder.WithTaints(corev1.Taint{Key: "x"})), true},
		"a node's providerID":       {node, onNode(builder.WithNodeProviderID("x")), true},
		"a node's first IP":         {node, onNode(builder.WithNodeInternalIPs("1.2.3.4")), true},
		"a node's second IP":        {node, onNode(builder.WithNodeInternalIPs(nodeInternalIP(node)[0], "fd00::1")), true},
		"a node made again":         {node, onNode(func(n *corev1.Node) { n.UID = types.UID("v") }), true},
		"a machine's phase":         {machine, onMachine(builder.WithPhase("Running")), false},
		"a machine's own label":     {machine, onMachine(builder.WithLabels(stringMap{"x": "y"})), false},
		"a machine's node's label":  {machine, onMachine(func(m *machinev1beta1.Machine) { m.Spec.Labels = stringMap{"x": "y"} }), true},
		"a machine's taint":         {machine, onMachine(func(m *machinev1beta1.Machine) { m.Spec.Taints = []corev1.Taint{{Key: "x"}} }), true},
		"a machine's address":       {machine, onMachine(builder.WithInternalIPs("1.2.3.4")), true},
		"a machine's providerID":    {machine, onMachine(builder.WithProviderID("x")), true},
		"a machine's lost node":     {machine, onMachine(builder.WithNodeRef(node)), true},
		"a machine being deleted":   {machine, onMachine(func(m *machinev1beta1.Machine) { builder.DeletedAt(now.Time)(m); m.Spec.Labels = stringMap{"x": "y"} }), false},
		"a node being deleted":      {node, onNode(func(n *corev1.Node) { n.DeletionTimestamp = &now; n.Labels = stringMap{"x": "y"} }), false},
		"objects of no known type":  {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}, node, false},
		"the same, the other round": {node, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}, false},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			matter := nodeChanged
			if _, ok := tc.before.(*machinev1beta1.Machine); ok {
				matter = machineChanged
			}
			if got := updates(matter).Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestComingAndGoing(t *testing.T) {
	stays := builder.Machine()
	goes := builder.Machine(builder.DeletedAt(time.Unix(1, 0)))
	all := updates(func(client.Object, client.Object) bool { return true })
	tcs := map[string]struct{ got, want bool }{
		"what comes is a change":                         {all.Create(event.CreateEvent{Object: stays}), true},
		"what comes and is going already is none":        {all.Create(event.CreateEvent{Object: goes}), false},
		"what is gone is no change":                      {all.Delete(event.DeleteEvent{Object: goes}), false},
		"what comes is no departure":                     {deletions().Create(event.CreateEvent{Object: stays}), false},
		"a change is no departure":                       {deletions().Update(event.UpdateEvent{ObjectOld: stays, ObjectNew: stays}), false},
		"to begin to go is a departure":                  {deletions().Update(event.UpdateEvent{ObjectOld: stays, ObjectNew: goes}), true},
		"to be going still is none":                      {deletions().Update(event.UpdateEvent{ObjectOld: goes, ObjectNew: goes}), false},
		"to be gone is one, with a finalizer or without": {deletions().Delete(event.DeleteEvent{Object: stays}), true},
	}
	for name, tc := range tcs {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %v, want %v", tc.got, tc.want)
			}
		})
	}
}

func TestEventsFitTheEventsAPI(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	failedUpdateNode(builder.Machine(), builder.Node(), errors.New(strings.Repeat("ö", 2000))).Send(recorder)
	if note := strings.TrimPrefix(<-recorder.Events, "Warning FailedUpdateNode "); len(note) > 1024 || !strings.HasSuffix(note, "ö...") {
		t.Errorf("got a note of %d bytes that ends in %q", len(note), note[len(note)-8:])
	}
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	if _, err := New(Options{}); err == nil || !strings.Contains(err.Error(), "Client, Reader and Recorder") {
		t.Errorf("got %v", err)
	}
}
