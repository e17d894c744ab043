// Package rights has the permissions that providers use in the lives of Machines.
package rights

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/machine-iac/machine-iac-operator/internal/module"
)

//go:embed calls-*.yaml
var calls embed.FS

// Life is what a provider calls for a Machine of a module's example with these fields and labels, in a cluster whose
// resources have these tags, in addition to what the first life calls.
type Life struct {
	Life   string               `json:"life"`
	Fields map[string]any       `json:"fields"`
	Labels map[string]string    `json:"labels"`
	Tags   []module.ResourceTag `json:"tags"`
	Calls  []string             `json:"calls"`
	// Without are calls of the first life that this one does not make.
	Without []string `json:"without"`
	// Refused are calls that need not be granted, and are not.
	Refused []string `json:"refused"`
}

// Lives returns the lives of a module's Machines, with all calls of each, sorted.
func Lives(name string) ([]Life, error) {
	content, err := calls.ReadFile("calls-" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	var lives []Life
	if err := yaml.UnmarshalStrict(content, &lives); err != nil {
		return nil, fmt.Errorf("reading the calls of module %s: %w", name, err)
	}
	first := lives[0].Calls
	for n := range lives {
		one := &lives[n]
		one.Calls = slices.Compact(slices.Sorted(slices.Values(slices.Concat(first, one.Calls))))
		one.Calls = slices.DeleteFunc(one.Calls, func(call string) bool { return slices.Contains(one.Without, call) })
	}
	return lives, nil
}

// Guard grants permissions and notes which are called for.
type Guard struct {
	mutex   sync.Mutex
	granted []string
	denied  string
	called  map[string]bool
}

// Grant replaces the permissions.
func (g *Guard) Grant(actions []string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.granted = actions
}

// Deny refuses an action although it is granted, and no other; "" refuses none.
func (g *Guard) Deny(action string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.denied = action
}

// Allows reports whether an action is granted, and notes it.
func (g *Guard) Allows(action string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.called == nil {
		g.called = map[string]bool{}
	}
	g.called[action] = true
	return action != g.denied && slices.Contains(g.granted, action)
}

// Called returns the actions that were called for, granted or not.
func (g *Guard) Called() []string {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Sorted(maps.Keys(g.called))
}
