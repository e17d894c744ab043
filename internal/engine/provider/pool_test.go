package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/hashicorp/terraform-exec/tfexec"
	clocktesting "k8s.io/utils/clock/testing"
)

// fakeProvider is a provider whose life a test reads.
type fakeProvider struct {
	mu    sync.Mutex
	name  string
	gone  bool
	ended bool
	hangs bool
	size  Size
}

func (f *fakeProvider) Reattach() tfexec.ReattachConfig {
	return tfexec.ReattachConfig{Protocol: f.name}
}

func (f *fakeProvider) Exited() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

func (f *fakeProvider) Responds(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hangs {
		return errors.New("it hangs")
	}
	return nil
}

func (f *fakeProvider) Size() Size {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

func (f *fakeProvider) End() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone, f.ended = true, true
	return nil
}

func (f *fakeProvider) set(change func(*fakeProvider)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// world is a pool of fakes, which it lists in order, and its clock.
type world struct {
	*Pool
	t       *testing.T
	clock   *clocktesting.FakeClock
	plugins string
	started []*fakeProvider
}

const broken = "broken"

func fakePool(t *testing.T, o Options) *world {
	w := &world{t: t, clock: clocktesting.NewFakeClock(time.Now()), plugins: t.TempDir()}
	o.Clock, o.Logger = w.clock, testr.New(t)
	w.Pool = NewPool(t.TempDir(), o)
	w.start = func(_, file string, _ map[string]string) (Running, error) {
		if filepath.Base(file) == broken {
			return nil, errors.New("it does not start")
		}
		f := &fakeProvider{name: fmt.Sprintf("%s-%d", filepath.Base(file), len(w.started)+1)}
		w.started = append(w.started, f)
		return f, nil
	}
	return w
}

// plugin returns the file of a plugin.
func (w *world) plugin(name string) string {
	w.t.Helper()
	file := filepath.Join(w.plugins, name)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// lend returns the names of the providers that are lent for files.
func (w *world) lend(use Use, files ...string) (*Lease, string) {
	w.t.Helper()
	use.Files = map[string]string{}
	for _, file := range files {
		use.Files[file] = w.plugin(file)
	}
	l := w.Lend(w.t.Context(), use)
	var names []string
	for _, file := range files {
		if config, found := l.Reattach()[file]; found {
			names = append(names, config.Protocol)
		}
	}
	return l, strings.Join(names, " ")
}

// use lends one provider and gives it back.
func (w *world) use(use Use, file string) string {
	w.t.Helper()
	l, name := w.lend(use, file)
	l.GiveBack()
	return name
}

// expectEnded waits for what is being ended, and compares.
func (w *world) expectEnded(wanted ...string) {
	w.t.Helper()
	w.ending.Wait()
	var ended []string
	for _, f := range w.started {
		f.set(func(f *fakeProvider) {
			if f.ended {
				ended = append(ended, f.name)
			}
		})
	}
	if got, want := strings.Join(ended, " "), strings.Join(wanted, " "); got != want {
		w.t.Errorf("%q were ended, want %q", got, want)
	}
}

func TestPoolLendsAgainWhatCameBackWell(t *testing.T) {
	w := fakePool(t, Options{Max: 4})
	first, name := w.lend(Use{}, "a", "b")
	if name != "a-1 b-2" && name != "a-2 b-1" {
		t.Fatalf("lent %q", name)
	}
	first.GiveBack()
	first.GiveBack() // nothing is given back twice
	if _, again := w.lend(Use{}, "a", "b"); again != name {
		t.Errorf("lent %q, want %q again", again, name)
	}
	if w.places != 2 {
		t.Errorf("%d run, want 2", w.places)
	}
}

func TestPoolLendsToOneRunAtATime(t *testing.T) {
	w := fakePool(t, Options{Max: 4})
	_, one := w.lend(Use{}, "a")
	if _, two := w.lend(Use{}, "a"); one == two {
		t.Errorf("both runs have %s", one)
	}
}

func TestPoolNeverShares(t *testing.T) {
	before := Use{Environment: map[string]string{"TOKEN": "a"}, Owner: "module ns/secret"}
	for name, after := range map[string]Use{
		"different credentials":            {Environment: map[string]string{"TOKEN": "b"}, Owner: "module ns/secret"},
		"different credentials in a file":  {Environment: map[string]string{"TOKEN": "a"}, Secrets: map[string]string{"FILE": "b"}, Owner: "module ns/secret"},
		"different environments":           {Environment: map[string]string{"TOKEN": "a", "PROXY": "p"}, Owner: "module ns/secret"},
		"Secrets that hold the same":       {Environment: map[string]string{"TOKEN": "a"}, Owner: "module ns/other"},
		"credentials of which none is set": {Environment: map[string]string{"TOKEN": ""}, Owner: "module ns/secret"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakePool(t, Options{Max: 4})
			one := w.use(before, "a")
			if two := w.use(after, "a"); one == two {
				t.Errorf("%s serves both", one)
			}
		})
	}
	t.Run("different plugins at one path", func(t *testing.T) {
		w := fakePool(t, Options{Max: 4})
		one := w.use(before, "a")
		if err := os.WriteFile(w.plugin("a"), []byte("another release"), 0o600); err != nil {
			t.Fatal(err)
		}
		if two := w.use(before, "a"); one == two {
			t.Errorf("%s serves both", one)
		}
	})
}

func TestPoolEndsProvidersOfReplacedCredentials(t *testing.T) {
	owned := func(token, owner string) Use {
		return Use{Environment: map[string]string{"TOKEN": token}, Owner: owner}
	}
	w := fakePool(t, Options{Max: 8})
	busy, _ := w.lend(owned("old", "m ns/s"), "a")
	w.use(owned("old", "m ns/s"), "a")
	w.use(owned("old", "m ns/other"), "a")
	w.use(owned("old", "m ns/s"), "b") // another plugin, which no run has used with the new credentials yet
	w.use(owned("new", "m ns/s"), "a")
	w.expectEnded("a-2", "b-4")
	busy.GiveBack()
	w.expectEnded("a-1", "a-2", "b-4")
}

func TestPoolEndsWhatFailed(t *testing.T) {
	w := fakePool(t, Options{Max: 1})
	l, _ := w.lend(Use{}, "a")
	if err := l.Discard(); err != nil {
		t.Fatal(err)
	}
	l.GiveBack()
	w.expectEnded("a-1")
	if _, name := w.lend(Use{}, "a"); name != "a-2" {
		t.Errorf("lent %q, want a new one", name)
	}
}

func TestPoolIsBounded(t *testing.T) {
	w := fakePool(t, Options{Max: 2})
	one, _ := w.lend(Use{}, "a")
	two, _ := w.lend(Use{}, "b")
	if _, name := w.lend(Use{}, "c"); name != "" {
		t.Errorf("lent %q although two are lent", name)
	}
	one.GiveBack()
	two.GiveBack()
	if _, name := w.lend(Use{}, "c"); name != "c-3" {
		t.Errorf("lent %q, want a new one", name)
	}
	w.expectEnded("a-1") // the one that was idle longest
}

func TestPoolReplacesAfterSomeUses(t *testing.T) {
	w := fakePool(t, Options{Max: 1, Uses: 3})
	for range 3 {
		if name := w.use(Use{}, "a"); name != "a-1" {
			t.Errorf("lent %q, want a-1", name)
		}
	}
	w.expectEnded("a-1")
	if name := w.use(Use{}, "a"); name != "a-2" {
		t.Errorf("lent %q, want a new one", name)
	}
}

func TestPoolEndsWhatIsIdleForLong(t *testing.T) {
	w := fakePool(t, Options{Max: 1, IdleTTL: time.Minute})
	w.use(Use{}, "a")
	w.clock.Step(59 * time.Second)
	w.use(Use{}, "a")
	w.clock.Step(59 * time.Second)
	w.expectEnded()
	w.clock.Step(time.Second)
	w.expectEnded("a-1")
	if w.places != 0 || len(w.idle) != 0 {
		t.Errorf("%d run and %d are idle, want none", w.places, len(w.idle))
	}
}

func TestPoolEndsWhatIsOld(t *testing.T) {
	w := fakePool(t, Options{Max: 2, MaxAge: time.Hour, IdleTTL: 2 * time.Hour})
	w.use(Use{}, "a")
	busy, _ := w.lend(Use{}, "b")
	w.clock.Step(time.Hour)
	busy.GiveBack()
	w.expectEnded("b-2")
	if name := w.use(Use{}, "a"); name != "a-3" {
		t.Errorf("lent %q, want a new one", name)
	}
	w.expectEnded("a-1", "b-2")
}

func TestPoolEndsWhatLeaks(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		first, later Size
		ended        bool
	}{
		"memory of its first size":     {Size{Memory: 100 * mib, Files: 20}, Size{Memory: 200 * mib, Files: 40}, false},
		"a small one may grow":         {Size{Memory: 10 * mib, Files: 10}, Size{Memory: 80 * mib, Files: 100}, false},
		"memory that grows":            {Size{Memory: 100 * mib, Files: 20}, Size{Memory: 265 * mib, Files: 20}, true},
		"connections that stay open":   {Size{Memory: 100 * mib, Files: 20}, Size{Memory: 100 * mib, Files: 169}, true},
		"a process that was left":      {Size{Memory: 100 * mib, Files: 20}, Size{Memory: 100 * mib, Files: 20, Processes: 1}, true},
		"a process of the first run":   {Size{Memory: 100 * mib, Files: 20, Processes: 1}, Size{}, true},
		"sizes that could not be read": {Size{}, Size{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakePool(t, Options{Max: 1})
			for _, size := range []Size{tc.first, tc.later} {
				l, _ := w.lend(Use{}, "a")
				w.started[len(w.started)-1].set(func(f *fakeProvider) { f.size = size })
				l.GiveBack()
			}
			w.ending.Wait()
			if ended := w.started[0].Exited(); ended != tc.ended {
				t.Errorf("ended: %t, want %t", ended, tc.ended)
			}
		})
	}
}

func TestIdleProvidersFitTheMemory(t *testing.T) {
	w := fakePool(t, Options{Max: 4, Memory: 250})
	var leases []*Lease
	for _, file := range []string{"a", "b", "c"} {
		l, _ := w.lend(Use{}, file)
		leases = append(leases, l)
		w.started[len(w.started)-1].set(func(f *fakeProvider) { f.size.Memory = 100 })
	}
	w.expectEnded() // runs need what they have
	for _, l := range leases {
		l.GiveBack()
	}
	w.expectEnded("a-1")
	large, _ := w.lend(Use{}, "large")
	w.started[3].set(func(f *fakeProvider) { f.size.Memory = 251 })
	large.GiveBack()
	w.expectEnded("a-1", "b-2", "c-3", "large-4")
}

func TestPoolDoesNotLendTheDead(t *testing.T) {
	w := fakePool(t, Options{Max: 1})
	w.use(Use{}, "a")
	_ = w.started[0].End()
	if name := w.use(Use{}, "a"); name != "a-2" {
		t.Errorf("lent %q, want a new one", name)
	}
}

func TestPoolReplacesWhatDoesNotRespond(t *testing.T) {
	w := fakePool(t, Options{Max: 1})
	w.use(Use{}, "a")
	w.started[0].set(func(f *fakeProvider) { f.hangs = true })
	if name := w.use(Use{}, "a"); name != "a-2" {
		t.Errorf("lent %q, want a new one", name)
	}
	w.expectEnded("a-1")
}

func TestPoolGoesOnWithoutWhatDoesNotStart(t *testing.T) {
	w := fakePool(t, Options{Max: 1})
	if name := w.use(Use{Secrets: map[string]string{"FILE": "b"}}, broken); name != "" {
		t.Errorf("lent %q", name)
	}
	if left, err := os.ReadDir(w.dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v: the folder has credentials", left, err)
	}
	if name := w.use(Use{}, "a"); name != "a-1" {
		t.Errorf("lent %q: the one that did not start takes room", name)
	}
	if l := w.Lend(t.Context(), Use{Files: map[string]string{"gone": filepath.Join(w.plugins, "gone")}}); len(l.Reattach()) > 0 {
		t.Error("a plugin that is not there is lent")
	}
}

func TestTheFilesOfARunComeBeforeTheEnvironment(t *testing.T) {
	var got map[string]string
	enough := func(_, _ string, environment map[string]string) (Running, error) {
		got = environment
		return nil, errors.New("enough")
	}
	dir := t.TempDir()
	own := Use{Environment: map[string]string{"FILE": "/of/the/manager", "A": "b"}, Secrets: map[string]string{"FILE": "own"}}
	if _, err := own.Start(enough, dir, "provider"); err == nil {
		t.Fatal("it started")
	}
	if !strings.HasPrefix(got["FILE"], dir) || got["A"] != "b" || own.Environment["FILE"] != "/of/the/manager" {
		t.Errorf("the provider's environment is %v, want the run's own file", got)
	}
}

func TestPoolCloses(t *testing.T) {
	w := fakePool(t, Options{Max: 2})
	l, _ := w.lend(Use{}, "a")
	w.use(Use{}, "b")
	w.Close()
	w.expectEnded("b-2")
	l.GiveBack()
	w.Close()
	w.expectEnded("a-1", "b-2")
	if _, name := w.lend(Use{}, "a"); name != "" {
		t.Errorf("a closed pool lends %q", name)
	}
}

func TestOptionsBelowZeroAreRefused(t *testing.T) {
	for _, o := range []Options{{Max: -1}, {Uses: -1}, {IdleTTL: -1}, {MaxAge: -1}, {Memory: -1}} {
		if o.Validate() == nil {
			t.Errorf("%+v is valid", o)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Error(err)
	}
}
