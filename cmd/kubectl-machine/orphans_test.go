package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	identity "github.com/machine-iac/machine-iac-operator/internal/installation"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/state"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/builder"
	"github.com/machine-iac/machine-iac-operator/test/long"
)

// orphan makes a state whose Machine is gone.
func (w *world) orphan(t *testing.T, name string) state.Key {
	t.Helper()
	return w.orphanWith(t, name, stateBody(1))
}

func (w *world) orphanWith(t *testing.T, name, body string) state.Key {
	t.Helper()
	gone := builder.In(w.namespace, builder.Machine())
	gone.Name, gone.UID = name, types.UID("uid-of-"+name)
	session, err := w.acquire(t, gone, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Put(t.Context(), []byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := session.Release(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return session.Key()
}

// said returns what a state says of itself as an orphan.
func (w *world) said(ctx context.Context, t *testing.T, key state.Key) record.Orphan {
	t.Helper()
	stored, err := state.New(w.Client, state.Options{}).Get(ctx, key)
	if err != nil {
		t.Error(err)
		return record.Orphan{}
	}
	said, err := record.ReadOrphan(stored.Meta)
	if err != nil {
		t.Error(err)
	}
	return said
}

// manages does as a manager does, once the destroy of a state is requested; the test's end waits for it.
func (w *world) manages(t *testing.T, key state.Key, does func(*state.Session) error) {
	t.Helper()
	ended := make(chan struct{})
	t.Cleanup(func() { <-ended })
	go func() {
		defer close(ended)
		for w.said(context.Background(), t, key).Action == "" {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		session, err := state.New(w.Client, state.Options{}).Acquire(context.Background(), key, state.AcquireOptions{Lock: state.Lock{Owner: "manager", Run: "destroy"}})
		if err == nil {
			err = does(session)
		}
		if err != nil {
			t.Error(err)
		}
	}()
}

func TestOrphansAgainstAPIServer(t *testing.T) {
	w := newWorld(t)
	key := w.orphan(t, "departed")
	w.orphan(t, "twin")
	kept, err := state.New(w.Client, state.Options{}).SaveOrphan(t.Context(), key, []byte(stateBody(9)), state.OrphanOptions{
		Machine: "twin", MachineUID: "uid-of-twin", Reason: "it could not be saved", Missing: []statefile.ResourceID{{Address: "t.this", ID: "i-9"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	busy := builder.In(w.namespace, builder.Machine())
	busy.Name, busy.UID = "busy", "uid-of-busy"
	if _, err := w.acquire(t, busy, nil); err != nil {
		t.Fatal(err)
	}
	restored := builder.In(w.namespace, builder.Machine(func(m *machinev1beta1.Machine) {
		m.Name, m.Annotations = "restored", map[string]string{record.WitnessAnnotation: `{"uid":"uid-of-claimed","run":"r","since":"2026-03-01T12:00:00Z"}`}
	}))
	if err := w.Create(t.Context(), restored); err != nil {
		t.Fatal(err)
	}
	w.orphan(t, "claimed")
	report, err := json.Marshal(lifecycle.InventoryReport{Problems: []string{"a place: no way to it"}, Instances: []lifecycle.OrphanedInstance{
		{ListedInstance: lifecycle.ListedInstance{Name: "vm-9", ProviderID: "cloud://9"}, Orphaned: true},
		{ListedInstance: lifecycle.ListedInstance{Name: "young", ProviderID: "cloud://10"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: lifecycle.InventoryConfigMap}, Data: map[string]string{lifecycle.InventoryKey: string(report)},
	}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		line             string
		wantCode         int
		wantOut, wantErr string
	}{
		"all":                        {line: "orphans", wantOut: "\ndeparted   State          -            -       1           t.this (i-1)\n"},
		"all, for scripts":           {line: "orphans -o jsonpath={.items[2].resources[0].id}", wantOut: "i-1"},
		"one":                        {line: "orphans uid-of-departed -o name", wantOut: "secret/" + key.Name + "\n"},
		"an instance":                {line: "orphans vm-9 --no-headers", wantOut: "vm-9   Instance   -     ", wantErr: "note: the last inventory: a place: no way to it"},
		"instances of all":           {line: "orphans -A -o jsonpath={.items[*].providerID}", wantOut: "cloud://9", wantErr: "note:"},
		"a young instance":           {line: "orphans young", wantCode: 1, wantErr: `there is no orphan "young"`},
		"a destroy of an instance":   {line: "orphans --destroy vm-9 --yes", wantCode: 1, wantErr: "with whose providerSpec the instance was listed, is gone"},
		"none":                       {line: "orphans -n default", wantErr: "There are no orphans in namespace default"},
		"one that is claimed":        {line: "orphans claimed", wantOut: "the Machine restored names its instance"},
		"one whose Machine exists":   {line: "orphans workers-a", wantCode: 1, wantErr: `the Machine "workers-a" exists`},
		"one that is none":           {line: "orphans dep", wantCode: 1, wantErr: `there is no orphan "dep" in namespace ` + w.namespace + "; did you mean departed?"},
		"names of all namespaces":    {line: "orphans departed -A", wantCode: 1, wantErr: "across all namespaces"},
		"a flag of another use":      {line: "orphans --yes", wantCode: 1, wantErr: "belong to --destroy NAME and --adopt-as NAME"},
		"for nobody":                 {line: "orphans --as eve", wantCode: 1, wantErr: `User "eve" cannot list resource "secrets"`},
		"a destroy of two":           {line: "orphans other --destroy departed --yes", wantCode: 1, wantErr: "takes one name"},
		"a destroy of a Machine's":   {line: "orphans --destroy workers-a --yes", wantCode: 1, wantErr: `the Machine "workers-a" exists`},
		"a destroy of none":          {line: "orphans --destroy nobody --yes", wantCode: 1, wantErr: `there is no orphan "nobody"`},
		"a destroy of one of two":    {line: "orphans --destroy twin --yes", wantCode: 1, wantErr: `2 orphans are called "twin"; name one by its Secret: tfstate-default-m`},
		"a destroy of one in use":    {line: "orphans --destroy busy --yes", wantCode: 1, wantErr: "a run has the state of busy"},
		"a destroy of one claimed":   {line: "orphans --destroy claimed --yes", wantCode: 1, wantErr: "the Machine restored names its instance"},
		"a destroy of one unsaved":   {line: "orphans --destroy " + kept.Name + " --yes", wantCode: 1, wantErr: "is a state that could not be saved"},
		"a destroy not confirmed":    {line: "orphans --destroy departed", wantCode: 1, wantErr: "  t.this (i-1)\nDestroy this? Only 'yes' is taken for it: error: it was not confirmed; nothing was changed\n"},
		"completing":                 {line: "__complete orphans d", wantOut: "departed\n"},
		"completing what to destroy": {line: "__complete orphans --destroy d", wantOut: "departed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.ask(t, tc.line)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
	if said := w.said(t.Context(), t, key); said.Action != "" {
		t.Errorf("the state says %+v, though nothing was requested", said)
	}
}

func TestTheDestroyOfAnOrphanIsRequestedAndWaitedFor(t *testing.T) {
	long.Test(t)
	w := newWorld(t)
	note := func(p record.Patch) func(*state.Session) error {
		return func(s *state.Session) error { return s.Release(context.Background(), p.MetaPatch) }
	}
	problem, dropped, last := record.NewPatch(), record.NewPatch(), record.NewPatch()
	problem.SetOrphanMark(record.OrphanMark{Since: time.Now(), Problem: "the credentials are gone"})
	dropped.ClearOrphan()
	last.SetLastRun(record.LastRun{Run: "destroy", Result: record.RunFailed, Message: "it is protected"})
	for name, tc := range map[string]struct {
		flags            string
		does             func(*state.Session) error
		wantCode         int
		wantOut, wantErr string
	}{
		"done": {does: func(s *state.Session) error {
			empty := strings.Replace(stateBody(2), `"instances":[{"attributes":{"id":"i-1"}}]`, `"instances":[]`, 1)
			if err := s.Put(context.Background(), []byte(empty)); err != nil {
				return err
			}
			return s.Delete(context.Background())
		}, wantOut: "departed-done is destroyed, and its state is removed\n"},
		"failed":         {does: note(last), wantCode: 1, wantErr: " was not destroyed: it is protected; the operator tries it again; to withdraw the request: kubectl annotate secret -n " + w.namespace},
		"impossible":     {does: note(problem), wantCode: 1, wantErr: " was not destroyed: the credentials are gone"},
		"dropped":        {does: note(dropped), wantCode: 1, wantErr: "has dropped the request"},
		"nobody does it": {flags: "--wait 1s", does: note(record.NewPatch()), wantCode: 1, wantErr: "was not destroyed within 1s; the request stays"},
		"only a request": {flags: "--wait 0", does: note(record.NewPatch()), wantOut: "the destroy of departed-only-a-request is requested\n"},
	} {
		t.Run(name, func(t *testing.T) {
			machine := "departed-" + strings.ReplaceAll(name, " ", "-")
			w.manages(t, w.orphan(t, machine), tc.does)
			got := w.ask(t, "orphans --destroy "+machine+" --yes "+tc.flags)
			if got.code != tc.wantCode || !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) {
				t.Errorf("it ends with %d, want %d\noutput %q, want %q\nerrors %q, want %q", got.code, tc.wantCode, got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
}

// Whoever may write ConfigMaps could name an instance there, and hide what it is, so that somebody confirms its destroy.
func TestWhatIsShownOfAnInventoryIsWhatTheOperatorWrote(t *testing.T) {
	w := newWorld(t)
	own, err := identity.Ensure(t.Context(), w.Client, w.namespace)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name, madeBy string) lifecycle.OrphanedInstance {
		return lifecycle.OrphanedInstance{ListedInstance: lifecycle.ListedInstance{Name: name, ProviderID: "cloud://" + name, Installation: madeBy}, Orphaned: true}
	}
	evil := of("evil", string(own.UID()))
	evil.Name += "\x1b[8m\u202e\nours"
	text, err := json.Marshal(lifecycle.InventoryReport{Instances: []lifecycle.OrphanedInstance{
		of("ours", string(own.UID())), of("theirs", "their-uid"), of("unmarked", ""), evil,
	}})
	if err != nil {
		t.Fatal(err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: lifecycle.InventoryConfigMap}, Data: map[string]string{
		lifecycle.InventoryKey: string(text), identity.CodeKey: own.Sign(lifecycle.InventoryConfigMap, w.namespace, string(text)),
	}}
	if err := w.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ line, wantOut, wantErr string }{
		"of this installation":         {line: "orphans ours --no-headers", wantOut: "   cloud://ours\n"},
		"of another installation":      {line: "orphans theirs -o wide", wantOut: "another installation made it, with the UID their-uid, and may have a Machine for it; cloud://theirs"},
		"of none":                      {line: "orphans unmarked -o wide", wantOut: "it bears no installation's UID, and may belong to somebody else; cloud://unmarked"},
		"with a name to hide":          {line: "orphans", wantOut: "\nevil\\u001b[8m\\u202e ours   Instance"},
		"a name for scripts":           {line: "orphans -o jsonpath={.items[0].instance}", wantOut: "evil\\u001b[8m\\u202e\nours"},
		"a destroy of another's":       {line: "orphans --destroy theirs --yes", wantErr: "The instance theirs (cloud://theirs) belongs to no Machine and no state here: another installation made it"},
		"a destroy with a name":        {line: "orphans --destroy cloud://evil --yes", wantErr: "The instance evil\\u001b[8m\\u202e ours (cloud://evil) belongs"},
		"what there is none of, named": {line: "orphans x\x1b[8m", wantErr: `there is no orphan "x\x1b[8m"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.ask(t, tc.line)
			if !strings.Contains(got.out, tc.wantOut) || !strings.Contains(got.err, tc.wantErr) || strings.ContainsAny(got.out+got.err, "\x1b\u202e") {
				t.Errorf("output %q, want %q\nerrors %q, want %q; and nothing that a terminal obeys", got.out, tc.wantOut, got.err, tc.wantErr)
			}
		})
	}
	kept.Data[lifecycle.InventoryKey] = strings.ReplaceAll(string(text), "cloud://ours", "cloud://a-database")
	if err := w.Client.Update(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(t, "orphans"); strings.Contains(got.out, "cloud://") || !strings.Contains(got.err, "is not as the operator wrote it, so that its instances are not shown") {
		t.Errorf("a forged inventory is shown: %q, %q", got.out, got.err)
	}
}
