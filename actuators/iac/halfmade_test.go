package iac

import (
	"net/http"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-iac/machine-iac-operator/actuators"
	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle"
	"github.com/machine-iac/machine-iac-operator/internal/lifecycle/record"
	"github.com/machine-iac/machine-iac-operator/internal/runs"
	"github.com/machine-iac/machine-iac-operator/internal/state/statefile"
	"github.com/machine-iac/machine-iac-operator/test/openstack"
	"github.com/machine-iac/machine-iac-operator/test/shortdir"
)

// looks matches the requests that read one server.
func looks(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/compute/v2.1/servers/") && !strings.HasSuffix(r.URL.Path, "/detail")
}

// eachCloud runs a test with the module and the stack of OpenStack.
func eachCloud(t *testing.T, test func(t *testing.T, c *cloud, machine *machinev1beta1.Machine)) {
	t.Helper()
	parallel(t)
	t.Run("Terraform", func(t *testing.T) {
		c := newCloud(t)
		test(t, c, c.machine())
	})
	t.Run("Pulumi", func(t *testing.T) {
		c := newCloud(t)
		test(t, c, c.stackMachine())
	})
}

// stackMachine returns the Machine of the stack with the same name.
func (c *cloud) stackMachine() *machinev1beta1.Machine {
	return c.machine(func(spec map[string]any) {
		values := map[string]any{}
		for name, value := range spec {
			if name != "apiVersion" && name != "kind" && name != "serverGroupName" {
				values[name] = value
			}
			delete(spec, name)
		}
		spec["apiVersion"], spec["kind"] = v1alpha1.GroupVersion.String(), v1alpha1.PulumiMachineProviderSpecKind
		spec["stack"], spec["values"] = "openstack", values
	})
}

// settles drives the verbs as the Machine controller does, until the Machine has its instance.
func (b *bench) settles(machine *machinev1beta1.Machine) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		there, err := b.Exists(b.t.Context(), machine)
		if err == nil && there {
			err = b.Update(b.t.Context(), machine)
		} else if err == nil {
			err = b.Create(b.t.Context(), machine)
		}
		if err == nil && machine.Spec.ProviderID != nil {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the Machine has no instance after two minutes: %v", err)
		}
	}
}

func TestAServerWhoseWaitIsCutShortIsKept(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, machine *machinev1beta1.Machine) {
		made, clearIt := c.cutShort(machine)
		clearIt()
		c.keeps(machine, made)
	})
}

// cutShort has a server made whose readings are refused until they are cleared. It returns its ID.
func (c *cloud) cutShort(machine *machinev1beta1.Machine) (made string, clearIt func() int) {
	c.t.Helper()
	refused := c.Obstruct(openstack.Obstacle{Refuse: true, Status: http.StatusTooManyRequests, Match: looks})
	for deadline := time.Now().Add(patience); c.Server(machine.Name) == nil || refused.Met() == 0; time.Sleep(pause) {
		if _ = c.Create(c.t.Context(), machine); time.Now().After(deadline) {
			c.t.Fatal("no create has made a server in time")
		}
	}
	return c.Server(machine.Name).ID, refused.Clear
}

// What the infrastructure calls broken, and what is not there any more, is made anew, and at no
// time are there two.
func TestAServerWhoseWaitIsCutShortIsMadeAnewWhereItIsOfNoUse(t *testing.T) {
	parallel(t)
	for name, harm := range map[string]func(*cloud, string) bool{
		"broken": func(c *cloud, name string) bool { return c.Break(name) },
		"gone":   func(c *cloud, name string) bool { return c.Cloud.Delete(name) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			machine := c.machine()
			made, clearIt := c.cutShort(machine)
			if !harm(c, machine.Name) {
				t.Fatal("there is no server")
			}
			clearIt()
			done := make(chan struct{})
			defer close(done)
			go func() { // time passes until the second look
				for range 100 {
					select {
					case <-done:
						return
					case <-time.After(time.Second):
						c.later(10 * time.Second)
					}
				}
			}()
			c.settles(machine)
			if has := *machine.Spec.ProviderID; has == "openstack:///"+made || c.created() != 2 {
				t.Errorf("the Machine has %s after %d servers were made, want another than %s after two", has, c.created(), made)
			}
			if servers := c.Count()["servers"]; servers != 1 {
				t.Errorf("there are %d servers, want one", servers)
			}
		})
	}
}

func TestAServerWhoseWaitIsCutShortIsDeletedAtOnce(t *testing.T) {
	c := newCloud(t)
	machine := c.machine()
	_, clearIt := c.cutShort(machine)
	clearIt()
	if err := c.drive(c.bench.Delete, machine); err != nil { // the clock stands still: it waits for nothing
		t.Fatal(err)
	}
	c.has(map[string]int{"servers": 0, "ports": 0, "trunks": 0, "volumes": 0, "server groups": 1})
}

// keeps expects that the Machine gets the server that was made, at once, and no other one.
func (c *cloud) keeps(machine *machinev1beta1.Machine, made string) {
	c.t.Helper()
	c.settles(machine)
	if has := *machine.Spec.ProviderID; has != "openstack:///"+made {
		c.t.Errorf("the Machine has %s, want the server that was made, %s", has, made)
	}
	if c.created() != 1 {
		c.t.Errorf("%d servers were made, want one", c.created())
	}
	if err := c.drive(c.bench.Delete, machine); err != nil {
		c.t.Fatal(err)
	}
	if left := c.Count()["servers"]; left != 0 {
		c.t.Errorf("%d servers are left", left)
	}
}

func TestAServerWhoseManagerEndsWhileItIsWaitedForIsKept(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, machine *machinev1beta1.Machine) {
		made := c.endsWaiting(machine, time.Second)
		c.start(c.workDir, "owner-2")
		c.keeps(machine, made)
	})
}

// A manager that ends lets its engines finish a create, so that nothing is half-made.
func TestAManagerThatEndsLetsItsEnginesFinishACreate(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, machine *machinev1beta1.Machine) {
		c.stop()
		c.grace = time.Minute
		c.start(shortdir.New(t), "owner-2")
		c.endsWaiting(machine, time.Second)
		facts := c.factsOf(machine)
		if !facts.HasInstance() || facts.Record.Intent != nil || facts.Record.Fingerprint == "" {
			t.Errorf("the instance is there: %t, the intent is %v; want a settled create", facts.HasInstance(), facts.Record.Intent)
		}
	})
}

// endsWaiting ends the manager while it waits for the server, whose readings are answered only
// after a while. It returns the server's ID.
func (c *cloud) endsWaiting(machine *machinev1beta1.Machine, answered time.Duration) (made string) {
	c.t.Helper()
	held := c.Obstruct(openstack.Obstacle{Hold: true, Match: looks})
	for deadline := time.Now().Add(patience); held.Met() == 0; time.Sleep(pause) {
		if _ = c.Create(c.t.Context(), machine); time.Now().After(deadline) {
			c.t.Fatal("no create has made a server in time")
		}
	}
	made = c.Server(machine.Name).ID
	time.AfterFunc(answered, func() { held.Clear() })
	c.stop()
	return made
}

// created returns how many servers were ever made.
func (c *cloud) created() (count int) {
	for _, made := range c.History() {
		if made.Kind == "servers" {
			count++
		}
	}
	return count
}

// TestNothingOfAnUnprovenInstanceIsPublished: a run may still discard it, and a Machine with a
// provider ID is never given another instance.
func TestNothingOfAnUnprovenInstanceIsPublished(t *testing.T) {
	b := newBench(t)
	machine := b.machine()
	raw := []byte(`{"version":4,"serial":1,"lineage":"l","outputs":{"provider_id":{"value":"x://1","type":"string"}},` +
		`"resources":[{"mode":"managed","type":"thing","name":"this","instances":[{"attributes":{}}]}]}`)
	parsed, err := statefile.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for name, published := range map[string]bool{"": false, "sha256:applied": true} {
		f := &lifecycle.Facts{Stored: true, State: parsed}
		f.Record.Intent, f.Record.Fingerprint = &record.Intent{Operation: runs.Update, Run: "cut short"}, name
		ctx := actuators.WithHandover(t.Context())
		actuators.HandOver(ctx, machine.UID, f)
		o, err := b.observe(ctx, machine, runs.Update)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.outputs != nil; got != published {
			t.Errorf("with the fingerprint %q, outputs are published: %t, want %t", name, got, published)
		}
	}
}
