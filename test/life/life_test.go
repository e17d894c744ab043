//go:build life

package life

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const root = "../.."

// platforms are all modules and stacks, those first that take little time.
func platforms() []platform {
	return []platform{kubemark, kubemarkOnPulumi, azure, vsphere, nutanix, openstackOnTofu, openstackOnPulumi, gcp, aws, qemu}
}

// TestLife takes Machines of each platform through their life, and writes when each step passed into docs/platforms.md.
func TestLife(t *testing.T) {
	log.SetLogger(logr.Discard())
	all := platforms()
	if wanted := os.Getenv("PLATFORM"); wanted != "" {
		chosen := strings.Split(wanted, ",")
		if all = slices.DeleteFunc(all, func(p platform) bool { return !slices.Contains(chosen, p.name) }); len(all) != len(chosen) {
			t.Fatalf("not all of %q are platforms", chosen)
		}
	}
	page, err := readPage()
	if err != nil {
		t.Fatal(err)
	}
	var w *world
	for i := range all {
		p := &all[i]
		t.Run(p.name, func(t *testing.T) {
			program, err := p.program(root)
			switch {
			case p.absent != "":
				t.Skip(p.absent)
			case err != nil:
				t.Skip(err)
			}
			if w == nil {
				w = openWorld(t.Context(), t)
			}
			page.lives(p, p.built(root, program))
			w.on(t, p, program).live(t, page)
		})
	}
	if w != nil {
		w.close(t)
	}
}

// live goes through the steps. One that fails keeps none of the others from its turn. The page is written after each, as a run may be killed.
func (w *world) live(t *testing.T, page *page) {
	for _, one := range steps {
		begun, ran := time.Now(), false
		passed := t.Run(one.name, func(t *testing.T) {
			ran = true
			has, lacks := one.needs == nil || one.needs(w.site), w.platform.lacks[one.name]
			if !has && one.name == stepDenied {
				lacks = noDenial
			}
			switch {
			case lacks != "":
				page.lacks(w.platform, one.name, lacks)
				t.Skip(lacks)
			case !has:
				t.Fatal("the platform lacks what this takes, and its value does not say why")
			}
			one.run(w, t)
			if !t.Failed() {
				page.passed(w.platform, one.name, begun)
			}
		})
		if !ran {
			continue // -run leaves it out
		}
		t.Logf("%6.1f s  %s", time.Since(begun).Seconds(), one.name)
		if !*quick {
			if err := page.write(); err != nil {
				t.Fatal(err)
			}
		}
		if !passed {
			t.Run("afresh", w.afresh)
		}
	}
}
